"""A GPU for a few minutes: the plan within the time, one archive to take home, and what is next."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from . import record
from .files import replace_with

ARCHIVE = "results.tar.xz"
RESERVE = 20.0  # seconds kept for packing, and for a run to see that its time is over
MOST_BYTES = 16 * 2**20  # what such a machine gives back in one file
# Weights go last into an archive, and not at all into one that would be too large.
KINDS = ("*.json", "*.npz")


def pack(out: Path, most: int = MOST_BYTES) -> tuple[Path, list[str]]:
    """All results under `out` in one archive there, for `collect`. Returns it and what was left.

    Checkpoints stay: they are large, and of use only where their run goes on.
    """
    files = [
        path
        for kind in KINDS
        for path in sorted(out.rglob(kind))
        if not any(part.startswith(".") for part in path.relative_to(out).parts)
    ]
    left: list[str] = []
    while True:
        held = io.BytesIO()
        with tarfile.open(fileobj=held, mode="w:xz") as archive:
            for path in files:
                archive.add(path, arcname=str(path.relative_to(out)))
        if held.tell() <= most or not files:
            break
        left.append(str(files.pop().relative_to(out)))
    path = out / ARCHIVE
    replace_with(path, held.getvalue())
    return path, left


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
