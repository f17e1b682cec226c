"""Files written whole or not at all, files that are of no use but may be someone's work, errors."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

LONGEST = 2000  # characters of an error's line


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
        with suppress(OSError):
            left.unlink()


def is_there(path: Path) -> bool:
    """Whether a name is taken, by a link to nothing too."""
    return path.is_symlink() or path.exists()


def set_aside(path: Path) -> Path:
    """Rename a file that is of no use here, so that nobody's work is lost; returns the new name."""
    for i in range(1, 10_000):
        aside = path.with_name(f"{path.name}.aside-{i}")
        if not is_there(aside):
            return path.rename(aside)
    raise FileExistsError(f"{path}: too many files set aside")


def first_line(error: BaseException) -> str:
    """An exception in a line: its kind and what it says first."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def one_line(error: Exception) -> str:
    """An error's message in one line that can be printed; the system's as path and reason.

    Names of files may have anything in them: line ends, a terminal's commands, bytes of no text.
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
    """Regular files below a folder by their names' endings, in order; hidden ones left out.

    Links are followed, each folder once: a lease's results may lie on another disk.
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
