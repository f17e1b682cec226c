"""Brings results made elsewhere home: a folder or an archive of records, checked one by one."""

from __future__ import annotations

import lzma
import tarfile
import tempfile
import zlib
from pathlib import Path

from . import record
from .checking import read_declared
from .files import replace_with
from .plan import Catalogue
from .trained import WEIGHTS, unpack_weights


def collect(
    catalogue: Catalogue, source: Path, results: Path = record.RESULTS, *, force: bool = False
) -> list[str]:
    """Copy every record under `source` (a folder, or a .tar.* of one) into `results`.

    All of them are read and checked before the first is written, and a record's place is made of
    its own fields, which are names: nothing is written outside `results`. A stored record is
    replaced only with force, or when it was partial and the new one is further. Returns a line a
    file. Raises RecordError.
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
        except (OSError, EOFError, lzma.LZMAError, zlib.error, tarfile.TarError) as error:
            (reason, *_) = str(error).splitlines() or [type(error).__name__]
            raise record.RecordError(
                f"{source}: not a folder or a whole archive ({reason})"
            ) from error
        return _collect(catalogue, Path(folder), results, force)


def _collect(catalogue: Catalogue, source: Path, results: Path, force: bool) -> list[str]:
    found = [
        (file, read_declared(catalogue, file, older=True))
        for file in sorted(source.rglob("*.json"))
        if not file.name.startswith(".")
    ]
    if not found:
        raise record.RecordError(f"{source}: no result files in it")
    lines = []
    for file, new in sorted(found, key=lambda one: one[1]["complete"]):
        whole = record.path_of(results, new["experiment"], new["provenance"]["device"], new["name"])
        path = whole if new["complete"] else record.partial_path(whole)
        if not path.resolve().is_relative_to(Path(results).resolve()):  # by a link, perhaps
            raise record.RecordError(f"{path}: leads out of {results}")
        reason = "" if force else _reason_to_keep(new, whole, path)
        if reason:
            lines.append(f"kept      {path if path.exists() else whole}: {reason}")
            continue
        record.write(path, new, overwrite=True)
        if new["complete"]:
            record.partial_path(whole).unlink(missing_ok=True)
            _bring_weights(file, whole)
        lines.append(f"collected {path}")
    return lines


def _bring_weights(source: Path, target: Path) -> None:
    """What a run leaves beside its record comes along."""
    weights = source.with_suffix(WEIGHTS)
    if not weights.is_file():
        return
    packed = weights.read_bytes()
    try:
        unpack_weights(packed)
    except ValueError as error:
        raise record.RecordError(f"{weights}: {error}") from error
    replace_with(target.with_suffix(WEIGHTS), packed)


def _reason_to_keep(new: dict, whole: Path, path: Path) -> str:
    """Why what is stored stays; "" where there is nothing, or less than the new record has."""
    if whole.exists():
        return "stored already; --force replaces it"
    if new["complete"] or not path.exists():
        return ""
    further = record.rows(record.read(path)["tables"]) >= record.rows(new["tables"])
    return "at least as far" if further else ""
