"""Replacements of the exponential: feature maps, with and without normaliser."""

from __future__ import annotations

import math

from ...explorable.figure import Explorable, Filter, Series, Toggle
from ..index import ngram_baseline
from ..lib.axes import LOSS, UPDATES
from ..lib.format import in_words
from ..lib.pairs import Pairs, compare, differences
from ..lib.records import Record, curve, have, need, provenance
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
NORMALISER = {"with": "the weights", "without": "nothing", "outputs": "each output"}


def map_of(run: Record) -> str:
    """A key of `MAPS`; the book's default map has linear attention's colour."""
    config = run["config"]
    if config["attention"] != "linear":
        return config["attention"]
    return "linear" if config["feature_map"] == "elu_plus_one" else config["feature_map"]


def normalised(run: Record) -> str:
    """A key of `NORMALISER`. Softmax and Taylor attention are always normalised."""
    config = run["config"]
    if config.get("output_norm"):
        return "outputs"
    return "with" if config.get("normalize", True) else "without"


def ending(run: Record) -> tuple[float, int, bool]:
    """A run's last validation loss, its updates, and whether it reached its end."""
    tables = run["tables"]
    end = tables.get("end", {"ending": ["stopped"], "updates": [len(tables["train"]["update"])]})
    losses = tables["validation"]["loss"] or [math.inf]
    return losses[-1], end["updates"][0], end["ending"][0] == "finished"


def figure(id: str = "variants") -> Explorable | Missing:
    """Loss of a nano GPT-2 against updates, by feature map and normalisation."""
    records = have("variants")
    drawn = [run for run in records if run["config"]["seed"] == 0 and curve(run)["update"]]
    if not drawn:
        return Missing("variants")
    # Identity with a normaliser is so far off that it would compress the other curves.
    measured = {map_of(run) for run in drawn}
    shown = [name for name in MAPS if name in measured and name != "identity"]
    return Explorable(
        id=id,
        caption=(
            "**With the normaliser the maps that are never negative end close together. Without "
            "it each ends higher: press *nothing*.** The same nano GPT-2 with different weights "
            "on its values, one run of each."
        ),
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
        x=UPDATES,
        y=LOSS,
        color="map",
        mark="line",
        controls=[
            Filter("normaliser", "Normalised", options=NORMALISER, default="with"),
            Toggle("map", "Weights", options=MAPS, default=shown),
        ],
        provenance=provenance(records),
    )


def seed_gap() -> float:
    """The largest difference of final losses between two seeds of the same run.

    Raises NotMeasuredError if no run was repeated with another seed.
    """
    by_run: dict[tuple[str, str], list[float]] = {}
    for run in have("variants"):
        by_run.setdefault((map_of(run), normalised(run)), []).append(ending(run)[0])
    gaps = [max(ends) - min(ends) for ends in by_run.values() if len(ends) > 1]
    return max(need(gaps, "variants: no run with a second seed"))


def final_losses(records: list[Record]) -> dict[tuple[str, str], float]:
    """Last loss by map and key of `NORMALISER`, for complete runs of the first seed."""
    return {
        (map_of(run), normalised(run)): ending(run)[0]
        for run in records
        if run["config"]["seed"] == 0 and ending(run)[2]
    }


def normaliser_costs(records: list[Record], other: str = "without") -> tuple[float, float]:
    """Loss added to a positive map by another choice of `NORMALISER`: the least, and the most.

    Raises NotMeasuredError if no map was run with both.
    """
    ends = final_losses(records)
    costs = [
        ends[name, other] - ends[name, "with"]
        for name in POSITIVE
        if (name, other) in ends and (name, "with") in ends
    ]
    need(costs, f"variants: no map both with the normaliser and {other}")
    return min(costs), max(costs)


def final_loss(name: str, normaliser: str = "with") -> float:
    """Final loss of a map's first seed. Raises NotMeasuredError."""
    loss = final_losses(have("variants")).get((name, normaliser))
    return need(loss, f"variants: no {name} {normaliser} the normaliser")


def ranking() -> list[str]:
    """The positive maps, normalised, best loss first. Raises NotMeasuredError."""
    return sorted(POSITIVE, key=final_loss)


def numbers() -> dict[str, str]:
    """Numbers for the chapter on linear self-attention: the maps."""
    return in_words(
        map_least=lambda: f"{normaliser_costs(have('variants'))[0]:.2f}",
        map_most=lambda: f"{normaliser_costs(have('variants'))[1]:.2f}",
        outputs_least=lambda: f"{normaliser_costs(have('variants'), 'outputs')[0]:.2f}",
        outputs_most=lambda: f"{normaliser_costs(have('variants'), 'outputs')[1]:.2f}",
        outputs_pairs=lambda: outputs_cost().spread(),
        map_spread=lambda: f"{map_spread():.2f}",
        map_relu_behind=lambda: f"{relu_behind():.2f}",
        map_seed=lambda: f"{seed_gap():.2f}",
        map_behind=lambda: f"{final_loss(ranking()[0]) - final_loss('softmax'):.2f}",
        identity_with=lambda: f"{final_loss('identity'):.2f}",
        identity_without=lambda: f"{final_loss('identity', 'without'):.2f}",
        other_sum=lambda: f"{min(loss for name, loss in sums().items() if name != 'identity'):.2f}",
        map_updates=lambda: f"{need(have('variants'), 'variants')[0]['config']['updates']:,}",
        map_pairs=lambda: f"{ngram_baseline.loss(2):.2f}",
    )


def map_spread() -> float:
    """Nats between the best and the worst of the positive maps. Raises NotMeasuredError."""
    return final_loss(ranking()[-1]) - final_loss(ranking()[0])


def relu_behind() -> float:
    """Nats by which relu, normalised, ends behind elu + 1. Raises NotMeasuredError."""
    return final_loss("relu") - final_loss("linear")


def sums() -> dict[str, float]:
    """Final loss without the normaliser, by map. Raises NotMeasuredError."""
    ends = final_losses(have("variants"))
    losses = {name: loss for (name, where), loss in ends.items() if where == "without"}
    return need(losses, "variants: nothing without the normaliser")


def table() -> Table | Missing:
    """Final loss by map and normalisation."""
    first = [run for run in have("variants") if run["config"]["seed"] == 0]
    if not first:
        return Missing("variants")
    by = {(map_of(run), normalised(run)): run for run in first}
    cells = [
        [
            label,
            *(_ending_in_words(by[name, one]) if (name, one) in by else "" for one in NORMALISER),
        ]
        for name, label in MAPS.items()
    ]
    return Table(["weights", "weights normalised", "nothing", "each output"], cells)


def outputs_cost() -> Pairs:
    """Loss of elu + 1 with normalised outputs minus that with the normaliser, over seeds.

    Raises NotMeasuredError if no seed has both.
    """
    runs = [run for run in have("variants") if map_of(run) == "linear"]
    outputs, weights = (
        [run for run in runs if normalised(run) == one] for one in ("outputs", "with")
    )
    return compare(differences(outputs, weights))


def _ending_in_words(run: Record) -> str:
    loss, updates, finished = ending(run)
    if finished:
        return f"{loss:.3f}"
    reason = "not finite" if run["complete"] else "stopped"
    return f"{reason} after {updates:,}"
