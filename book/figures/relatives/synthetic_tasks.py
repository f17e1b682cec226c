"""Recall, copying and induction by every layer: scores, and sizes of states."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean
from typing import NamedTuple

from ...explorable.figure import Axis, Explorable, Filter, Series
from ..lib.format import counted, in_words, listed, percent, times
from ..lib.records import NotMeasuredError, Record, learned, provenance, rows
from ..lib.seeds import bars, seeds_in_words
from ..lib.tables import Missing
from ..lib.tasks import (
    RIGHT,
    Kind,
    at_best_rates,
    is_probed,
    label,
    layers_toggle,
    of_usual_size,
    rates_in_words,
    right_columns,
    with_range,
)
from . import random_codes

EXPERIMENT = "synthetic_tasks"
TASKS = ("copying", "selective copying", "induction", "recall")
TRAINED_AT = 256  # tokens, of induction
FEW = 50  # texts of a length, below which the caption gives their number
SHOWN = ("softmax", "linear", "delta", "gated", "s6", "power")
SHOWN_LENGTHS = ("softmax", "linear", "delta", "s6", "mamba")


class Score(NamedTuple):
    """Share right: mean, least and most over seeds; bytes of state; number of seeds.

    probed: whether a short probe chose the learning rate.
    """

    mean: float
    low: float
    high: float
    state: int
    seeds: int
    probed: bool

    @property
    def mark(self) -> str:
        """The mark of a share whose learning rate a short probe chose."""
        return "†" if self.probed else ""


def of_task(task: str) -> dict[Kind, list[Record]]:
    """The runs of one task, by model and size; those of a probe if there are no others."""
    older = [run for run in learned(EXPERIMENT) if run["config"]["task"] == task]
    return at_best_rates(task, older)


def by_layer(task: str) -> dict[str, list[Record]]:
    """Runs of each model at its usual size, all seeds, in the order of the catalogue."""
    return of_usual_size(of_task(task))


def score(runs: Iterable[Record], **wanted: int) -> Score:
    """The score over seeds, in the test's row with these values. Raises NotMeasuredError."""
    runs = [*runs]
    answers = [row for run in runs for row in rows(run, "test", **wanted)]
    if not answers:
        raise NotMeasuredError(f"{EXPERIMENT}: no test with {wanted}")
    shares = [row["accuracy"] for row in answers]
    state, probed = answers[0]["state"], any(map(is_probed, runs))
    return Score(fmean(shares), min(shares), max(shares), state, len(shares), probed)


def recall_figure(id: str = "recall") -> Explorable | Missing:
    """Share of values recalled against the bytes of state, and the law of random codes."""
    sizes = of_task("recall")
    records = [run for runs in sizes.values() for run in runs]
    records.sort(key=lambda run: run["config"]["seed"])
    if not records:
        return Missing(EXPERIMENT)
    config = records[0]["config"]
    pairs = [case["pairs"] for case in config["cases"]]
    points: dict[tuple[str, int], list[Score]] = defaultdict(list)
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
        caption=_recall_caption(points, max(pairs), rates_in_words(sizes, "recall")),
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


def _sizes(keys: dict[str, str | int], scores: list[Score]) -> Series:
    """One layer's sizes, smallest first. A layer without a state is placed at one byte."""
    scores = sorted(scores, key=lambda one: one.state)
    return Series(keys, right_columns("state", ((max(1, one.state), one) for one in scores)))


def _recall_caption(points: dict[tuple[str, int], list[Score]], pairs: int, rates: str) -> str:
    seeds = seeds_in_words([one.seeds for found in points.values() for one in found])
    told = in_words(
        **{
            name.replace("-", "_"): lambda name=name: _of_bytes(share("recall", name))
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


def _of_bytes(one: Score) -> str:
    """A share and the state that it came from."""
    return f"{percent(one.mean)} from {one.state:,} bytes"


def induction_figure(id: str = "induction") -> Explorable | Missing:
    """Share right at lengths never trained on."""
    layers = by_layer("induction")
    if not layers:
        return Missing(EXPERIMENT)
    records = [run for runs in layers.values() for run in runs]
    series = []
    for name, runs in layers.items():
        # Tests of a run end at a length with half wrong; beyond it, the mean would be of other runs
        # only.
        asked = [{row["length"] for row in rows(run, "test")} for run in runs]
        lengths = sorted(set.intersection(*asked))
        if scores := {length: score(runs, length=length) for length in lengths}:
            series.append(Series({"layer": name}, right_columns("length", scores.items())))
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
        y=RIGHT,
        color="layer",
        mark="line+dot",
        controls=[layers_toggle(drawn, SHOWN_LENGTHS)],
        provenance=provenance(records),
    )


def _named(layers: list[str]) -> str:
    """Layers after a colon; nothing if there are none."""
    return f": {listed(map(label, layers))}" if layers else ""


def furthest(runs: list[Record]) -> tuple[int, int]:
    """The longest text with nine in ten right, for the worst and for the best seed."""
    found = [
        max((row["length"] for row in rows(run, "test") if row["accuracy"] >= 0.9), default=0)
        for run in runs
    ]
    return min(found, default=0), max(found, default=0)


def beyond(layers: dict[str, list[Record]], length: int = 16 * TRAINED_AT) -> tuple[int, list[str]]:
    """Number of layers learned at the trained length by every seed; those still right at `length`.

    Layers that were not asked at longer texts are left out.
    """
    least = {
        name: furthest(runs)[0]
        for name, runs in layers.items()
        if any(row["length"] > TRAINED_AT for run in runs for row in rows(run, "test"))
    }
    learned_ones = [name for name, reached in least.items() if reached >= TRAINED_AT]
    return len(learned_ones), [name for name in learned_ones if least[name] >= length]


def _induction_caption(layers: dict[str, list[Record]]) -> str:
    count, still = beyond(layers)
    asked = (row for runs in layers.values() for run in runs for row in rows(run, "test"))
    few = {row["length"]: row["questions"] for row in asked if row["questions"] < FEW}
    longest = ", ".join(f"{few[length]} of {length:,} tokens" for length in sorted(few))
    return (
        f"**Trained at {TRAINED_AT} tokens, most layers fail at longer texts.** At that length "
        f"{counted(count)} of the layers answer nine in ten with every seed. At "
        f"{16 * TRAINED_AT:,} tokens {counted(len(still))} still do{_named(still)}. Layers whose "
        "state grows are tested up to a few thousand tokens. A run's test ends once half of its "
        f"answers are wrong, and a line ends with its first run. Texts asked: {longest}. "
        f"{rates_in_words(of_task('induction'), 'induction')}"
    )


def _asked() -> dict[str, dict[str, int]]:
    """The test of each task whose share the text gives: most pairs, the trained length."""
    every = (run for runs in by_layer("recall").values() for run in runs)
    asked_for = (row["pairs"] for run in every for row in rows(run, "test"))
    return {"recall": {"pairs": max(asked_for, default=0)}, "induction": {"length": TRAINED_AT}}


def _config(task: str) -> dict:
    for first, *_ in by_layer(task).values():
        return first["config"]
    raise NotMeasuredError(f"{EXPERIMENT}: no {task}")


def share(task: str, model: str) -> Score:
    """Score of a model of the usual size in the test of `_asked`. Raises NotMeasuredError."""
    return score(by_layer(task).get(model, []), **_asked().get(task, {}))


# Models whose recall the chapters give.
TOLD = (
    "softmax", "linear", "gated", "gla", "delta", "delta-adds", "gated-delta", "power", "s6",
)  # fmt: skip
CASES = (32, 32, 64, 68), (8, 128, 64, 500)  # K, V, pairs, tokens, for which the text gives the law


def numbers() -> dict[str, str]:
    """Numbers for the chapters: the made-up tasks and the law of random codes."""

    told = {
        f"recall_{model.replace('-', '_')}": lambda model=model: with_range(share("recall", model))
        for model in TOLD
    }

    law = [random_codes.right_by_the_law(*case) for case in CASES]
    drawn = [random_codes.right_when_drawn(*case) for case in CASES]
    return in_words(
        recall_law=lambda: percent(law[0]),
        recall_drawn=lambda: percent(drawn[0]),
        law_of_few=lambda: percent(law[1]),
        drawn_of_few=lambda: percent(drawn[1]),
        recall_power_state=lambda: times(
            share("recall", "power").state / share("recall", "linear").state
        ),
        recall_updates=lambda: f"{_config('recall')['updates']:,}",
        law_off=lambda: max(
            abs(round(100 * a) - round(100 * b)) for a, b in zip(law, drawn, strict=True)
        ),
        **told,
    )
