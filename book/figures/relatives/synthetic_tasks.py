"""Recall, copying and induction by every layer: who answers, and with how large a state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import mean
from typing import NamedTuple

from lsa.layers import LAYERS

from ...explorable import palette
from ...explorable.figure import Axis, Explorable, Filter, Series, Toggle
from ..lib.format import percent
from ..lib.records import NotMeasuredError, Record, learned, provenance, rows
from ..lib.seeds import how_many_seeds
from ..lib.tables import Missing, Table
from . import random_codes

EXPERIMENT = "synthetic_tasks"
TASKS = ("copying", "selective copying", "induction", "recall")
TRAINED_AT = 256  # tokens, of induction
FEW = 50  # texts of a length, below which their number is told
SHOWN = ("softmax", "linear", "delta", "gated", "s6", "power")
SHOWN_LENGTHS = ("softmax", "linear", "delta", "s6", "mamba", "s4d", "rwkv")


class Score(NamedTuple):
    """Share right: mean, least and most over seeds; bytes of state; how many seeds."""

    mean: float
    low: float
    high: float
    state: int
    seeds: int


def of_task(task: str) -> list[Record]:
    """The whole runs of one task."""
    return [run for run in learned(EXPERIMENT) if run["config"]["task"] == task and run["complete"]]


def by_layer(task: str) -> dict[str, list[Record]]:
    """Runs of each layer at its usual size, all seeds, in the order of the catalogue."""
    found: dict[str, list[Record]] = defaultdict(list)
    for run in of_task(task):
        layer, seed = run["config"]["attention"], run["config"]["seed"]
        if run["name"] == f"{task.replace(' ', '-')}-{layer}-seed{seed}":
            found[layer].append(run)
    return {name: found[name] for name in LAYERS if name in found}


def score(runs: Iterable[Record], **wanted: int) -> Score:
    """Over seeds, of the test's row with these values. Raises NotMeasuredError."""
    answers = [row for run in runs for row in rows(run, "test", **wanted)]
    if not answers:
        raise NotMeasuredError(f"{EXPERIMENT}: no test with {wanted}")
    shares = [row["accuracy"] for row in answers]
    return Score(mean(shares), min(shares), max(shares), answers[0]["state"], len(shares))


def recall_figure(id: str = "recall") -> Explorable | Missing:
    """Share of values recalled against the bytes of state, and the law of random codes."""
    records = of_task("recall")
    if not records:
        return Missing(EXPERIMENT)
    config = records[0]["config"]
    pairs = [case["pairs"] for case in config["cases"]]
    sizes: dict[tuple, list[Record]] = defaultdict(list)
    for run in records:
        options = tuple(sorted(run["config"]["attention_options"].items()))
        sizes[run["config"]["attention"], run["config"]["n_head"], options].append(run)
    points: dict[tuple[str, int], list[Score]] = defaultdict(list)
    for (layer, *_), runs in sizes.items():
        for n in pairs:
            if any(rows(run, "test", pairs=n) for run in runs):
                points[layer, n].append(score(runs, pairs=n))
    if not points:
        return Missing(EXPERIMENT)
    states = [max(1, one.state) for found in points.values() for one in found]
    drawn = {layer for layer, _ in points}
    return Explorable(
        id=id,
        caption=_recall_caption(points, max(pairs)),
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
        y=Axis("right", "Answered right", "%", digits=3, low="low", high="high", range=(0, 100)),
        color="layer",
        mark="line+dot",
        controls=[
            Filter("pairs", "Pairs", options=pairs, default=max(pairs)),
            Toggle(
                "layer",
                "Layer",
                options=_labels(drawn),
                default=[name for name in SHOWN if name in drawn] or None,
            ),
        ],
        provenance=provenance(records),
    )


def _sizes(keys: dict[str, str | int], scores: list[Score]) -> Series:
    """One layer's sizes, smallest first. A layer without a state stands at one byte."""
    scores = sorted(scores, key=lambda one: one.state)
    columns = {
        "state": [max(1, one.state) for one in scores],
        "right": [100 * one.mean for one in scores],
        "low": [100 * one.low for one in scores],
        "high": [100 * one.high for one in scores],
    }
    return Series(keys, columns)


def _recall_caption(points: dict[tuple[str, int], list[Score]], pairs: int) -> str:
    def said(layer: str) -> str:
        best = max(points[layer, pairs], key=lambda one: one.state)
        return f"{_label(layer)} {percent(best.mean)}"

    told = [said(layer) for layer in SHOWN if (layer, pairs) in points]
    seeds = {one.seeds for found in points.values() for one in found}
    return (
        "**What a state can recall depends on its size and on how it is written.** "
        f"With {pairs} pairs, each layer at its largest: {', '.join(told)}. Grey: the share "
        "that sums of codes drawn at random, in so many numbers, answer untrained. "
        + (f"Bars span {how_many_seeds(max(seeds))}." if max(seeds) > 1 else "One seed so far.")
    )


def induction_figure(id: str = "induction") -> Explorable | Missing:
    """Share right at lengths never trained on."""
    layers = by_layer("induction")
    if not layers:
        return Missing(EXPERIMENT)
    records = [run for runs in layers.values() for run in runs]
    series = []
    for name, runs in layers.items():
        # A run is asked no further once half is wrong: past that, others would speak for all.
        asked = [{row["length"] for row in rows(run, "test")} for run in runs]
        lengths = sorted(set.intersection(*asked))
        scores = [score(runs, length=length) for length in lengths]
        if scores:
            columns = {
                "length": lengths,
                "right": [100 * one.mean for one in scores],
                "low": [100 * one.low for one in scores],
                "high": [100 * one.high for one in scores],
            }
            series.append(Series({"layer": name}, columns))
    if not series:
        return Missing(EXPERIMENT)
    drawn = {one.keys["layer"] for one in series}
    return Explorable(
        id=id,
        caption=_induction_caption(layers),
        alt=(
            "Share of right answers against the length of the text on a logarithmic scale. All "
            "were trained at 256 tokens; some fall off beyond, some stay at the top."
        ),
        series=series,
        x=Axis("length", "Length of the text", "tokens", log=2),
        y=Axis("right", "Answered right", "%", digits=3, low="low", high="high", range=(0, 100)),
        color="layer",
        mark="line+dot",
        controls=[
            Toggle(
                "layer",
                "Layer",
                options=_labels(drawn),
                default=[name for name in SHOWN_LENGTHS if name in drawn] or None,
            )
        ],
        provenance=provenance(records),
    )


def furthest(runs: list[Record]) -> tuple[int, int]:
    """The longest text of which nine in ten are answered, by the worst and by the best seed."""
    found = [
        max((row["length"] for row in rows(run, "test") if row["accuracy"] >= 0.9), default=0)
        for run in runs
    ]
    return min(found, default=0), max(found, default=0)


def between(low: int, high: int) -> str:
    """A range over seeds: 256, or 256–4,096."""
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _induction_caption(layers: dict[str, list[Record]]) -> str:
    reached = {name: furthest(runs) for name, runs in layers.items()}
    learned = [name for name, (low, _) in reached.items() if low >= TRAINED_AT]
    told = [f"{_label(name)} to {between(*reached[name])}" for name in learned]
    asked = (row for runs in layers.values() for run in runs for row in rows(run, "test"))
    few = {row["length"]: row["questions"] for row in asked if row["questions"] < FEW}
    longest = ", ".join(f"{few[length]} of {length:,} tokens" for length in sorted(few))
    return (
        f"**Trained at {TRAINED_AT} tokens, asked at others.** Right nine times in ten, by seed: "
        f"{', '.join(told) or 'none'}. A layer whose state grows is asked up to a few thousand "
        "tokens, and none beyond the length at which half of its answers are wrong; lines end "
        f"where the first seed does.{f' Texts asked: {longest}.' if longest else ''}"
    )


def scores() -> Table | Missing:
    """Every layer at every task."""
    tables = {task: by_layer(task) for task in TASKS} if learned(EXPERIMENT) else {}
    if not any(tables.values()):
        return Missing(EXPERIMENT)
    asked = _asked()
    largest = asked["recall"]["pairs"]
    cells = []
    for name in LAYERS:
        found = {
            task: _score(runs.get(name, []), asked.get(task, {})) for task, runs in tables.items()
        }
        if any(found.values()):
            state = found["recall"].state if found["recall"] else None
            cells.append([
                _label(name),
                *(_share(found[task]) for task in TASKS),
                "–" if state is None else f"{state:,}",
            ])  # fmt: skip
    titles = ["layer", *TASKS[:3], f"recall, {largest} pairs", "state in recall, B"]
    return Table(titles, cells)


def _asked() -> dict[str, dict[str, int]]:
    """Which test of a task with several is in the table: most pairs, the length trained at."""
    asked_for = (row["pairs"] for run in of_task("recall") for row in rows(run, "test"))
    return {"recall": {"pairs": max(asked_for, default=0)}, "induction": {"length": TRAINED_AT}}


def mean_shares() -> dict[str, list[str]]:
    """What each layer answers at each task, the mean over seeds; a dash where it was not asked."""
    tables = {task: by_layer(task) for task in TASKS}
    asked = _asked()
    found = {
        name: [_score(runs.get(name, []), asked.get(task, {})) for task, runs in tables.items()]
        for name in LAYERS
    }
    return {
        name: ["–" if one is None else f"{100 * one.mean:.0f}%" for one in scores]
        for name, scores in found.items()
    }


def _score(runs: list[Record], wanted: dict[str, int]) -> Score | None:
    try:
        return score(runs, **wanted)
    except NotMeasuredError:
        return None


def _share(found: Score | None) -> str:
    if found is None:
        return "–"
    spread = f" ± {50 * (found.high - found.low):.0f}" if found.seeds > 1 else ""
    return f"{100 * found.mean:.0f}%{spread}"


def _label(name: str) -> str:
    return palette.label(name) or name


def _labels(drawn: Iterable[str]) -> dict[str, str]:
    return {name: _label(name) for name in LAYERS if name in set(drawn)}


class Claim(NamedTuple):
    """That the second layer answers more than the first. Layers are run names without seeds."""

    says: str
    published: str
    task: str
    worse: str
    better: str
    wanted: dict[str, int]


def published() -> Table | Missing:
    """Published comparisons beside ours, and whether they agree."""
    if not learned(EXPERIMENT):
        return Missing(EXPERIMENT)
    pairs = {"pairs": 64}
    claims = [
        Claim("S6 copies selectively, S4 does not", "18.3% and 97.0%", "selective copying",
              "s4", "s6", {}),
        Claim("the Mamba block too", "56.4% (with S4) and 99.8%", "selective copying",
              "s4", "mamba", {}),
        Claim("a gate copies selectively, linear attention does not", "–", "selective copying",
              "linear", "gated", {}),
        Claim("copying needs no selection", "–", "copying", "none", "s4", {}),
        Claim("the Mamba block finds what followed, S4 does not", "–", "induction", "s4", "mamba",
              {"length": TRAINED_AT}),
        Claim("nor does RWKV, whose decay is fixed", "–", "induction", "rwkv", "mamba",
              {"length": TRAINED_AT}),
        Claim("a larger state recalls more", "–", "recall", "linear-heads8", "linear", pairs),
        Claim("the delta rule recalls more than the sum", "–", "recall", "linear", "delta", pairs),
        Claim("softmax recalls more than a state", "–", "recall", "delta", "softmax", pairs),
    ]  # fmt: skip
    return Table(
        ["claim", "published", "here", "comes out"],
        [[one.says, one.published, *_comes_out(one)] for one in claims],
        align="llll",
        wrap=True,
    )


def _comes_out(claim: Claim) -> tuple[str, str]:
    """The two shares, and a verdict: by more than seeds differ, where there are several."""
    prefix = claim.task.replace(" ", "-")
    found = []
    for layer in (claim.worse, claim.better):
        named = f"{prefix}-{layer}-seed"
        runs = [run for run in of_task(claim.task) if run["name"].startswith(named)]
        found.append(_score(runs, claim.wanted))
    if None in found:
        return "not measured yet", "–"
    worse, better = found
    shares = f"{_share(worse)} and {_share(better)}"
    if better.low > worse.high:
        seeds = min(worse.seeds, better.seeds)
        return shares, "yes" if seeds > 1 else "yes, with one seed"
    return shares, "no" if better.mean <= worse.mean else "not beyond the seeds"
