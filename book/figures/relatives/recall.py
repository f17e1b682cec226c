"""Recall by every layer: scores, and sizes of states."""

from __future__ import annotations

import math
from collections import defaultdict

from ...explorable.figure import Axis, Explorable, Filter, Series
from ..lib.format import in_words, percent, times
from ..lib.records import Record, need, provenance, rows
from ..lib.seeds import bars, seeds_in_words
from ..lib.tables import Missing
from ..lib.tasks import (
    EXPERIMENT,
    RIGHT,
    Share,
    at_best_rates,
    layers_toggle,
    lead,
    of_usual_size,
    rates_in_words,
    right_columns,
    score,
    with_range,
)
from . import random_codes

TASK = "recall"
NARROW, NARROWEST = 4, 8  # heads, of width 8 and 4
SHOWN = ("softmax", "linear", "delta", "gated", "s6", "power")


def by_layer(heads: int = 1) -> dict[str, list[Record]]:
    """Runs of each model at its usual size, all seeds, in the order of the catalogue."""
    return of_usual_size(at_best_rates(TASK), heads)


def figure(id: str = "recall") -> Explorable | Missing:
    """Share of values recalled against the bytes of state, and the law of random codes."""
    sizes = at_best_rates(TASK)
    records = [run for runs in sizes.values() for run in runs]
    records.sort(key=lambda run: run["config"]["seed"])
    if not records:
        return Missing(EXPERIMENT)
    config = records[0]["config"]
    pairs = [case["pairs"] for case in config["cases"]]
    points: dict[tuple[str, int], list[Share]] = defaultdict(list)
    for kind, runs in sizes.items():
        for n in pairs:
            if any(rows(run, "test", pairs=n) for run in runs):
                points[kind.model, n].append(score(runs, pairs=n))
    if not points:
        return Missing(EXPERIMENT)
    states = [max(1, one.state) for found in points.values() for one in found]
    drawn = {layer for layer, _ in points}
    return Explorable(
        id=id,
        caption=_recall_caption(points, max(pairs), rates_in_words(TASK)),
        alt=(
            "Share of keys answered right against bytes of state on a logarithmic scale, a dot "
            "for each layer and size, beside the rising curve of what random codes reach."
        ),
        series=[
            _sizes({"layer": layer, "pairs": n}, found) for (layer, n), found in points.items()
        ],
        ceilings=[
            random_codes.series(n, states, config["d_model"], config["vocab"] // 2) for n in pairs
        ],
        x=Axis("state", "State after the text", "bytes", log=10, digits=3),
        y=RIGHT,
        color="layer",
        mark="line+dot",
        controls=[
            Filter("pairs", "Pairs", options=pairs, default=max(pairs)),
            layers_toggle(drawn, SHOWN),
        ],
        provenance=provenance(records),
    )


def _sizes(keys: dict[str, str | int], scores: list[Share]) -> Series:
    """One layer's sizes, smallest first. A layer without a state is placed at one byte."""
    scores = sorted(scores, key=lambda one: one.state)
    return Series(keys, right_columns("state", ((max(1, one.state), one) for one in scores)))


def _recall_caption(points: dict[tuple[str, int], list[Share]], pairs: int, rates: str) -> str:
    seeds = seeds_in_words([one.seeds for found in points.values() for one in found])
    told = in_words(
        **{
            name.replace("-", "_"): lambda name=name: _of_bytes(share(name))
            for name in ("linear", "delta-adds", "softmax")
        }
    )
    return (
        f"**Equal states recall unequal shares.** With {pairs} keys, linear attention answers "
        f"{told['linear']}, DeltaNet without erasing {told['delta_adds']}, and softmax, whose "
        f"state grows, {told['softmax']}. "
        "Grey: the share that random codes answer with a state of that size. "
        f"{bars(seeds)} {rates}"
    )


def _of_bytes(one: Share) -> str:
    """A share and the state that it came from."""
    return f"{percent(one.mean)} from {one.state:,} bytes"


def _most_pairs() -> int:
    """The most pairs that any run was asked for."""
    every = (run for runs in by_layer().values() for run in runs)
    return max((row["pairs"] for run in every for row in rows(run, "test")), default=0)


def _config() -> dict:
    return need([*by_layer().values()], f"{EXPERIMENT}: no {TASK}")[0][0]["config"]


def share(model: str, heads: int = 1) -> Share:
    """Share of a model of the usual size with most pairs. Raises NotMeasuredError."""
    return score(by_layer(heads).get(model, []), pairs=_most_pairs())


# Models whose recall the chapters give.
TOLD = (
    "softmax", "linear", "gated", "gla", "delta", "delta-adds", "gated-delta", "mamba", "power",
)  # fmt: skip
CASES = (32, 32, 64, 68), (8, 128, 64, 500)  # K, V, pairs, tokens, for which the text gives the law


def numbers() -> dict[str, str]:
    """Numbers for the chapters: the made-up tasks and the law of random codes."""

    told = {
        f"recall_{model.replace('-', '_')}": lambda model=model: with_range(share(model))
        for model in TOLD
    }

    narrow = {
        f"{name}_{model.replace('-', '_')}": lambda of=(model, heads): with_range(share(*of))
        for name, heads in (("narrow", NARROW), ("narrowest", NARROWEST))
        for model in ("linear", "delta", "delta-adds")
    }

    law = [random_codes.right_by_the_law(*case) for case in CASES]
    drawn = [random_codes.right_when_drawn(*case) for case in CASES]
    K, V, _, tokens = CASES[0]
    rough = round(K * V / (2 * math.log(tokens)) - K)
    return in_words(
        recall_law=lambda: percent(law[0]),
        recall_drawn=lambda: percent(drawn[0]),
        law_of_few=lambda: percent(law[1]),
        drawn_of_few=lambda: percent(drawn[1]),
        recall_power_state=lambda: times(share("power").state / share("linear").state),
        recall_updates=lambda: f"{_config()['updates']:,}",
        rough_half=lambda: rough,
        rough_drawn=lambda: percent(random_codes.right_when_drawn(K, V, rough, tokens)),
        narrow_adds_lead=lambda: lead(TASK, "delta-adds", "linear", heads=NARROW).spread(0),
        narrowest_adds_lead=lambda: lead(TASK, "delta-adds", "linear", heads=NARROWEST).spread(0),
        narrow_behind=lambda: lead(TASK, "linear", "delta", heads=NARROW).spread(0),
        narrowest_behind=lambda: lead(TASK, "linear", "delta", heads=NARROWEST).spread(0),
        **told,
        **narrow,
    )
