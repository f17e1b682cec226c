"""A GPU for a few minutes: the plan within the time, one archive to take home, and what is next."""

from __future__ import annotations

import io
import lzma
import sys
import tarfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path

import torch

from ..learning.corpora import load_corpus
from . import record, runner
from .files import one_line, replace_with
from .outlook import choose, expected
from .plan import Catalogue, Experiment, Run
from .provenance import describe_device
from .stopping import Interrupted, Stop, lock
from .workers import Worker

ARCHIVE = "results.tar.xz"
RESERVE = 20.0  # seconds kept for packing, and for a run to see that its time is over
TOLD, STOPPED = 3.0, 10.0  # seconds past the deadline: asked to stop, then killed
PATIENCE, AT_LEAST = 4, 60.0  # a run may take 4 x its expected time + 60 s
TRIES = 3  # of a run that loses the device and comes further each time
MOST_BYTES = 16 * 2**20  # what such a computer gives back in one file
# Weights go last into an archive, and not at all into one that would be too large. They are
# compressed already: xz is asked for little more than that the archive is one, in a third of the
# time that its lowest preset takes.
BARELY = {"dict_size": 4096, "mf": lzma.MF_HC3, "depth": 1, "nice_len": 3}
EFFORT: dict[str, dict[str, int]] = {"*.json": {"preset": 6}, "*.npz": {"preset": 0, **BARELY}}
KINDS = tuple(EFFORT)
PACKED = "*.npz"
ENDING = bytes(2 * tarfile.BLOCKSIZE)  # what a tar file ends with


def pack(out: Path, most: int = MOST_BYTES, kinds: Iterable[str] = KINDS) -> tuple[Path, list[str]]:
    """All results under `out` in one archive there, for `collect`. Returns it and what was left.

    Every file is an xz stream of its own, so that its part of the whole is known once it is
    compressed, which happens once, however often the archive is written. Checkpoints stay: they
    are large, and of use only where their run goes on.
    """
    ending = lzma.compress(ENDING)
    parts, left, room = [], [], most - len(ending)
    for kind in kinds:
        for path in sorted(out.rglob(kind)):
            name = path.relative_to(out)
            if any(part.startswith(".") for part in name.parts):
                continue
            found = path.stat()
            # What is compressed already and too large need not be tried.
            if kind == PACKED and found.st_size > room:
                left.append(str(name))
                continue
            part = _member(path, str(name), kind, found.st_mtime_ns, found.st_size)
            if len(part) > room:
                left.append(str(name))
                continue
            parts.append(part)
            room -= len(part)
    path = out / ARCHIVE
    replace_with(path, *parts, ending)
    return path, left


@lru_cache(maxsize=1024)
def _member(path: Path, name: str, kind: str, *version: int) -> bytes:
    """A file as a compressed part of an archive; `version` says whether it is still the same."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        archive.add(path, arcname=name)
        length = archive.offset  # where the padding begins that ends a whole archive
    filters = [{"id": lzma.FILTER_LZMA2, **EFFORT[kind]}]
    return lzma.compress(held.getvalue()[:length], filters=filters)


def go_through(
    catalogue: Catalogue,
    runs: list[Run],
    device: torch.device,
    out: Path,
    *,
    deadline: float,
    corpus_source: Path | None = None,
    after: Callable[[], object] = lambda: None,
) -> list[str]:
    """Perform runs in their order, each where it fits, until the deadline. What broke off.

    They run in another process, which is replaced where one of them loses the device, and ended
    where one does not end: whatever happens there, this one is left to pack what was stored.
    `after` is called after each. Raises Interrupted when a signal came, with everything stored.
    """
    worker, stop, waiting, failed = Worker(device), Stop(), [*runs], []
    try:
        with stop.listening():
            while waiting and (left := deadline - time.monotonic()) > 0:
                run = choose(waiting, left)
                waiting.remove(run)
                label = f"[{len(runs) - len(waiting)}/{len(runs)}] {run.experiment} {run.name}"
                print(label, flush=True)
                details = (catalogue[run.experiment], run, device, out, label)
                problem = _persist(worker, details, deadline, corpus_source)
                if problem:
                    print(f"{label}: {problem}", file=sys.stderr)
                    failed.append(f"{run.experiment} {run.name}")
                after()
    except Interrupted:
        if worker.process is not None:
            worker.stop(STOPPED - TOLD)
        raise
    finally:
        worker.end()
    if waiting:
        print(f"time is over: {len(waiting)} runs left", flush=True)
    return failed


def _persist(
    worker: Worker,
    details: tuple[Experiment, Run, torch.device, Path, str],
    deadline: float,
    corpus_source: Path | None,
) -> str:
    """Do a run, again where it lost the device and yet came further. Returns what went wrong."""
    _, run, device, out, _ = details
    whole = record.path_of(out, run.experiment, describe_device(device), run.name)
    kept = record.partial_path(whole)
    problem = ""
    for _ in range(TRIES):
        rows, now = _rows(kept), time.monotonic()
        seconds = expected(run)
        patience = None if seconds is None else now + PATIENCE * seconds + AT_LEAST
        until = min(deadline, patience or deadline)
        worker.give(_one, *details, until, corpus_source)
        answer = worker.answer(max(0, until + TOLD - now))
        if answer is None:
            answer = worker.stop(STOPPED - TOLD)
            return answer.problem
        problem = answer.problem
        if not answer.lost or _rows(kept) <= rows or time.monotonic() >= until:
            break
    return problem


def _one(
    experiment: Experiment,
    run: Run,
    device: torch.device,
    out: Path,
    label: str,
    deadline: float,
    corpus_source: Path | None,
) -> None:
    """A run in a process that is told by a signal when it is to end."""
    runner.clear(device)
    stop = Stop()
    path = record.path_of(out, run.experiment, describe_device(device), run.name)
    # Told to end, it has stored what there is: that is no failure.
    with suppress(Interrupted), stop.listening(), lock(path) as mine:
        if not mine:
            print(f"{label}: another process is running it", flush=True)
            return
        texts = partial(load_corpus, source=corpus_source)
        runner.perform(experiment, run, device, out, label, deadline, texts, stop=stop)


def _rows(kept: Path) -> int:
    """How far a run has come, by what it has left."""
    try:
        return record.rows(record.read(kept)["tables"])
    except record.RecordError:
        return 0


def told(out: Path) -> list[str]:
    """A line a result under `out`: what it is, how long it took, what went wrong."""
    lines = []
    for path in sorted(out.rglob("*.json")):
        if path.name.startswith("."):
            continue
        try:
            run = record.read(path, older=True)
        except record.RecordError as error:
            lines.append(one_line(error))
            continue
        origin = run["provenance"]
        state = "whole" if run["complete"] else "partial"
        lines.append(f"{run['experiment']} {run['name']}: {state}, {origin['seconds']:.0f} s")
        lines += [f"  warning: {text}" for text in origin.get("warnings", ())]
    return lines
