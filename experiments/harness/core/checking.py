"""Checks stored results against their experiments' declarations and against the present code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from . import record
from .code import Change, changes_since, is_known
from .files import one_line, printable, walk
from .plan import Catalogue, Experiment
from .runner import EARLIEST
from .tables import check_declared, check_repeated
from .weights import WEIGHTS, read_weights, run_of

IDENTITY = {"attention", "context", "model", "scale", "seed"}  # what a run's name identifies
CURVES = ("train", "validation")  # tables with a row for each update, or for some
DIVERGED = "not finite"
EARLY = ("solved", DIVERGED)  # endings before the last planned update
ROUNDED = 0.1  # s by which a sum may differ from rounded terms


def read_declared(catalogue: Catalogue, path: Path) -> dict[str, Any]:
    """Read a record and check it against its experiment's tables. Raises RecordError."""
    stored = record.read(path)
    check_record(catalogue, stored, str(path))
    with record.named(path):
        _check_times(stored["provenance"])
    return stored


def check_record(catalogue: Catalogue, stored: Mapping[str, Any], where: str) -> None:
    """Check a record against its experiment's declarations. Raises RecordError, `where` first."""
    with record.named(where):
        if stored["experiment"] not in catalogue:
            raise ValueError(f"experiment: there is no {stored['experiment']!r}")
        experiment = catalogue[stored["experiment"]]
        check_declared(
            stored["tables"], experiment.tables, stored["units"], complete=stored["complete"]
        )
        check_repeated(stored["tables"])
        _check_config(experiment, stored)
        _check_curve(experiment, stored)
        _check_weights(experiment, stored)


def _check_times(origin: dict[str, Any]) -> None:
    """Raise ValueError for times in the future or before `EARLIEST`, or legs that do not add up.

    A day is allowed for wrong clocks.
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


def _check_config(experiment: Experiment, stored: Mapping[str, Any]) -> None:
    """Raise ValueError for a configuration that no run of the experiment can have had.

    It may have keys that are no longer planned, from an older plan.
    """
    config, seed = stored["config"], stored["provenance"]["seed"]
    missing = sorted(experiment.keys - config.keys())
    if missing:
        raise ValueError(f"config: expected {', '.join(missing)} in it too")
    if config.get("seed", 0) != seed:
        raise ValueError(
            f"config.seed: expected that of the provenance, {seed}, got {config.get('seed')!r:.40}"
        )
    planned = [run.config for run in experiment.planned if run.name == stored["name"]]
    for key in IDENTITY & config.keys():
        values = [one[key] for one in planned if key in one]
        if values and config[key] not in values:
            raise ValueError(
                f"config.{key}: expected {values[0]!r}, as {stored['name']} says, "
                f"got {config[key]!r:.40}"
            )


def _check_curve(experiment: Experiment, stored: Mapping[str, Any]) -> None:
    """Raise ValueError unless a training has all of its updates.

    A training that solved its task, or diverged, says after how many; one that ends by the clock
    took its seconds.
    """
    config, tables = stored["config"], stored["tables"]
    curves = [name for name in CURVES if name in experiment.tables]
    if {"end", "curve"} <= experiment.tables.keys():
        curves.append("curve")
    if not stored["complete"] or not curves or config.get("model") == "all":  # timed, not trained
        return
    updates, seconds, end = config.get("updates"), config.get("train_seconds"), tables.get("end")
    done = tables.get("train", {}).get("update", [])
    ending = end["ending"][0] if end else ""
    if ending in EARLY:
        updates = end["updates"][0] if end else 0
    elif seconds:
        spent = sum(tables.get("train", {}).get("seconds", []))
        if spent < seconds - ROUNDED:
            raise ValueError(f"tables.train.seconds: expected {seconds} in all, got {spent:.1f}")
        updates = len(done)
    if not updates:
        return
    for name in curves:
        last = tables.get(name, {}).get("update", [])[-1:]
        cut = ending == DIVERGED and name != "train" and (not last or last[0] <= updates)
        if last != [updates] and not cut:
            raise ValueError(f"tables.{name}.update: expected the last to be {updates}, got {last}")
    every = config.get("curve", 1)  # updates a row
    if "train" in curves and done != [*range(every, updates, every), updates]:
        raise ValueError(f"tables.train.update: expected steps of {every} up to {updates}")
    if end and end["updates"] != [updates]:
        raise ValueError(f"tables.end.updates: expected {updates}, got {end['updates']}")


def _check_weights(experiment: Experiment, stored: Mapping[str, Any]) -> None:
    """Raise ValueError if the weights described are not of the configuration's model."""
    if experiment.weights is None or "weights" not in stored:
        return
    shapes, wanted = stored["weights"]["shapes"], experiment.weights(stored["config"])
    for name in sorted({*shapes, *wanted}):
        if shapes.get(name) != wanted.get(name):
            raise ValueError(
                f"weights.shapes.{name}: expected {wanted.get(name)}, got {shapes.get(name)}"
            )


def check_folder(
    catalogue: Catalogue, folder: Path, *, changes: bool = False
) -> tuple[int, list[str], list[str]]:
    """Read every record under `folder`: their number, errors, and notes.

    Notes say which results' code has changed since, or that this is unknown; they are no errors.
    changes: name every such commit, with its files.

    Raises RecordError for a folder without records.
    """
    problems, total = [], 0
    ages: dict[str, list[list[Change] | None]] = {}
    for path in sorted(Path(folder).rglob("*.json")):
        if path.name.startswith(".") or path.parent.name.startswith("."):
            continue
        total += 1
        try:
            stored = read_declared(catalogue, path)
            record.check_place(path, stored)
            _check_commits(path, stored)
            if read_weights(path, stored) is not None and "weights" not in stored:
                raise record.RecordError(f"{path}: weights: not described")
        except record.RecordError as error:
            problems.append(one_line(error))
            continue
        experiment = stored["experiment"]
        if catalogue[experiment].frozen:  # that commit has its code
            continue
        ages.setdefault(experiment, []).append(changes_since(stored))
    for path in walk(Path(folder), WEIGHTS):
        if not run_of(path).exists():
            problems.append(printable(f"{path}: weights without a record"))
            total += 1
    if not total:
        raise record.RecordError(f"{folder}: no result files in it")
    notes = [note for one in ages for note in _notes(one, ages[one], whole=changes)]
    return total, problems, notes


def _notes(experiment: str, ages: list[list[Change] | None], *, whole: bool) -> Iterator[str]:
    """Lines on the commits that changed the code behind an experiment's results, newest first."""
    untold, stale = ages.count(None), [one for one in ages if one]
    if untold:
        yield (
            f"{experiment}: cannot tell whether the code of {untold} of {len(ages)} results has "
            "changed since: no commit that can be read here holds it"
        )
    if not stale:
        return
    times = Counter(change for one in stale for change in one)
    newest = max(stale, key=len)  # of the oldest results; it has the others' commits too
    changes = [*newest, *(times.keys() - {*newest})]
    yield (
        f"{experiment}: the code of {len(stale)} of {len(ages)} results has changed since, "
        f"last by {changes[0].commit[:10]} {changes[0].subject}"
    )
    if whole:
        yield "    (git show --stat COMMIT says how much; one that changes no number goes into"
        yield "    experiments/reviewed.txt, with a reason)"
    for change in changes if whole else ():
        yield f"    {times[change]:3d}  {change.commit[:10]} {change.subject}"
        yield f"         {', '.join(change.files)}"


def _check_commits(path: Path, stored: dict[str, Any]) -> None:
    origin = stored["provenance"]
    for leg in (origin, *origin.get("legs", [])):
        if leg["commit"] != "unknown" and not is_known(leg["commit"]):
            raise record.RecordError(
                f"{path}: provenance.commit: {leg['commit'][:12]} is not in the history"
            )
