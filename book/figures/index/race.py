"""The race: both attentions with one decaying head, beside models that see less.

Curves are means over seeds. Their time axis is updates times the seconds of an update, which were
measured separately, interleaved, on a quiet computer.
"""

from __future__ import annotations

from collections import Counter
from statistics import fmean
from typing import NamedTuple

from ...explorable.figure import Crossing, Explorable, Filter, Series, Toggle
from ..lib import pairs
from ..lib.axes import LOSS, PROGRESS
from ..lib.records import (
    NotMeasuredError,
    Record,
    Row,
    have,
    interpolated,
    learned,
    load,
    losses_by_update,
    mean_curve,
    need,
    provenance,
    row,
    rows,
)
from ..lib.seeds import seeds_in_words
from ..lib.tables import Missing
from . import ngram_baseline

MODELS = {
    "softmax": ("softmax", "far"),
    "linear": ("linear", "far"),
    "softmax, near only": ("softmax", "near"),
    "linear, near only": ("linear", "near"),
    "window": ("softmax", "window"),
    "two bytes": ("conv", "near"),
    "no attention": ("none", "near"),
}
PAIR = ("softmax", "linear")
ATTENTION = {
    "softmax": "Softmax", "linear": "Linear", "conv": "Convolution", "none": "No attention",
}  # fmt: skip
SIGHT = {"far": "one head sees everything", "near": "near only", "window": "last 128 bytes"}
WRITTEN = {name: name for name in MODELS} | {
    "window": "softmax, last 128", "two bytes": "convolution of two bytes",
}  # fmt: skip
LABELS = {name: words[0].upper() + words[1:] for name, words in WRITTEN.items()}
CONTEXTS = (256, 1024, 4096, 16384)
MAIN = 4096  # the context that most pages describe
OPENS_AT = 16384  # the default context of the first page and the README
Found = dict[str, list[Record]]


def curves(context: int | None = None) -> list[Record]:
    """The stored trainings, at one context or at all."""
    trained = learned("race", model=["softmax", "linear"])
    runs = [run for run in trained if run["config"]["model"] in MODELS and losses_by_update(run)]
    return [run for run in runs if context in (None, run["config"]["context"])]


def by_model(context: int) -> Found:
    """The runs at a context: a list of seeds for each model that has any.

    Models are compared on the same seeds, those of both softmax and linear attention. A control
    with fewer is shown with those; one with none of them, with its own.
    """
    by_name: Found = {}
    for run in sorted(curves(context), key=_seed):
        by_name.setdefault(run["config"]["model"], []).append(run)
    both = set.intersection(*({_seed(run) for run in by_name.get(name, ())} for name in PAIR))
    shared = {name: [run for run in runs if _seed(run) in both] for name, runs in by_name.items()}
    return {name: shared[name] or by_name[name] for name in MODELS if name in by_name}


def _seed(run: Record) -> int:
    return run["config"]["seed"]


def timed(context: int) -> Record:
    """The record of an update's seconds at a context. Raises NotMeasuredError.

    Its device is of the kind that trained. If the device that trained most was timed, with any
    number of threads, it is that one, else the one timed last.
    """
    trained = Counter(_processor(run) for run in curves())
    kinds = {kind for kind, _ in trained}
    records = [
        run
        for run in load("race")
        if run["config"]["model"] == "all" and run["config"]["context"] == context
        and run["complete"] and (not kinds or _processor(run)[0] in kinds)
    ]  # fmt: skip
    need(records, f"race: no seconds of an update at {context}")

    def rank(run: Record) -> tuple[int, int, str]:
        threads = run["provenance"]["device"]["count"]
        return trained[_processor(run)], threads, run["provenance"]["started"]

    return max(records, key=rank)


def _processor(run: Record) -> tuple[str, str]:
    device = run["provenance"]["device"]
    return device["kind"], device["name"]


def speed(model: str, context: int) -> Row:
    """Seconds of an update: median and quartiles. Raises NotMeasuredError."""
    return row(timed(context), "speed", model=model)


def seconds(model: str, context: int) -> float:
    """Median seconds of an update. Raises NotMeasuredError."""
    return speed(model, context)["seconds"]


def ratio(context: int) -> float:
    """How many times longer an update takes with softmax."""
    return seconds("softmax", context) / seconds("linear", context)


def ends(model: str, context: int) -> list[float]:
    """The last loss of each seed. Raises NotMeasuredError."""
    runs = need(by_model(context).get(model), f"race: no {model} at {context}")
    return [[*losses_by_update(run).values()][-1] for run in runs]


def end(model: str, context: int) -> float:
    """The mean over seeds of the last loss. Raises NotMeasuredError."""
    return fmean(ends(model, context))


def differences(first: str, second: str, context: int) -> list[float]:
    """The last loss of one model minus another's, for each seed. Raises NotMeasuredError."""
    runs = by_model(context)
    return pairs.differences(runs.get(first, ()), runs.get(second, ()))


def _series() -> list[Series]:
    series = []
    for context in CONTEXTS:
        for model, runs in by_model(context).items():
            attention, sight = MODELS[model]
            pace = seconds(model, context) / 60
            shown = {"mean": [mean_curve(runs)]}
            shown |= {"each": [losses_by_update(run) for run in runs]} if len(runs) > 1 else {}
            for seeds, lines in shown.items():
                for i, line in enumerate(lines):
                    series.append(
                        Series(
                            keys={
                                "context": context,
                                "attention": attention,
                                "sight": sight,
                                "seeds": seeds,
                            },
                            columns={
                                "update": [*line],
                                "minutes": [update * pace for update in line],
                                "loss": [*line.values()],
                            },
                            label=LABELS[model],
                            source=runs[i]["path"],
                        )
                    )
    return series


def figure(id: str = "headline", fold: str = "", context: int = MAIN) -> Explorable | Missing:
    """Loss on held-out novels against updates and time, for all models at each context."""
    try:
        series = _series()
    except NotMeasuredError:
        series = []
    if not series:
        return Missing("race")
    contexts = sorted({one.keys["context"] for one in series})
    main = context if context in contexts else contexts[-1]
    return Explorable(
        id=id,
        caption=_caption(main),
        alt=(
            "Falling curves of validation loss at one context length, against minutes or updates. "
            "The models: softmax and linear attention, each with and without a head that sees "
            "everything; softmax in a window; a convolution of two bytes; and no attention."
        ),
        series=series,
        x=PROGRESS,
        y=LOSS,
        color="attention",
        dash="sight",
        mark="line",
        controls=[
            Filter("context", "Context", options=CONTEXTS, default=main),
            Filter("seeds", "Seeds", options={"mean": "mean", "each": "each"}, default="mean"),
            Toggle("attention", "Attention", options=ATTENTION, default=("softmax", "linear")),
            Toggle("sight", "Heads", options=SIGHT, default=("far",)),
        ],
        ceilings=_yardsticks(series),
        crossing=Crossing("loss", "Loss to reach", compare=("softmax", "linear")),
        provenance=provenance([*curves(), *(timed(n) for n in contexts), *have("ngram_baseline")]),
        fold=fold,
    )


def _caption(context: int) -> str:
    runs = by_model(context)
    each = seeds_in_words([*map(len, runs.values())])
    return (
        "**Update for update we see no difference; in time linear attention is done first.** "
        "Both have one head that fades. "
        f"Loss on five novels that were never trained on, {each}. At each context all models make "
        "the same number of updates, fixed beforehand, on the same text. Time is updates times the "
        "median seconds of an update, measured separately on an idle CPU, all models in turn. "
        "Grey: the loss of models that only count letters."
    )


def _yardsticks(series: list[Series]) -> list[Series]:
    """Grey lines at a context: n-gram models that a curve has passed."""
    if not have("ngram_baseline"):
        return []
    named = {2: "counting letter pairs", 3: "counting letter triples"}
    lines = []
    for context in sorted({one.keys["context"] for one in series}):
        here = [one.columns for one in series if one.keys["context"] == context]
        for order, label in named.items():
            level = ngram_baseline.loss(order)
            if max(max(one["loss"]) for one in here) < level:
                continue
            columns = {"loss": [level, level]}
            for name in ("update", "minutes"):
                columns[name] = [
                    min(one[name][0] for one in here), max(one[name][-1] for one in here)
                ]  # fmt: skip
            lines.append(Series({"context": context}, columns, label=label))
    return lines


class SameTime(NamedTuple):
    """Losses when linear attention has made its updates, means over seeds.

    minutes  that its updates take
    other    loss of the model it is compared with, by then
    linear   its own
    behind   linear less other, in pairs of a seed
    """

    minutes: float
    other: float
    linear: float
    behind: pairs.Pairs


def in_the_same_time(context: int, other: str = "softmax") -> SameTime:
    """Both losses at the minute when linear attention is done. Raises NotMeasuredError.

    The other's loss is interpolated between its validations before and after, or is its last one
    if all of its updates are made by then.
    """
    runs = by_model(context)
    linear = {_seed(run): losses_by_update(run) for run in runs.get("linear", ())}
    beside = {_seed(run): losses_by_update(run) for run in runs.get(other, ())}
    seeds = need(sorted(linear.keys() & beside.keys()), f"race: no {other} at {context}")
    updates = max(linear[seeds[0]])
    spent = updates * seconds("linear", context)
    made = spent / seconds(other, context)
    losses = [(interpolated(beside[seed], made), linear[seed][updates]) for seed in seeds]
    behind = pairs.compare([own - loss for loss, own in losses])
    return SameTime(spent / 60, *map(fmean, zip(*losses, strict=True)), behind)


def positions(context: int, reading: str = "own") -> dict[str, dict[int, float]]:
    """Mean loss by position over seeds, {last position: loss} for each model."""
    means = {}
    for model, runs in by_model(context).items():
        tables = [rows(run, "positions", reading=reading) for run in runs]
        every = [{one["last"]: one["loss"] for one in table} for table in tables if table]
        if every:
            means[model] = {last: fmean(one[last] for one in every) for last in every[0]}
    return means
