"""A GPU for a few minutes: the plan within the time, and one archive to take home."""

from __future__ import annotations

import io
import lzma
import os
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from . import record, runner
from .files import one_line, printable, walk
from .plan import Catalogue, DeviceLostError, Run
from .provenance import describe_device
from .stopping import Interrupted, Stop

START = "spawn"  # CUDA does not outlive a fork
ARCHIVE = "results.tar.xz"
RESERVE = 20.0  # seconds kept for packing, and for a run to see that its time is over
TOLD, STOPPED = 3.0, 10.0  # seconds past the deadline: asked to stop, then killed
TRIES = 3  # of a run that loses the device and comes further each time
PACK_EVERY = 10.0  # seconds from one archive to the next, of what is stored by then
MOST_BYTES = 16 * 2**20  # what such a computer gives back in one file
# Weights go last into an archive, and not at all into one that would be too large. They are
# compressed already: xz is asked for little more than that the archive is one, in a third of the
# time that its lowest preset takes.
BARELY = {"dict_size": 4096, "mf": lzma.MF_HC3, "depth": 1, "nice_len": 3}
EFFORT: dict[str, dict[str, int]] = {".json": {"preset": 6}, ".npz": {"preset": 0, **BARELY}}
KINDS = tuple(EFFORT)
PACKED = ".npz"
ENDING = bytes(2 * tarfile.BLOCKSIZE)  # what a tar file ends with


def pack(out: Path, most: int = MOST_BYTES, kinds: Iterable[str] = KINDS) -> tuple[Path, list[str]]:
    """All sound results under `out` in one archive there, for `collect`. Returns what was left too.

    Every file is an xz stream of its own. So it is compressed once, however often the archive is
    written, and its size in the archive is known then. Checkpoints stay: they are large, and of
    use only where their run goes on.
    """
    ending = lzma.compress(ENDING)
    parts, left, room = [], [], most - len(ending)
    for kind in kinds:
        for path in walk(out, kind):
            name, found = str(path.relative_to(out)), path.stat()
            version = (found.st_mtime_ns, found.st_size)
            # A file that is compressed already and too large need not be tried.
            if kind == PACKED and found.st_size > room:
                left.append(f"{name}: too large, with all else")
                continue
            part = _member(path, name, kind, *version)
            if isinstance(part, str) or len(part) > room:
                left.append(part if isinstance(part, str) else f"{name}: too large, with all else")
                continue
            parts.append(part)
            room -= len(part)
    path = out / ARCHIVE
    record.put(path, *parts, ending)
    return path, left


@lru_cache(maxsize=1024)
def _member(path: Path, name: str, kind: str, *version: int) -> bytes | str:
    """A file as a compressed part of an archive, or why it is none of a run's.

    version: says whether it is still the same.
    """
    if kind != PACKED:
        try:
            record.read(path)
        except record.RecordError as error:
            return one_line(error)
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", dereference=True) as archive:
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
    corpus: Callable[[str], Any],
) -> bool:
    """Perform runs in their order until the deadline; whether none of them broke off.

    They run in another process, which is ended where a run does not end, and begun anew after one
    that lost the device: nothing that follows could use it. Stored results are packed meanwhile.
    Raises Interrupted when a signal came, with everything stored.
    """
    context, sound, tries = get_context(START), True, Counter[int]()
    at: Any = context.Value("i", 0)
    with Stop().listening():
        while at.value < len(runs) and time.monotonic() < deadline:
            tries[began := at.value] += 1
            given = (catalogue, runs, at, device, out, deadline, corpus)
            process = context.Process(target=_perform, args=given)
            process.start()
            try:
                while process.is_alive() and (left := deadline + TOLD - time.monotonic()) > 0:
                    process.join(min(left, PACK_EVERY))
                    with suppress(record.WriteError):  # said at the end, if it is so then
                        pack(out, kinds=[".json"])
            finally:
                if process.is_alive():
                    process.terminate()
                    process.join(STOPPED - TOLD)
                process.kill()
                process.join()
            sound = sound and process.exitcode == 0
            if process.exitcode not in (0, 1):  # killed, by itself perhaps: not that run again
                print(f"the process ended with {process.exitcode}", file=sys.stderr)
                at.value += 1
            elif at.value == began and tries[began] == TRIES:
                at.value += 1
    return sound


def _perform(
    catalogue: Catalogue,
    runs: list[Run],
    at: Any,
    device: torch.device,
    out: Path,
    deadline: float,
    corpus: Callable[[str], Any],
) -> None:
    """The runs from `at` on, which is left where another process is to begin.

    In a session of its own: a signal from the keyboard reaches the parent alone, which says what
    is to end. A run that lost the device and came further by it is tried again.
    """
    os.setsid()
    first, rows, description = at.value, 0, describe_device(device)

    def kept() -> int:
        run = runs[at.value]
        path = record.path_of(out, run.experiment, description, run.name)
        return _rows(record.partial_path(path))

    def begin(i: int) -> None:
        nonlocal rows
        at.value = first + i
        rows = kept()

    budget = max(1e-3, deadline - time.monotonic())
    try:
        runner.run_all(
            catalogue, runs[first:], device, out, budget=budget, corpus=corpus, begin=begin
        )
    except Interrupted:  # told to end, it has stored what there is: that is no failure
        return
    except DeviceLostError as error:
        print(one_line(error), file=sys.stderr)
        at.value += kept() <= rows
        sys.exit(1)
    except runner.FailedError as error:
        print(one_line(error), file=sys.stderr)
        at.value = len(runs)
        sys.exit(1)
    at.value = len(runs)


def open_runs(runs: list[Run], device: dict[str, Any], out: Path, home: Path) -> list[Run]:
    """The runs that neither `out` has nor `home`, where results of this device may lie.

    There one of another configuration is an older plan's, and does not stand for the run.
    """
    return [
        run
        for run in runs
        if runner.state_of(run, out, device) in ("missing", "partial", "unsound")
        and runner.state_of(run, home, device) != "stored"
    ]


def _rows(kept: Path) -> int:
    """How far a run has come, by what it has left."""
    try:
        return record.rows(record.read(kept)["tables"])
    except record.RecordError:
        return 0


def told(out: Path) -> list[str]:
    """A line a result under `out`: what it is, how long it took, what went wrong."""
    lines = []
    for path in walk(out, ".json"):
        try:
            run = record.read(path)
        except record.RecordError as error:
            lines.append(one_line(error))
            continue
        origin = run["provenance"]
        state = "whole" if run["complete"] else "partial"
        lines.append(f"{run['experiment']} {run['name']}: {state}, {origin['seconds']:.0f} s")
        lines += [f"  warning: {printable(text)}" for text in origin.get("warnings", ())]
    return lines
