"""Goes through the plan: which runs, in what order, within which budget; resumes, stops cleanly."""

from __future__ import annotations

import math
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from . import record
from .code import git
from .files import in_bytes, one_line
from .plan import Catalogue, DeviceLostError, Experiment, Run, Session, UsageError, is_lost
from .provenance import describe_device, memory_of_rank
from .run_files import Keeper, lock_path
from .states import changes, state_of
from .stopping import Interrupted, Stop, lock
from .team import TOLD, here

DAY = timedelta(days=1)
EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)  # a clock that was never set says less


class FailedError(Exception):
    """Runs that broke off, by name; the others went on. The first rank says so."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        if not here().leads:
            self.add_note(TOLD)


def no_text(name: str) -> Any:
    """Raise UsageError: the runner was given nothing that opens texts."""
    raise UsageError(f"corpus {name}: expected something that opens it, got nothing")


def find_device(name: str | None) -> torch.device:
    """The device asked for, or the best there is. Raises UsageError."""
    if name not in (None, "cpu", "cuda"):
        raise UsageError(f"device: expected cpu or cuda, got {name!r}")
    if name == "cuda" and not torch.cuda.is_available():
        raise UsageError("device: cuda asked for, but torch sees no GPU; use --device cpu")
    return torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))


def plan(
    catalogue: Catalogue,
    experiments: Iterable[str],
    kind: str,
    *,
    smoke: bool = False,
    only: Iterable[str] = (),
) -> list[Run]:
    """The runs of these experiments (of all if empty), filtered and ordered by priority."""
    names = list(experiments) or list(catalogue)
    for name in names:
        if name not in catalogue:
            raise UsageError(f"experiment: expected one of {', '.join(catalogue)}, got {name!r}")
        if experiments and (last := catalogue[name].frozen):
            raise UsageError(f"experiment: the code of {name} was removed after commit {last}")
    runs = [run for name in names for run in catalogue[name].runs(kind, smoke)]
    # A value may contain a comma; only one before another key separates two items.
    wanted = [part for item in only for part in re.split(r",(?=[^,]*=)", item)]
    for part in wanted:
        key, equals, value = part.partition("=")
        if not equals:
            raise UsageError(f"--only: expected key=value, got {part!r}")
        given = [{"name": run.name, **run.config} for run in runs]
        known = sorted({str(one[key]) for one in given if key in one})
        if not known:
            keys = sorted({key for one in given for key in one})
            raise UsageError(f"--only: no run has {key!r}; keys are {', '.join(keys)}")
        runs = [run for run, one in zip(runs, given, strict=True) if str(one.get(key)) == value]
        if not runs:
            raise UsageError(f"--only: no run has {part}; {key} can be {', '.join(known)}")
    return sorted(runs, key=lambda run: run.priority)


def check_apart(out: Path, smoke: bool) -> None:
    """Raise UsageError for tiny runs among the book's results: they have the names of real ones."""
    if smoke and out.resolve() == record.RESULTS.resolve():
        raise UsageError(f"--smoke: expected --out with a folder other than {record.RESULTS}")


def new_results(number: int) -> str:
    """A number of runs that ended, in words."""
    return f"{number} new result{'s' * (number != 1)}"


def run_all(
    catalogue: Catalogue,
    runs: list[Run],
    device: torch.device,
    out: Path,
    *,
    budget: float | None = None,
    force: bool = False,
    corpus: Callable[[str], Any] = no_text,
    begin: Callable[[int], None] = lambda i: None,
) -> int:
    """Perform the runs that are not stored yet. Returns how many were completed.

    budget: seconds for everything; a run that does not fit is stored in part.
    corpus: opens a text by name. begin: called with each run's number before it starts.
    If a run fails, the others are still performed, and FailedError names it at the end. A run that
    another process is performing is skipped. Raises Interrupted after a signal, with everything
    stored; DeviceLostError if no further run could use the device.

    In a team every rank calls it, and the first decides. A run that cannot be performed is skipped
    by all; one that fails ends the team, since other ranks would wait for this one.
    """
    if budget is not None and not 0 < budget < float("inf"):
        raise UsageError(f"--budget: expected seconds above 0, got {budget}")
    deadline = math.inf if budget is None else time.monotonic() + budget
    ended, failed, team, stop = 0, [], here(), Stop()
    options: Any = {"corpus": _opened_once(corpus), "force": force, "stop": stop}
    team.first(lambda: check_place(out))
    with stop.listening():
        for i, run in enumerate(runs):
            label = f"[{i + 1}/{len(runs)}] {run.experiment} {run.name}"
            message, over, refused = "", False, False
            path = lock_path(out, run, describe_device(device))
            try:
                with lock(path) if team.leads else nullcontext(True) as mine:
                    left = len(runs) - i if time.monotonic() >= deadline else 0
                    task = catalogue[run.experiment], run, device, out, label
                    message, over, refused = team.first(partial(_verdict, mine, *task, left, force))
                    if not message:
                        begin(i)
                        ended += perform(*task, deadline, **options)
            except Exception as error:
                if team.size > 1:
                    raise
                failed.append(f"{run.experiment} {run.name}")
                _report(error, label, device)
            if refused:
                failed.append(f"{run.experiment} {run.name}")
            if message and team.leads:
                print(message, file=sys.stderr if refused else sys.stdout, flush=True)
            if over:
                break
            clear(device)
    if failed:
        raise FailedError(f"{new_results(ended)} under {out}; broke off: {', '.join(failed)}")
    return ended


def _verdict(
    mine: bool,
    experiment: Experiment,
    run: Run,
    device: torch.device,
    out: Path,
    label: str,
    left: int,
    force: bool,
) -> tuple[str, bool, bool]:
    """Why a run is not performed, or ""; whether this ends the plan; whether it is an error.

    left: number of runs that there is no time for.
    """
    if not mine:
        return f"{label}: another process is running it", False, False
    description = describe_device(device)
    if state_of(run, out, description) in ("stored", "changed") and not force:
        other = ", ".join(changes(run, record.path_of(out, run.experiment, description, run.name)))
        message = f", with other values of {other}; --force replaces it" if other else ""
        return f"{label}: stored already{message}", False, False
    if left:
        return f"budget spent: {left} runs left", True, False
    try:
        check_memory(experiment, run, device)
    except UsageError as error:
        return f"{label}: {one_line(error)}", False, True
    return "", False, False


def _report(error: Exception, label: str, device: torch.device) -> None:
    """Print why a run failed, in one line unless the fault is in the code.

    Raises DeviceLostError if no other run can use the device.
    """
    if isinstance(error, UsageError | record.RecordError | OSError):
        print(f"{label}: {one_line(error)}", file=sys.stderr)
        return
    traceback.print_exc()
    if isinstance(error, DeviceLostError) or is_lost(device):
        name = label.partition("] ")[2]
        message = f"{name}: the device is lost to this process: begin another"
        raise DeviceLostError(message) from None


def check_memory(experiment: Experiment, run: Run, device: torch.device) -> None:
    """Raise UsageError for a run that does not fit, or cannot be spread over these ranks."""
    needs = experiment.memory(run.config, here().size) if experiment.memory else 0
    has = memory_of_rank(device)
    if needs > has:
        raise UsageError(
            f"memory: expected {in_bytes(needs)} for each rank, got {in_bytes(has)}; more ranks "
            "need less each"
        )


def _opened_once(corpus: Callable[[str], Any]) -> Callable[[str], Any]:
    """`corpus`, remembering its errors: a text that was not found is not searched for again."""
    missing: dict[str, UsageError] = {}

    def load(name: str) -> Any:
        if name in missing:
            raise missing[name]
        try:
            return corpus(name)
        except UsageError as error:
            missing[name] = error
            raise

    return load


def clear(device: torch.device) -> None:
    """Free everything that a run leaves behind.

    torch caches compiled code by its source, and gives up on a source after eight compilations. The
    fifth model trained would run uncompiled, with one line of warning.
    """
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def perform(
    experiment: Experiment,
    run: Run,
    device: torch.device,
    out: Path,
    label: str,
    deadline: float | None = None,
    corpus: Callable[[str], Any] = no_text,
    *,
    force: bool = False,
    stop: Stop | None = None,
) -> bool:
    """Perform one run and store it: whole at its own name, or in part as a partial record.

    The partial record is also stored if the run fails; the exception is raised again.
    """
    keeper, team = Keeper(experiment, run, device, out), here()

    def opened(name: str) -> Any:
        text = corpus(name) if team.leads else None
        team.first(lambda: None)  # the first rank may have prepared it for the others
        text = text or corpus(name)
        keeper.origin["corpus"] = text.sha256
        return text

    with _bar(label) as (bar, show):
        session = Session(
            device=device,
            corpus=opened,
            save=keeper.save,
            show=show,
            checkpoint=keeper.checkpoint,
            deadline=deadline,
            stop=stop or Stop(),
            leg=keeper.leg,
            keep_weights=keeper.keep_weights,
        )
        keeper.open(session, force=force)
        assert experiment.perform is not None  # otherwise nothing would be planned
        try:
            outcome = experiment.perform(run.config, session)
        except BaseException:
            keeper.keep_latest()
            raise
        if outcome.complete:
            keeper.store(outcome.tables)
        else:
            keeper.keep(outcome.tables)
        bar.set_postfix_str("stored" if outcome.complete else "stopped; its part is kept")
    if team.any(session.stop.number is not None)[0]:
        raise Interrupted(session.stop.number or signal.SIGTERM)
    return outcome.complete


@contextmanager
def _bar(label: str) -> Iterator[tuple[tqdm, Callable[..., None]]]:
    """Context with a progress bar in units of the run's own progress, and `Session.show`."""
    with tqdm(
        desc=label,
        total=1,
        disable=not here().leads,
        mininterval=1.0 if sys.stderr.isatty() else 20.0,
        bar_format="{desc} {percentage:3.0f}%|{bar:20}| {elapsed}<{remaining} {postfix}",
    ) as bar:

        def show(done: float, total: float, note: str, before: float = 0.0) -> None:
            bar.total = total
            if before:
                bar.initial = before
            bar.set_postfix_str(note, refresh=False)
            bar.update(min(done, total) - bar.n)  # the last update may pass the time given

        yield bar, show


def check_place(out: Path) -> None:
    """Check before the first run that the folder can be written to and the clock is set."""
    now = datetime.now(UTC)
    code = datetime.fromtimestamp(int(git("log", "-1", "--format=%ct") or 0), UTC)
    if not max(EARLIEST, code - DAY) < now < max(EARLIEST, code) + 10 * 365 * DAY:
        raise UsageError(f"this computer's clock says {now:%Y-%m-%d %H:%M}: set it, then run again")
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=out).close()
    except OSError as error:
        raise record.RecordError(
            f"{out}: cannot be written ({error.strerror}); choose another folder with --out"
        ) from error
