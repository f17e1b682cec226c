"""The state of a planned run: what a folder of results has of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import record
from .plan import Run
from .run_files import checkpoint_path


def state_of(run: Run, out: Path, device: dict[str, Any]) -> str:
    """State of a run: stored, changed (stored with another config), unsound, partial or missing.

    partial: there is a partial record, or a checkpoint of any number of ranks.
    """
    path = record.path_of(out, run.experiment, device, run.name)
    try:
        if path.is_file():
            return "changed" if changes(run, path) else "stored"
    except record.RecordError:
        return "unsound"  # `check` prints the error; a new run sets the file aside
    begun = record.partial_path(path), checkpoint_path(out, run, device)
    return "partial" if any(one.is_file() for one in begun) else "missing"


def changes(run: Run, path: Path) -> list[str]:
    """The keys in which the stored configuration differs from the plan. Raises RecordError."""
    stored = record.read(path)["config"]
    return sorted(
        key for key in stored.keys() | run.config.keys() if stored.get(key) != run.config.get(key)
    )
