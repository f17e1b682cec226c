"""The plan of an experiment: runs with a name, a configuration and a priority."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from .files import RESULTS, first_line
from .stopping import Stop
from .tables import Table, Tables
from .team import here

Leg = dict[str, Any]


class UsageError(Exception):
    """A request for something that does not exist; the message names it and the alternatives."""


class DeviceLostError(Exception):
    """The device no longer responds; only another process can continue with it."""


def is_lost(device: torch.device) -> bool:
    """Whether waiting for the device fails, as it does permanently after a fault."""
    if device.type != "cuda":
        return False
    try:
        torch.cuda.synchronize(device)
    except Exception:
        return True
    return False


@dataclass(frozen=True)
class Run:
    """One file of results. Lower priorities run first, across all experiments."""

    experiment: str
    name: str
    config: dict[str, Any]
    priority: int


@dataclass
class Session:
    """Services for a run in progress.

    deadline: end of the budget, on time.monotonic's clock; None without a budget.
    corpus: opens a corpus by name; its checksum goes into the provenance.
    save: stores the tables measured so far, so that a kill loses little.
    keep_weights: stores a model's packed weights beside the record, which describes them.
    checkpoint: path for the state that a stopped run needs to continue.
    show: updates the progress bar (done, total, note, before). before: done by an earlier attempt,
        so that speed is estimated from the rest alone.
    warnings: messages of `warn` so far.
    stop: whether a signal has asked for the end.
    leg: this process's part of the run so far: commit, dirty, started, seconds.
    earlier: the legs of the checkpoint, or of the partial tables, that the run continues.
    kept: the partial record of an earlier attempt with the same code.
    ranks: mesh and speed of a training on several ranks; stored in the provenance.
    """

    device: torch.device
    corpus: Callable[[str], Any]
    save: Callable[[Tables], None]
    show: Callable[..., None]
    checkpoint: Path
    deadline: float | None = None
    warnings: list[str] = field(default_factory=list)
    stop: Stop = field(default_factory=Stop)
    leg: Callable[[], Leg] = dict
    earlier: list[Leg] = field(default_factory=list)
    kept: dict[str, Any] | None = None
    keep_weights: Callable[[bytes], None] = lambda packed: None
    ranks: dict[str, Any] = field(default_factory=dict)
    whole: bool = True

    @property
    def places(self) -> tuple[Path, Path]:
        """Folders that may have another run's results: this run's, which need not, and ours."""
        return self.checkpoint.parents[3], RESULTS

    def warn(self, message: str) -> None:
        """Print a warning without ending the run; it is stored in the record's provenance."""
        if message not in self.warnings:
            self.warnings.append(message)
            if here().leads:
                tqdm.write(f"warning: {message}", file=sys.stderr)

    def attempt(self, call: Callable[[], Any], what: str) -> Any:
        """The result of `call`, or None with a warning: a failed call must not end a race.

        Raises DeviceLostError if the device no longer responds: later calls would fail too.
        """
        try:
            result = call()
            if self.device.type == "cuda":  # errors of the device must appear here
                torch.cuda.synchronize(self.device)
            return result
        except DeviceLostError:
            raise
        except Exception as error:
            self.warn(f"{what}: {first_line(error)}")
            if is_lost(self.device):
                raise DeviceLostError(what) from error
            return None

    def go_on(self) -> Tables:
        """The tables of an earlier attempt, or none.

        Its time is then counted, and its warnings are kept.
        """
        if self.kept is None:
            return {}
        origin = self.kept["provenance"]
        one = {key: origin[key] for key in ("commit", "dirty", "started", "seconds")}
        self.earlier[:] = origin.get("legs", [one])
        self.warnings[:0] = origin.get("warnings", [])
        return self.kept["tables"]

    def through(
        self,
        points: Sequence[Any],
        tables: Tables,
        note: Callable[[Any], str],
        done: Container[Any] = (),
    ) -> Iterator[Any]:
        """The points that are not done, while there is time.

        After each, tables are saved and progress is shown. If time runs out first, the run is not
        `whole`. note: the words of a point in the progress bar.
        """
        for i, point in enumerate(points):
            if point in done:
                continue
            if self.out_of_time():
                self.whole = False
                return
            yield point
            self.save(tables)
            self.show(i + 1, len(points), note(point))

    def out_of_time(self) -> bool:
        """Whether the budget is spent or a signal came, so that the run should save and return."""
        if self.stop.number is not None:
            return True
        return self.deadline is not None and time.monotonic() >= self.deadline


@dataclass(frozen=True)
class Outcome:
    """A run's result. tables: its columns. complete: False if the budget ended first."""

    tables: Tables
    complete: bool = True


def no_runs(kind: str, smoke: bool) -> list[Run]:
    """The plan of an experiment that plans nothing; a function, since a lease pickles it."""
    return []


@dataclass(frozen=True)
class Experiment:
    """An experiment as the runner sees it.

    runs: the plan for a kind of device ("cpu" or "cuda"); with smoke, its smallest version.
    perform: does one run. tables: its output, column by column. about: a one-line description.
    text: the module's docstring, which `results/README.md` repeats.
    frozen: the last commit with the code behind stored results, if the code was removed since; then
        nothing is planned or performed.
    spreads: whether its runs are trainings only, which several ranks can share.
    memory: least B on each of so many devices for a configuration; for trainings only.
    weights: the shape of every array that a configuration's model packs; for kept weights of a GPT.
    """

    name: str
    about: str
    tables: dict[str, Table]
    runs: Callable[[str, bool], list[Run]] = no_runs
    perform: Callable[[dict[str, Any], Session], Outcome] | None = None
    text: str = ""
    frozen: str = ""
    spreads: bool = False
    memory: Callable[[dict[str, Any], int], int] | None = None
    weights: Callable[[dict[str, Any]], dict[str, list[int]]] | None = None

    @property
    def units(self) -> dict[str, str]:
        """The unit of every column, in all tables."""
        return {
            name: column.unit
            for table in self.tables.values()
            for name, column in table.columns.items()
        }

    @cached_property
    def planned(self) -> list[Run]:
        """All of its runs, on any device."""
        kinds = product(("cpu", "cuda"), (False, True))
        return [run for kind, smoke in kinds for run in self.runs(kind, smoke)]

    @cached_property
    def keys(self) -> frozenset[str]:
        """Keys that the configurations of all its runs have."""
        keys = [frozenset(run.config) for run in self.planned]
        return keys[0].intersection(*keys) if keys else frozenset()


# All experiments by name; `experiments.catalogue` finds them.
Catalogue = Mapping[str, Experiment]
