"""The plan of an experiment: runs with a name, a configuration and a priority."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from .files import first_line
from .stopping import Stop
from .tables import Table, Tables
from .team import here

Leg = dict[str, Any]


class UsageError(Exception):
    """Something asked for that does not exist; the message names it and what does."""


class DeviceLostError(Exception):
    """The device answers no more; only another process can go on with it."""


def is_lost(device: torch.device) -> bool:
    """Whether a device fails at being waited for, as it does for good after a fault."""
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
    """Services for a run while it runs.

    deadline: when the budget ends, on time.monotonic's clock; None without a budget.
    corpus: opens a corpus by name; its checksum lands in the provenance.
    save: keeps the tables measured so far, so that a kill loses little.
    keep_weights: puts a model's packed weights beside the record, which then describes them.
    checkpoint: where a stopped run may leave what it needs to go on.
    show: tells the progress bar how far the run is (done, total, note, before). before: what an
        earlier attempt had done, so that the bar estimates the speed from the rest alone.
    warnings: what `warn` has said so far.
    stop: whether a signal has asked for the end.
    leg: what this process has had of the run so far: commit, dirty, started, seconds.
    earlier: the legs that a checkpoint, or the tables gone on from, brought with them.
    kept: the partial record that an earlier attempt with the same code has left.
    max_updates: after how many a training stops, as at the end of the budget.
    ranks: of a training on several, its mesh and speed; kept in the record's provenance.
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
    max_updates: int | None = None
    ranks: dict[str, Any] = field(default_factory=dict)

    def warn(self, message: str) -> None:
        """Say once what went wrong, without ending the run; kept in the record's provenance."""
        if message not in self.warnings:
            self.warnings.append(message)
            if here().leads:
                tqdm.write(f"warning: {message}", file=sys.stderr)

    def attempt(self, call: Callable[[], Any], what: str) -> Any:
        """The result of `call`, or None with a warning: one that fails must not end a race.

        Raises DeviceLostError when the device answers no more: all that followed would fail too.
        """
        try:
            result = call()
            if self.device.type == "cuda":  # what fails on the device must fail here
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
        """The tables as far as an earlier attempt came, or none.

        Its time is then counted, and its warnings are kept.
        """
        if self.kept is None:
            return {}
        origin = self.kept["provenance"]
        one = {key: origin[key] for key in ("commit", "dirty", "started", "seconds")}
        self.earlier[:] = origin.get("legs", [one])
        self.warnings[:0] = origin.get("warnings", [])
        return self.kept["tables"]

    def out_of_time(self, updates: int = 0) -> bool:
        """Whether the budget is spent or a signal came: the run should save and return.

        updates: how many a training has done.
        """
        if self.stop.number is not None:
            return True
        if self.max_updates is not None and updates >= self.max_updates:
            return True
        return self.deadline is not None and time.monotonic() >= self.deadline


@dataclass(frozen=True)
class Outcome:
    """tables: the columns measured. complete: False when the budget ended first."""

    tables: Tables
    complete: bool = True


@dataclass(frozen=True)
class Experiment:
    """A module's face to the runner.

    runs: the plan for a kind of device ("cpu" or "cuda"), or its smallest version.
    perform: does one run. tables: what it writes, column by column. about: a line. text: the
    module's docstring, which `results/README.md` repeats. frozen: the last commit with the code
    behind stored results, where it is kept no longer: nothing is planned and nothing performed.
    spreads: whether its runs are trainings alone, which several ranks can share. memory: B that a
    run of a configuration needs on each of so many devices, at least; of what trains alone.
    """

    name: str
    about: str
    tables: dict[str, Table]
    runs: Callable[[str, bool], list[Run]] = lambda kind, smoke: []
    perform: Callable[[dict[str, Any], Session], Outcome] | None = None
    text: str = ""
    frozen: str = ""
    spreads: bool = False
    memory: Callable[[dict[str, Any], int], int] | None = None

    @property
    def units(self) -> dict[str, str]:
        """The unit of every column, whichever table it is in."""
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
        """Keys that the configuration of each of its runs has."""
        keys = [frozenset(run.config) for run in self.planned]
        return keys[0].intersection(*keys) if keys else frozenset()


# Every experiment by name; `experiments.catalogue` finds them.
Catalogue = Mapping[str, Experiment]
