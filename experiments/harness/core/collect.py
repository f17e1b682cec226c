"""Brings results made elsewhere home: a folder or an archive of records, checked one by one."""

from __future__ import annotations

import os
import tarfile
import tempfile
from pathlib import Path

from ..learning.weights import WEIGHTS, unpack_weights
from . import record
from .checking import read_declared
from .plan import Catalogue


def collect(
    catalogue: Catalogue, source: Path, results: Path = record.RESULTS, *, force: bool = False
) -> list[str]:
    """Copy every record under `source` (a folder, or a .tar.* of one) into `results`.

    All of them, and the weights beside them, are read and checked before the first is written, and
    a record's place is made of its own fields, which are names: nothing is written outside
    `results`. A stored record is replaced only with force, or when it was partial and the new one
    is further; one that is the same and lacks its weights gets them. Returns a line a file. Raises
    RecordError.
    """
    source = Path(source)
    if source.is_dir():
        return _collect(catalogue, source, results, force)
    if not source.is_file():  # a pipe would be waited for, a device read without end
        raise record.RecordError(f"{source}: expected a folder or a regular file")
    with tempfile.TemporaryDirectory() as folder:
        try:
            with tarfile.open(source) as archive:
                archive.extractall(folder, filter="data")
        except Exception as error:  # whatever may be said of a member that someone else made
            (reason, *_) = str(error).splitlines() or [type(error).__name__]
            raise record.RecordError(
                f"{source}: not a folder or a whole archive ({reason})"
            ) from error
        return _collect(catalogue, Path(folder), results, force)


def _collect(catalogue: Catalogue, source: Path, results: Path, force: bool) -> list[str]:
    found = [
        (read_declared(catalogue, file, older=True), _packed_beside(file))
        for file in sorted(source.rglob("*.json"))
        if not file.name.startswith(".")
    ]
    if not found:
        raise record.RecordError(f"{source}: no result files in it")
    lines = []
    for new, packed in sorted(found, key=lambda one: one[0]["complete"]):
        whole = record.path_of(results, new["experiment"], new["provenance"]["device"], new["name"])
        path = whole if new["complete"] else record.partial_path(whole)
        real, home = map(os.path.realpath, (path, results))
        if not Path(real).is_relative_to(home):  # by a link, perhaps
            raise record.RecordError(f"{path}: leads out of {results}")
        weights = whole.with_suffix(WEIGHTS)
        reason = "" if force else _reason_to_keep(new, whole, path)
        if packed and (not reason or (not weights.exists() and _is_stored(new, whole))):
            record.put(weights, packed)  # first: where the record lies, all of the run does
            lines.append(f"collected {weights}")
        if reason:
            lines.append(f"kept      {path if path.exists() else whole}: {reason}")
            continue
        record.write(path, new, overwrite=True)
        if new["complete"]:
            record.partial_path(whole).unlink(missing_ok=True)
        dirty = " (`dirty`: not made by the code of its commit)" * new["provenance"]["dirty"]
        lines.append(f"collected {path}{dirty}")
    return lines


def _packed_beside(file: Path) -> bytes | None:
    """The weights that a run has left beside its record, if any. Raises RecordError."""
    weights = file.with_suffix(WEIGHTS)
    if not weights.is_file():
        return None
    try:
        packed = weights.read_bytes()
        unpack_weights(packed)
    except (OSError, ValueError) as error:
        raise record.RecordError(f"{weights}: {error}") from error
    return packed


def _is_stored(new: dict, whole: Path) -> bool:
    """Whether the very record lies at `whole`: weights of another run do not belong there."""
    try:
        return record.read(whole, older=True)["digest"] == new["digest"]
    except record.RecordError:
        return False


def _reason_to_keep(new: dict, whole: Path, path: Path) -> str:
    """Why what is stored stays; "" where there is nothing, or less than the new record has."""
    if whole.is_file():
        return "stored already; --force replaces it"
    if new["complete"] or not path.is_file():
        return ""
    further = record.rows(record.read(path)["tables"]) >= record.rows(new["tables"])
    return "at least as far" if further else ""
