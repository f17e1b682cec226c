"""Holds stored results to what their experiments declare, and to the code that there is now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from . import record
from .changes import Changes, changed_since
from .code import is_known
from .plan import Catalogue
from .tables import check_declared, check_repeated

NAMED = 4  # files that an experiment's line names; `check --changes` names them all


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


def check_folder(
    catalogue: Catalogue, folder: Path, *, changes: bool = False
) -> tuple[int, list[str], list[str]]:
    """Read every record under `folder`: how many, what is wrong with some, and what to know.

    To know: of which results code has changed since, in which files, or that this cannot be
    told. That makes none of them wrong. changes: name every file and definition.
    """
    problems, total = [], 0
    ages: dict[str, list[Changes | None]] = {}
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
        experiment = found["experiment"]
        ages.setdefault(experiment, []).append(changed_since(experiment, found))
    notes = [note for one in ages for note in _told(one, ages[one], whole=changes)]
    return total, problems, notes


def _told(experiment: str, ages: list[Changes | None], *, whole: bool) -> Iterator[str]:
    """Lines on what has changed behind an experiment's results, the most common first."""
    untold, stale = ages.count(None), [one for one in ages if one]
    if untold:
        yield (
            f"{experiment}: cannot tell whether the code of {untold} of {len(ages)} results has "
            "changed since: no commit that can be read here holds it"
        )
    if not stale:
        return
    times = Counter(file for one in stale for file in one)
    files = sorted(times, key=lambda file: (-times[file], file))
    told = f"{experiment}: the code of {len(stale)} of {len(ages)} results has changed since"
    if whole:
        yield told
        for file in files:
            names = sorted(set().union(*(one.get(file, ()) for one in stale)))
            yield f"    {times[file]:3d}  {file}: {', '.join(names)}"
    else:
        more = f" and {len(files) - NAMED} more" if len(files) > NAMED else ""
        yield f"{told}: {', '.join(files[:NAMED])}{more}"


def _check_commits(path: Path, found: dict[str, Any]) -> None:
    origin = found["provenance"]
    for leg in (origin, *origin.get("legs", [])):
        if leg["commit"] != "unknown" and not is_known(leg["commit"]):
            raise record.RecordError(
                f"{path}: provenance.commit: {leg['commit'][:12]} is not in the history"
            )
