"""Stored runs for the figures: records, their rows, and their provenance.

A figure shows the best device with stored runs. A figure of losses alone also shows the seeds of
other devices. A number without a stored run raises NotMeasuredError; figures and words then say
"not measured yet".
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, pairwise
from statistics import fmean
from typing import Any, TypeVar

from experiments.catalogue import EXPERIMENTS
from experiments.harness.core import record
from experiments.harness.core.checking import check_record
from experiments.harness.core.record import Record
from experiments.harness.core.weights import WEIGHTS, read_weights
from lsa.gpt import SCALES

from ...explorable.figure import Provenance

SCALE_LABELS = {"nano": "nano, 0.8M", **{name: name for name in SCALES if name != "nano"}}

Row = dict[str, Any]
Found = TypeVar("Found")
# A name is glued into sentences, where these characters would be Markdown.
PLAIN = str.maketrans({"`": "ˋ", "*": "∗"})


class NotMeasuredError(LookupError):
    """No stored run has the number; the message says which one is missing."""


def need(found: Found | None, what: str) -> Found:
    """`found`, if there is anything in it. Raises NotMeasuredError, which says what is missing."""
    if not found:
        raise NotMeasuredError(what)
    return found


_sound: dict[int, Record] = {}


def load(experiment: str | None = None) -> list[Record]:
    """All records of an experiment, or of all, checked against their experiment's declaration.

    Raises RecordError, which names file and field. Each record is checked once per process.
    """
    records = record.load(experiment)
    for one in records:
        if _sound.get(id(one)) is not one:
            check_record(EXPERIMENTS, one, one["path"])
            _sound[id(one)] = one
    return records


_weighed: dict[int, tuple[Record, str]] = {}


def weights_of(run: Record) -> str:
    """Path of the weights beside a record, from the project's root; "" if there are none.

    Raises RecordError unless they are those that the record describes. Checked once per process.
    """
    known, file = _weighed.get(id(run), (None, ""))
    if known is not run:
        packed = read_weights(record.ROOT / run["path"], run)
        file = run["path"].removesuffix(".json") + WEIGHTS if packed else ""
        _weighed[id(run)] = run, file
    return file


def stored(experiment: str, **wanted: list) -> list[Record]:
    """The complete runs of one device: a GPU before a CPU, then the most runs, then the newest.

    wanted: keys of the configuration, with the values that a device must have runs of, because the
    text mentions them. Stopped runs are used only if there are no complete ones.
    """
    records = load(experiment)
    if not records:
        command = f"python -m experiments run {experiment}"
        raise LookupError(f"results/{experiment}: nothing stored; {command}")

    devices: dict[tuple, list[Record]] = {}
    for one in [one for one in records if one["complete"]] or records:
        device = one["provenance"]["device"]
        place = (device["kind"] == "cuda", device["name"], device["count"])
        devices.setdefault(place, []).append(one)

    def rank(place: tuple) -> tuple:
        runs = devices[place]
        fits = all({one["config"][key] for one in runs} >= {*wanted[key]} for key in wanted)
        is_gpu, *_ = place
        return fits, is_gpu, len(runs), max(one["provenance"]["started"] for one in runs)

    return devices[max(devices, key=rank)]


def have(experiment: str, **wanted: list) -> list[Record]:
    """`stored`, or an empty list."""
    try:
        return stored(experiment, **wanted)
    except LookupError:
        return []


def learned(experiment: str, **wanted: list) -> list[Record]:
    """`have`, plus runs that it lacks from other devices of its kind; by seed.

    For figures without times: a loss after a number of updates depends on configuration and seed,
    not on the processor. A run with a name that is present is not added.
    """
    runs = have(experiment, **wanted)
    kinds = {run["provenance"]["device"]["kind"] for run in runs}
    names = {run["name"] for run in runs}
    for run in load(experiment) if runs else ():
        of_kind = run["complete"] and run["provenance"]["device"]["kind"] in kinds
        if of_kind and run["name"] not in names:
            names.add(run["name"])
            runs = [*runs, run]
    return sorted(runs, key=lambda run: run["config"].get("seed", 0))


def of_config(records: Iterable[Record], **wanted: object) -> Record:
    """The first record with these values in its configuration. Raises NotMeasuredError."""
    for run in records:
        if all(run["config"].get(key) == value for key, value in wanted.items()):
            return run
    raise NotMeasuredError(f"no run of {wanted}")


def model_of(run: Record) -> tuple[str, int]:
    """The race's model that a run measured: attention, and context of its training."""
    return run["config"]["attention"], run["config"]["context"]


def of_model(experiment: str, attention: str, context: int) -> list[Record]:
    """Runs that measured each seed of one of the race's models. Raises NotMeasuredError."""
    runs = [run for run in learned(experiment) if model_of(run) == (attention, context)]
    return need(runs, f"{experiment}: no {attention} of {context}")


def device_name(run: Record) -> str:
    """A device's name for a reader: "AMD EPYC, 2 threads"."""
    device = run["provenance"]["device"]
    name, count = device["name"].translate(PLAIN), device["count"]
    if device["kind"] == "cpu":
        return f"{name}, {count} thread{'s' if count > 1 else ''}"
    return name if count == 1 else f"{count} × {name}"


def commits(run: Record) -> list[str]:
    """The commits of a run, first to last: one for each leg of a run that was resumed."""
    origin = run["provenance"]
    legs = [*origin.get("legs", []), origin]
    return list(dict.fromkeys(leg["commit"][:7] for leg in legs))


def provenance(records: Iterable[Record]) -> list[Provenance]:
    """The line under a figure, one entry a record.

    Its command measures the whole figure again; the command of a single run is in its file.
    """
    return [
        Provenance(
            device=device_name(run),
            commit=", ".join(commits(run)),
            date=run["provenance"]["started"][:10],
            command=f"python -m experiments run {run['experiment']}",
            href=f"../{run['path']}",
        )
        for run in records
    ]


def rows(run: Record, table_name: str = "rows", /, **wanted: object) -> list[Row]:
    """The rows of a record's table in which every named column has the given value."""
    table = run["tables"].get(table_name, {})
    if not table:
        return []
    kept = range(len(next(iter(table.values()))))
    for key, value in wanted.items():
        column = table[key]
        kept = [place for place in kept if column[place] == value]
    return [{name: column[place] for name, column in table.items()} for place in kept]


def row(run: Record, table_name: str = "rows", /, **wanted: object) -> Row:
    """The first of `rows`. Raises NotMeasuredError if there is none."""
    for first in rows(run, table_name, **wanted):
        return first
    raise NotMeasuredError(f"{run['name']}: no {table_name} with {wanted}")


def losses_by_update(run: Record) -> dict[int, float]:
    """Validation loss by update, without the untrained model."""
    table = run["tables"]["validation"]
    return {u: x for u, x in zip(table["update"], table["loss"], strict=True) if u}


def curve(run: Record) -> dict[str, list]:
    """Validation loss against updates and minutes of training, without the untrained model."""
    seconds = [0.0, *accumulate(run["tables"]["train"]["seconds"])]
    points = losses_by_update(run)
    return {
        "update": [*points],
        "minutes": [seconds[update] / 60 for update in points],
        "loss": [*points.values()],
    }


def interpolated(curve: dict[int, float], updates: float) -> float:
    """A loss between its measurements before and after; past the last one, that one.

    curve: {updates: loss}, in order. Raises NotMeasuredError before the first.
    """
    for (before, high), (after, low) in pairwise(curve.items()):
        if before <= updates < after:
            return high + (low - high) * (updates - before) / (after - before)
    if updates < max(curve):
        raise NotMeasuredError("not validated by then")
    return curve[max(curve)]


def mean_curve(runs: Iterable[Record]) -> dict[int, float]:
    """The mean loss of several seeds, at the updates at which all were validated."""
    every = [losses_by_update(run) for run in runs]
    common = sorted(set.intersection(*(set(curve) for curve in every)))
    return {update: fmean(curve[update] for curve in every) for update in common}
