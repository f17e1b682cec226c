"""Holds stored results to what their experiments declare, and to the code that there is now."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from . import record
from .code import changed_since, is_known
from .plan import Catalogue
from .tables import check_declared, check_repeated


def read_declared(catalogue: Catalogue, path: Path, *, older: bool = False) -> dict[str, Any]:
    """Read a record and hold it to the tables its experiment declares. Raises RecordError."""
    found = record.read(path, older=older)
    if found["experiment"] not in catalogue:
        raise record.RecordError(f"{path}: experiment: there is no {found['experiment']!r}")
    declared = catalogue[found["experiment"]].tables
    try:
        check_declared(found["tables"], declared, found["units"], complete=found["complete"])
        check_repeated(found["tables"])
        _check_started(found["provenance"])
    except ValueError as error:
        raise record.RecordError(f"{path}: {error}") from error
    return found


def _check_started(origin: dict[str, Any]) -> None:
    """Raise ValueError for a run of the future. A day is left to clocks that are wrong."""
    latest = datetime.now(UTC) + timedelta(days=1)
    for leg in (origin, *origin.get("legs", [])):
        if datetime.fromisoformat(leg["started"]) > latest:
            raise ValueError(f"provenance.started: expected the past, got {leg['started']}")


def check_folder(catalogue: Catalogue, folder: Path) -> tuple[int, list[str], list[str]]:
    """Read every record under `folder`: how many, what is wrong with some, and what to know.

    To know: which results were made by code that has changed since, or by code that no commit
    holds. That makes none of them wrong.
    """
    problems, notes, total = [], [], 0
    stale: Counter[str] = Counter()
    of: Counter[str] = Counter()
    for path in sorted(Path(folder).rglob("*.json")):
        if path.name.startswith(".") or path.parent.name.startswith("."):
            continue
        total += 1
        try:
            found = read_declared(catalogue, path)
            record.check_place(path, found)
            _check_commits(path, found)
        except record.RecordError as error:
            problems.append(str(error))
            continue
        origin, experiment = found["provenance"], found["experiment"]
        of[experiment] += 1
        if origin["commit"] == "unknown":
            notes.append(f"{path}: made outside a repository; no commit holds its code")
        elif changed_since(experiment, origin["commit"], origin.get("code")):
            stale[experiment] += 1
    for experiment, count in stale.items():
        notes.append(
            f"{experiment}: the code of {count} of {of[experiment]} results has changed since"
        )
    return total, problems, notes


def _check_commits(path: Path, found: dict[str, Any]) -> None:
    origin = found["provenance"]
    for leg in (origin, *origin.get("legs", [])):
        if leg["commit"] != "unknown" and not is_known(leg["commit"]):
            raise record.RecordError(
                f"{path}: provenance.commit: {leg['commit'][:12]} is not in the history"
            )
