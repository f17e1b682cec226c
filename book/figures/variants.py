"""Figures of what may take the exponential's place: feature maps, with and without normaliser."""

from __future__ import annotations

import math

from ..explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from .results import Record, curve, duration, provenance
from .words import Missing, Table, have

MAPS = {
    "softmax": "softmax",
    "linear": "elu + 1",
    "relu": "relu",
    "softplus": "softplus",
    "exp": "exp",
    "identity": "identity",
    "taylor": "Taylor, n = 2",
}
POSITIVE = ("linear", "relu", "softplus", "exp")  # feature by feature, and never negative
NORMALISER = {"with": "with", "without": "without"}


def map_of(one: Record) -> str:
    """A key of `MAPS`; the map the book takes by default has linear attention's own colour."""
    config = one["config"]
    if config["attention"] != "linear":
        return config["attention"]
    return "linear" if config["feature_map"] == "elu_plus_one" else config["feature_map"]


def normalised(one: Record) -> str:
    """A key of `NORMALISER`. Softmax and Taylor attention always divide."""
    return "with" if one["config"].get("normalize", True) else "without"


def ending(one: Record) -> tuple[float, int, bool]:
    """Its last validation loss, the updates it made, and whether it went through."""
    tables = one["tables"]
    end = tables.get("end", {"ending": ["stopped"], "updates": [len(tables["train"]["update"])]})
    losses = tables["validation"]["loss"] or [math.inf]
    return losses[-1], end["updates"][0], end["ending"][0] == "finished"


def variants(id: str = "variants") -> Explorable | Missing:
    """Loss of a nano GPT-2 by update: what weighs the values, with and without the normaliser."""
    records = have("variants")
    drawn = [one for one in records if one["config"]["seed"] == 0 and curve(one)["update"]]
    if not drawn:
        return Missing("variants")
    # Identity with a normaliser is so far off that it would press the others together.
    measured = {map_of(one) for one in drawn}
    shown = [name for name in MAPS if name in measured and name != "identity"]
    return Explorable(
        id=id,
        caption=_variants_caption(records),
        alt=(
            "Falling curves of validation loss against updates: softmax lowest, then linear "
            "attention with several feature maps close together."
        ),
        series=[
            Series(
                {"map": map_of(one), "normaliser": where},
                curve(one),
                source=one["path"],
            )
            for one in drawn
            for where in NORMALISER
            if where == normalised(one) or one["config"]["attention"] != "linear"
        ],
        x=Choice(
            "Against",
            [Axis("update", "Updates"), Axis("minutes", "Time", "minutes of training", digits=3)],
        ),
        y=Axis("loss", "Loss", "nats per byte", digits=4),
        color="map",
        mark="line",
        controls=[
            Filter("normaliser", "Normaliser", options=NORMALISER, default="with"),
            Toggle("map", "Weights", options=MAPS, default=shown),
        ],
        provenance=provenance(records),
    )


def seed_gap(records: list[Record]) -> float | None:
    """The largest difference of final losses between two seeds of the same run."""
    gaps = []
    for one in records:
        for other in records:
            same = map_of(one) == map_of(other) and normalised(one) == normalised(other)
            if same and one["config"]["seed"] < other["config"]["seed"]:
                gaps.append(abs(ending(one)[0] - ending(other)[0]))
    return max(gaps, default=None)


def final_losses(records: list[Record]) -> dict[tuple[str, str], float]:
    """Last loss by map and "with" or "without", of the first seed's runs that went through."""
    return {
        (map_of(one), normalised(one)): ending(one)[0]
        for one in records
        if one["config"]["seed"] == 0 and ending(one)[2]
    }


def normaliser_costs(records: list[Record]) -> tuple[float, float]:
    """What leaving it out costs a positive map in loss: the least, and the most."""
    ends = final_losses(records)
    costs = [
        ends[name, "without"] - ends[name, "with"]
        for name in POSITIVE
        if (name, "without") in ends and (name, "with") in ends
    ]
    return min(costs), max(costs)


def _variants_caption(records: list[Record]) -> str:
    first = [one for one in records if one["config"]["seed"] == 0]

    def ranked(where: str) -> list[str]:
        done = [one for one in first if normalised(one) == where and ending(one)[2]]
        return [
            f"{MAPS[map_of(one)]} {ending(one)[0]:.3f}"
            for one in sorted(done, key=lambda one: ending(one)[0])
        ]

    parts = ["**What may take the exponential's place.** The same nano GPT-2, weighed differently."]
    for where in NORMALISER:
        if names := ranked(where):
            updates = max(ending(one)[1] for one in first)
            after = f" after {updates:,} updates" if where == "with" else ""
            parts.append(f"Loss{after} {where} the normaliser: {', '.join(names)}.")
    broken = [one for one in first if one["complete"] and not ending(one)[2]]
    for one in broken:
        parts.append(
            f"{MAPS[map_of(one)]} {normalised(one)} the normaliser stopped being a finite number "
            f"after {ending(one)[1]:,} updates."
        )
    if (gap := seed_gap(records)) is not None:
        parts.append(f"Another seed moves a loss by up to {gap:.3f}.")
    return " ".join(parts)


def variants_table() -> Table | Missing:
    """Final loss by map, with and without the normaliser, and seconds of an update."""
    first = [one for one in have("variants") if one["config"]["seed"] == 0]
    if not first:
        return Missing("variants")
    by = {(map_of(one), normalised(one)): one for one in first}
    cells = []
    for name, label in MAPS.items():
        line = [label]
        for where in NORMALISER:
            one = by.get((name, where))
            line.append(_ending_in_words(one) if one else "")
        one = by.get((name, "with"))
        seconds = sorted(one["tables"]["train"]["seconds"]) if one else []
        line.append(duration(seconds[len(seconds) // 2]) if seconds else "")
        cells.append(line)
    return Table(["weights", "normalised", "not normalised", "an update"], cells)


def _ending_in_words(one: Record) -> str:
    loss, updates, finished = ending(one)
    if finished:
        return f"{loss:.3f}"
    reason = "not finite" if one["complete"] else "stopped"
    return f"{reason} after {updates:,}"
