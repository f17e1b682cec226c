"""Files written whole or not at all, and files that are of no use but may be someone's work."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def replace_with(path: Path, *parts: bytes | memoryview) -> None:
    """Write a file under a name of its own, sync it, then rename it to `path`. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def remove_leftovers(path: Path) -> None:
    """Remove what a killed process left of writing `path`. Only for who holds the run's lock."""
    for left in path.parent.glob(f".{path.name}.*.tmp"):
        left.unlink(missing_ok=True)


def set_aside(path: Path) -> Path:
    """Rename a file that is of no use here, so that nobody's work is lost; returns the new name."""
    for i in range(1, 10_000):
        aside = path.with_name(f"{path.name}.aside-{i}")
        if not aside.exists():
            return path.rename(aside)
    raise FileExistsError(f"{path}: too many files set aside")
