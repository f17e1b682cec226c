"""Figures of what may take the exponential's place: feature maps, with and without normaliser."""

from __future__ import annotations

import math

from ...explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from ..index import ngram_baseline
from ..lib.format import WrittenFor, duration, in_words
from ..lib.records import NotMeasuredError, Record, curve, have, provenance
from ..lib.tables import Missing, Table

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
ABOUT = 1.5  # times: up to which words call two differences about the same


def map_of(run: Record) -> str:
    """A key of `MAPS`; the map the book takes by default has linear attention's own colour."""
    config = run["config"]
    if config["attention"] != "linear":
        return config["attention"]
    return "linear" if config["feature_map"] == "elu_plus_one" else config["feature_map"]


def normalised(run: Record) -> str:
    """A key of `NORMALISER`. Softmax and Taylor attention always divide."""
    return "with" if run["config"].get("normalize", True) else "without"


def ending(run: Record) -> tuple[float, int, bool]:
    """Its last validation loss, the updates it made, and whether it went through."""
    tables = run["tables"]
    end = tables.get("end", {"ending": ["stopped"], "updates": [len(tables["train"]["update"])]})
    losses = tables["validation"]["loss"] or [math.inf]
    return losses[-1], end["updates"][0], end["ending"][0] == "finished"


def figure(id: str = "variants") -> Explorable | Missing:
    """Loss of a nano GPT-2 by update: what weighs the values, with and without the normaliser."""
    records = have("variants")
    drawn = [run for run in records if run["config"]["seed"] == 0 and curve(run)["update"]]
    if not drawn:
        return Missing("variants")
    # Identity with a normaliser is so far off that it would press the others together.
    measured = {map_of(run) for run in drawn}
    shown = [name for name in MAPS if name in measured and name != "identity"]
    return Explorable(
        id=id,
        caption=_caption(records),
        alt=(
            "Falling curves of validation loss against updates: softmax lowest, then linear "
            "attention with several feature maps close together."
        ),
        series=[
            Series(
                {"map": map_of(run), "normaliser": where},
                curve(run),
                source=run["path"],
            )
            for run in drawn
            for where in NORMALISER
            if where == normalised(run) or run["config"]["attention"] != "linear"
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
    for run in records:
        for other in records:
            same = map_of(run) == map_of(other) and normalised(run) == normalised(other)
            if same and run["config"]["seed"] < other["config"]["seed"]:
                gaps.append(abs(ending(run)[0] - ending(other)[0]))
    return max(gaps, default=None)


def seed_spread() -> float:
    """How far apart two seeds of a nano model end: no smaller difference of losses means anything.

    Raises NotMeasuredError where no run was repeated with another seed.
    """
    gap = seed_gap(have("variants"))
    if gap is None:
        raise NotMeasuredError("variants: no run with a second seed")
    return gap


def final_losses(records: list[Record]) -> dict[tuple[str, str], float]:
    """Last loss by map and "with" or "without", of the first seed's runs that went through."""
    return {
        (map_of(run), normalised(run)): ending(run)[0]
        for run in records
        if run["config"]["seed"] == 0 and ending(run)[2]
    }


def normaliser_costs(records: list[Record]) -> tuple[float, float]:
    """What leaving it out costs a positive map in loss: the least, and the most.

    Raises NotMeasuredError where no map was run with it and without.
    """
    ends = final_losses(records)
    costs = [
        ends[name, "without"] - ends[name, "with"]
        for name in POSITIVE
        if (name, "without") in ends and (name, "with") in ends
    ]
    if not costs:
        raise NotMeasuredError("variants: no map with and without the normaliser")
    return min(costs), max(costs)


def final_loss(name: str, normaliser: str = "with") -> float:
    """Of one map's first seed. Raises NotMeasuredError."""
    ends = final_losses(have("variants"))
    if (name, normaliser) not in ends:
        raise NotMeasuredError(f"variants: no {name} {normaliser} the normaliser")
    return ends[name, normaliser]


def ranking() -> list[str]:
    """The positive maps, normalised, best loss first. Raises NotMeasuredError."""
    return sorted(POSITIVE, key=final_loss)


def numbers() -> dict[str, str]:
    """What the chapter on linear self-attention says of the maps."""
    return in_words(
        map_least=lambda: f"{normaliser_costs(have('variants'))[0]:.2f}",
        map_most=lambda: f"{normaliser_costs(have('variants'))[1]:.2f}",
        map_spread=lambda: f"{_spread():.2f}",
        map_best=lambda: MAPS[ranking()[0]],
        map_worst=lambda: MAPS[ranking()[-1]],
        identity_with=lambda: f"{final_loss('identity'):.2f}",
        identity_without=lambda: f"{final_loss('identity', 'without'):.2f}",
        map_pairs=lambda: f"{ngram_baseline.loss(2):.2f}",
        map_behind=lambda: f"{final_loss(ranking()[0]) - final_loss('softmax'):.2f}",
        taylor_nano=lambda: f"{final_loss('taylor'):.2f}",
        elu_nano=lambda: f"{final_loss('linear'):.2f}",
        taylor_behind=lambda: f"{final_loss('taylor') - final_loss('linear'):.2f}",
    )


def _spread() -> float:
    return final_loss(ranking()[-1]) - final_loss(ranking()[0])


def claims() -> WrittenFor:
    """What the chapter's words say of the maps. A difference counts beyond that of another seed."""

    def best_sum() -> str:
        ends = final_losses(have("variants"))
        sums = {name: loss for (name, where), loss in ends.items() if where == "without"}
        return min(sums, key=sums.get, default="")

    return WrittenFor(
        the_normaliser_matters_more_than_the_map=lambda: (
            normaliser_costs(have("variants"))[0] > _spread() + seed_spread()
        ),
        softmax_is_ahead_of_every_map=lambda: (
            final_loss(ranking()[0]) - final_loss("softmax") > seed_spread()
        ),
        identity_is_the_best_sum_and_worse_than_letter_pairs_with_the_normaliser=lambda: (
            best_sum() == "identity" and final_loss("identity") > ngram_baseline.loss(2)
        ),
        the_best_map_is_exp_and_the_last_relu=lambda: ranking()[::3] == ["exp", "relu"],
    )


def taylor_claims() -> WrittenFor:
    """What the chapter's words on the larger state say."""

    def behind() -> float:
        return final_loss("taylor") - final_loss("linear")

    return WrittenFor(
        taylor_features_end_behind_elu_plus_1=lambda: behind() > 0,
        two_seeds_have_differed_by_about_as_much=lambda: (
            1 / ABOUT <= behind() / seed_spread() <= ABOUT
        ),
    )


def _caption(records: list[Record]) -> str:
    first = [run for run in records if run["config"]["seed"] == 0]

    def ranked(where: str) -> list[str]:
        done = [run for run in first if normalised(run) == where and ending(run)[2]]
        return [
            f"{MAPS[map_of(run)]} {ending(run)[0]:.3f}"
            for run in sorted(done, key=lambda run: ending(run)[0])
        ]

    parts = ["**What may take the exponential's place.** The same nano GPT-2, weighed differently."]
    for where in NORMALISER:
        if names := ranked(where):
            updates = max(ending(run)[1] for run in first)
            after = f" after {updates:,} updates" if where == "with" else ""
            parts.append(f"Loss{after} {where} the normaliser: {', '.join(names)}.")
    broken = [run for run in first if run["complete"] and not ending(run)[2]]
    for run in broken:
        parts.append(
            f"{MAPS[map_of(run)]} {normalised(run)} the normaliser stopped being a finite number "
            f"after {ending(run)[1]:,} updates."
        )
    if (gap := seed_gap(records)) is not None:
        parts.append(f"Another seed moves a loss by up to {gap:.3f}.")
    return " ".join(parts)


def table() -> Table | Missing:
    """Final loss by map, with and without the normaliser, and seconds of an update."""
    first = [run for run in have("variants") if run["config"]["seed"] == 0]
    if not first:
        return Missing("variants")
    by = {(map_of(run), normalised(run)): run for run in first}
    cells = []
    for name, label in MAPS.items():
        line = [label]
        for where in NORMALISER:
            run = by.get((name, where))
            line.append(_ending_in_words(run) if run else "")
        run = by.get((name, "with"))
        seconds = sorted(run["tables"]["train"]["seconds"]) if run else []
        line.append(duration(seconds[len(seconds) // 2]) if seconds else "")
        cells.append(line)
    return Table(["weights", "normalised", "not normalised", "an update"], cells)


def _ending_in_words(run: Record) -> str:
    loss, updates, finished = ending(run)
    if finished:
        return f"{loss:.3f}"
    reason = "not finite" if run["complete"] else "stopped"
    return f"{reason} after {updates:,}"
