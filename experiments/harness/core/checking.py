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
from .files import one_line
from .plan import Catalogue, Experiment
from .tables import check_declared, check_repeated

EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)  # a clock that was never set says less
ROUNDED = 0.1  # seconds that a sum may be off, which is rounded as its terms are
NAMED = 4  # files that an experiment's line names; `check --changes` names them all


def read_declared(catalogue: Catalogue, path: Path, *, older: bool = False) -> dict[str, Any]:
    """Read a record and hold it to the tables its experiment declares. Raises RecordError."""
    found = record.read(path, older=older)
    if found["experiment"] not in catalogue:
        raise record.RecordError(f"{path}: experiment: there is no {found['experiment']!r}")
    experiment = catalogue[found["experiment"]]
    try:
        check_declared(
            found["tables"], experiment.tables, found["units"], complete=found["complete"]
        )
        check_repeated(found["tables"])
        _check_times(found["provenance"])
        _check_config(experiment, found)
    except ValueError as error:
        raise record.RecordError(f"{path}: {error}") from error
    return found


def _check_times(origin: dict[str, Any]) -> None:
    """Raise ValueError for a run of the future or of no clock, or legs that are not all of it.

    A day is left to clocks that are wrong.
    """
    latest = datetime.now(UTC) + timedelta(days=1)
    legs = origin.get("legs", [])
    for leg in (origin, *legs):
        started = datetime.fromisoformat(leg["started"])
        if started > latest:
            raise ValueError(f"provenance.started: expected the past, got {leg['started']}")
        if started < EARLIEST:
            raise ValueError(
                f"provenance.started: expected {EARLIEST.year} or later, got {leg['started']}"
            )
    total = sum(leg["seconds"] for leg in legs)
    if "legs" in origin and round(abs(total - origin["seconds"]), 3) > ROUNDED:
        raise ValueError(
            f"provenance.legs: expected seconds that add up to {origin['seconds']}, got {total:.1f}"
        )


def _check_config(experiment: Experiment, found: dict[str, Any]) -> None:
    """Raise ValueError for a configuration that none of an experiment's runs can have had.

    It may have more keys than are planned now: an older plan's.
    """
    config, seed = found["config"], found["provenance"]["seed"]
    missing = sorted(experiment.keys - config.keys())
    if missing:
        raise ValueError(f"config: expected {', '.join(missing)} in it too")
    if config.get("seed", 0) != seed:
        raise ValueError(
            f"config.seed: expected that of the provenance, {seed}, got {config.get('seed')!r:.40}"
        )


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
            problems.append(one_line(error))
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
