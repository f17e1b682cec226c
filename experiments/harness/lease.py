"""A GPU for a few minutes: the plan within the time, one archive to take home, and what is next."""

from __future__ import annotations

import io
import lzma
import tarfile
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from . import record
from .files import replace_with

ARCHIVE = "results.tar.xz"
RESERVE = 20.0  # seconds kept for packing, and for a run to see that its time is over
MOST_BYTES = 16 * 2**20  # what such a machine gives back in one file
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


def told(out: Path) -> list[str]:
    """A line a result under `out`: what it is, how long it took, what went wrong."""
    lines = []
    for path in sorted(out.rglob("*.json")):
        if path.name.startswith("."):
            continue
        try:
            run = record.read(path, older=True)
        except record.RecordError as error:
            lines.append(f"{path}: {error}")
            continue
        origin = run["provenance"]
        state = "whole" if run["complete"] else "partial"
        lines.append(f"{run['experiment']} {run['name']}: {state}, {origin['seconds']:.0f} s")
        lines += [f"  warning: {text}" for text in origin.get("warnings", ())]
    return lines
