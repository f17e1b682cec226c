"""Collecting results made elsewhere: a folder or an archive of records, checked one by one."""

from __future__ import annotations

import json
import os
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from . import record
from .checking import read_declared
from .files import printable, walk
from .plan import Catalogue
from .weights import WEIGHTS, describe_weights, read_weights

LARGEST, MOST_BYTES, MOST_FILES = 64 * 2**20, 2**30, 10_000


def collect(
    catalogue: Catalogue, source: Path, results: Path = record.RESULTS, *, force: bool = False
) -> list[str]:
    """Copy every record under `source` (a folder, or a .tar.* of one) into `results`.

    All records, and the weights beside them, are read and checked before the first is written. A
    record's path is made of its own checked fields, so nothing is written outside `results`. A
    stored record is replaced only with force, or if it was partial and the new one has more rows.
    If a stored record lacks its weights, it gets them; a record may come without, and says no more
    that it has some. Returns a line a file. Raises RecordError.
    """
    source = Path(source)
    if source.is_dir():
        return _collect(catalogue, source, results, force)
    if not source.is_file():  # reading a pipe would wait, reading a device might not end
        raise record.RecordError(f"{source}: expected a folder or a regular file")
    with tempfile.TemporaryDirectory() as folder:
        try:
            with tarfile.open(source) as archive:
                archive.extractall(folder, _within_limits(archive), filter="data")
        except Exception as error:  # any error that a foreign archive may cause
            (reason, *_) = str(error).splitlines() or [type(error).__name__]
            raise record.RecordError(
                f"{source}: not a folder or a whole archive ({reason})"
            ) from error
        try:
            lines = _collect(catalogue, Path(folder), results, force)
        except record.RecordError as error:  # the folder is gone when this is read
            raise record.RecordError(str(error).replace(folder, str(source))) from error
        return [line.replace(folder, str(source)) for line in lines]


def _within_limits(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members of an archive, if all of them are within the limits. Raises ValueError.

    A sparse member of 10 KB may claim a size of 200 GB.
    """
    size = 0
    for i, member in enumerate(archive):
        size += member.size
        if member.size > LARGEST or size > MOST_BYTES or i >= MOST_FILES:
            raise ValueError(
                f"{member.name:.100}: expected at most {LARGEST:,} bytes a file, {MOST_BYTES:,} "
                f"and {MOST_FILES:,} files in all"
            )
        yield member


def _collect(catalogue: Catalogue, source: Path, results: Path, force: bool) -> list[str]:
    records, lines = [], []
    for file in walk(source, ".json"):
        if _is_something_else(file):
            lines.append(printable(f"left out  {file}: not a record"))
            continue
        new = read_declared(catalogue, file)
        # An archive that would have been too large has none, nor one of a lease that was cut off.
        packed = read_weights(file, new) if file.with_suffix(WEIGHTS).is_file() else None
        if packed is not None:
            new = record.sign({**new, "weights": describe_weights(packed)})
        records.append((new, packed))
    if not records:
        raise record.RecordError(f"{source}: no result files in it")
    for new, packed in sorted(records, key=lambda one: one[0]["complete"]):
        whole = record.path_of(results, new["experiment"], new["provenance"]["device"], new["name"])
        path = whole if new["complete"] else record.partial_path(whole)
        real, home = map(os.path.realpath, (path, results))
        if not Path(real).is_relative_to(home):  # through a link
            raise record.RecordError(f"{path}: leads out of {results}")
        weights, without = whole.with_suffix(WEIGHTS), "weights" in new and packed is None
        if without and not weights.exists():
            new = record.sign({key: value for key, value in new.items() if key != "weights"})
        lacks_them = packed and not weights.exists() and _is_stored(new, whole)
        reason = "" if force or lacks_them else _reason_to_keep(new, whole, path)
        if packed and not reason:
            record.put(weights, packed)  # first: a record implies that all its files exist
            lines.append(f"collected {weights}")
        if reason:
            lines.append(f"kept      {path if path.exists() else whole}: {reason}")
            continue
        record.write(path, new)
        if new["complete"]:
            record.partial_path(whole).unlink(missing_ok=True)
        dirty = " (`dirty`: not made by the code of its commit)" * new["provenance"]["dirty"]
        lines.append(f"collected {path}{dirty}{' (without its weights)' * without}")
    return lines


def _is_something_else(file: Path) -> bool:
    """Whether a file is JSON but not a record: a settings file, for example."""
    try:
        contents = json.loads(file.read_bytes()) if file.stat().st_size <= LARGEST else {}
    except (OSError, ValueError, RecursionError):
        return False
    return not (isinstance(contents, dict) and "schema" in contents)


def _is_stored(new: dict, whole: Path) -> bool:
    """Whether `whole` has the same run: weights of another run do not belong there."""
    aside = {"digest", "weights"}
    try:
        stored = record.read(whole)
    except record.RecordError:
        return False
    return all(stored.get(key) == new.get(key) for key in (stored.keys() | new.keys()) - aside)


def _reason_to_keep(new: dict, whole: Path, path: Path) -> str:
    """Why the stored record stays; "" if there is none, or one with less than the new record."""
    if whole.is_file():
        return "stored already; --force replaces it"
    if new["complete"] or not path.is_file():
        return ""
    further = record.rows(record.read(path)["tables"]) >= record.rows(new["tables"])
    return "at least as far" if further else ""
