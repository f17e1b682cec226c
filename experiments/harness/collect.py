"""Brings results made elsewhere home: a folder or an archive of records, checked one by one."""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path

from . import record


def collect(source: Path, results: Path = record.RESULTS, *, force: bool = False) -> list[str]:
    """Copy every record under `source` (a folder, or a .tar.* of one) into `results`.

    All of them are read and checked before the first is written. A stored record is replaced
    only with force, or when it was partial and the new one is further. Returns a line a file.
    Raises RecordError.
    """
    source = Path(source)
    if source.is_dir():
        return _collect(source, results, force)
    with tempfile.TemporaryDirectory() as folder:
        try:
            with tarfile.open(source) as archive:
                archive.extractall(folder, filter="data")
        except (OSError, EOFError, tarfile.TarError) as error:
            raise record.RecordError(
                f"{source}: not a folder or a whole archive ({error})"
            ) from error
        return _collect(Path(folder), results, force)


def _collect(source: Path, results: Path, force: bool) -> list[str]:
    found = [
        (file, record.read(file))
        for file in sorted(source.rglob("*.json"))
        if not file.name.startswith(".")
    ]
    if not found:
        raise record.RecordError(f"{source}: no result files in it")
    lines = []
    for _, new in sorted(found, key=lambda item: item[1]["complete"]):
        whole = record.path_of(results, new["experiment"], new["provenance"]["device"], new["name"])
        path = whole if new["complete"] else record.partial_path(whole)
        if whole.exists() and not force:
            lines.append(f"kept      {whole}: stored already; --force replaces it")
            continue
        if (
            not new["complete"]
            and path.exists()
            and not force
            and record.rows(record.read(path)["tables"]) >= record.rows(new["tables"])
        ):
            lines.append(f"kept      {path}: at least as far")
            continue
        record.write(path, new, overwrite=True)
        if new["complete"]:
            record.partial_path(whole).unlink(missing_ok=True)
        lines.append(f"collected {path}")
    return lines
