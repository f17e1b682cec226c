"""Writing files whole or not at all, setting unusable files aside, and printing errors."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "results"
LONGEST = 2000  # characters of an error's line


def replace_with(path: Path, *parts: bytes | memoryview) -> None:
    """Write a file under a temporary name, sync it, and rename it to `path`. Raises OSError."""
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
    """Remove temporary files of a killed process. Only the holder of the run's lock may call it."""
    for left in path.parent.glob(f".{path.name}.*.tmp"):
        with suppress(OSError):
            left.unlink()


def is_there(path: Path) -> bool:
    """Whether a name is taken, also by a broken link."""
    return path.is_symlink() or path.exists()


def set_aside(path: Path) -> Path:
    """Rename a file that is unusable here, so that nothing is lost; returns the new name."""
    for i in range(1, 10_000):
        aside = path.with_name(f"{path.name}.aside-{i}")
        if not is_there(aside):
            return path.rename(aside)
    raise FileExistsError(f"{path}: too many files set aside")


def in_bytes(count: float) -> str:
    """A number of bytes for people: 39 MB, 80.0 GB."""
    return f"{count / 1e6:.0f} MB" if count < 1e9 else f"{count / 1e9:.1f} GB"


def first_line(error: BaseException) -> str:
    """An exception in one line: its type and the first line of its message."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def one_line(error: Exception) -> str:
    """An error's message in one printable line; a system error as path and reason.

    File names may contain anything: line ends, a terminal's control codes, invalid UTF-8.
    """
    said = str(error)
    if isinstance(error, OSError) and error.strerror:
        place = error.filename2 or error.filename
        said = f"{place}: {error.strerror}" if place else error.strerror
    return printable(said)


def printable(text: str) -> str:
    """A text as one line for a terminal, at most `LONGEST` characters of it."""
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}… ({len(text)} characters)"
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def walk(folder: Path, *endings: str) -> Iterator[Path]:
    """Regular files below a folder whose names end so, in order, without hidden ones.

    Links are followed, each folder once: results may lie on another disk.
    """
    seen = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        if (real := os.path.realpath(place)) in seen:
            folders.clear()
            continue
        seen.add(real)
        for name in sorted(names):
            path = Path(place, name)
            if name.endswith(endings) and not name.startswith(".") and path.is_file():
                yield path
