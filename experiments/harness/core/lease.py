"""A GPU for a few minutes: run the plan within the time, and pack one archive to take home."""

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
from .states import state_of
from .stopping import Interrupted, Stop
from .weights import WEIGHTS, read_weights, run_of

START = "spawn"  # CUDA does not survive a fork
ARCHIVE = "results.tar.xz"
RESERVE = 20.0  # seconds reserved for packing and for a run to notice its deadline
TOLD, STOPPED = 3.0, 10.0  # seconds past the deadline at which a run is asked to stop, then killed
TRIES = 3  # of a run that loses the device and has progressed each time
PACK_EVERY = 10.0  # seconds between two archives of the results so far
MOST_BYTES = 16 * 2**20  # the largest file that such a computer returns
# Weights go last into an archive, and are left out if they would make it too large. They are
# compressed already, so xz only wraps them, in a third of the time of its lowest preset.
BARELY = {"dict_size": 4096, "mf": lzma.MF_HC3, "depth": 1, "nice_len": 3}
EFFORT: dict[str, dict[str, int]] = {".json": {"preset": 6}, ".npz": {"preset": 0, **BARELY}}
KINDS = tuple(EFFORT)
PACKED = ".npz"
ENDING = bytes(2 * tarfile.BLOCKSIZE)  # the end of a tar file


def pack(out: Path, most: int = MOST_BYTES, kinds: Iterable[str] = KINDS) -> tuple[Path, list[str]]:
    """Pack all sound results under `out` into one archive there, for `collect`.

    Returns the archive, and what was left out. Every file is an xz stream of its own, so it is
    compressed once, however often the archive is written, and its packed size is known. Checkpoints
    are left out: they are large, and of use only where their run continues.
    """
    ending = lzma.compress(ENDING)
    parts, left, room = [], [], most - len(ending)
    for kind in kinds:
        for path in walk(out, kind):
            name, status = str(path.relative_to(out)), path.stat()
            run = run_of(path) if path.name.endswith(WEIGHTS) else path
            version = (status.st_mtime_ns, status.st_size, run.is_file() and run.stat().st_mtime_ns)
            # A file that is compressed already and too large is not tried.
            if kind == PACKED and status.st_size > room:
                left.append(f"{name}: too large, with all else")
                continue
            part = _member(path, run, name, kind, *version)
            if isinstance(part, str) or len(part) > room:
                left.append(part if isinstance(part, str) else f"{name}: too large, with all else")
                continue
            parts.append(part)
            room -= len(part)
    path = out / ARCHIVE
    record.put(path, *parts, ending)
    return path, left


@lru_cache(maxsize=1024)
def _member(path: Path, run: Path, name: str, kind: str, *version: int) -> bytes | str:
    """A file as a compressed part of an archive, or the reason why it is left out.

    run: the record that it is, or whose weights it has. version: identifies the contents of both,
    for the cache.
    """
    try:
        if kind != PACKED:
            record.read(path)
        elif run != path:
            read_weights(run, record.read(run))
    except record.RecordError as error:
        return one_line(error)
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", dereference=True) as archive:
        archive.add(path, arcname=name)
        length = archive.offset  # start of the padding that ends an archive
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
    """Perform runs in order until the deadline; returns whether none of them failed.

    They run in another process. It is killed if a run does not end, and restarted after a run that
    lost the device, which nothing later could use. Stored results are packed meanwhile. Raises
    Interrupted after a signal, with everything stored.
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
                    with suppress(record.WriteError):  # reported at the end, if it persists
                        pack(out, kinds=[".json"])
            finally:
                if late := process.is_alive():
                    process.terminate()
                    process.join(STOPPED - TOLD)
                process.kill()
                process.join()
            if late:
                print("time is up: the run in progress was ended here", file=sys.stderr)
                break
            sound = sound and process.exitcode == 0
            if process.exitcode not in (0, 1):  # killed, possibly by itself: do not repeat that run
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
    """The runs from `at` on; `at` tells the next process where to start.

    This process has its own session: a signal from the keyboard reaches only the parent, which
    decides what ends. A run that lost the device is tried again if it has progressed.
    """
    os.setsid()
    first, rows, description = at.value, 0, describe_device(device)

    def stored_rows() -> int:
        run = runs[at.value]
        path = record.path_of(out, run.experiment, description, run.name)
        return _rows(record.partial_path(path))

    def begin(i: int) -> None:
        nonlocal rows
        at.value = first + i
        rows = stored_rows()

    budget = max(1e-3, deadline - time.monotonic())
    try:
        runner.run_all(
            catalogue, runs[first:], device, out, budget=budget, corpus=corpus, begin=begin
        )
    except Interrupted:  # asked to end, after storing its results: no failure
        return
    except DeviceLostError as error:
        print(one_line(error), file=sys.stderr)
        at.value += stored_rows() <= rows
        sys.exit(1)
    except runner.FailedError as error:
        print(one_line(error), file=sys.stderr)
        at.value = len(runs)
        sys.exit(1)
    at.value = len(runs)


def open_runs(runs: list[Run], device: dict[str, Any], out: Path, home: Path) -> list[Run]:
    """The runs that neither `out` nor `home`, the results of this device so far, has.

    A result of another configuration in `home` comes from an older plan and does not count.
    """
    return [
        run
        for run in runs
        if state_of(run, out, device) in ("missing", "partial", "unsound")
        and state_of(run, home, device) != "stored"
    ]


def _rows(partial: Path) -> int:
    """Number of rows that a run has stored."""
    try:
        return record.rows(record.read(partial)["tables"])
    except record.RecordError:
        return 0


def summary(out: Path) -> list[str]:
    """A line for each result under `out`: state, duration and warnings."""
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
