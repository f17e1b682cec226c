"""Runs of the made-up tasks: for each model those at its best learning rate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from statistics import fmean
from typing import Any, NamedTuple, Protocol

from lsa.layers import LAYERS

from ...explorable import palette
from ...explorable.figure import Axis, Toggle
from .format import counted, percent
from .pairs import Pairs, compare
from .records import Record, Row, learned, need, rows
from .seeds import seeds_in_words

EXPERIMENT = "made_up_tasks"
LABELS = {
    "gla": "GLA",
    "gated-delta": "Gated DeltaNet",
    "delta-adds": "DeltaNet without erasing",
    "fades": "Linear, fading",
    "taylor-2": "Taylor 2",
    "taylor-4": "Taylor 4",
    "window": "Softmax in a window",
    "window-state": "Window and state",
}
# Layers with parts of others: features, what keeps outputs in size, and what else.
PARTS = {
    "linear-normed": ("elu + 1", "norm", ""),
    "identity-normed": ("plain", "norm", ""),
    "relu-normed": ("relu", "norm", ""),
    "exp-normed": ("exp", "norm", ""),
    "absolute-silu-normed": ("absolute silu", "norm", ""),
    "raised-silu-normed": ("silu + 0.28", "norm", ""),
    "lowered-silu-normed": ("silu − 0.69", "norm", ""),
    "elu-normed": ("elu", "norm", ""),
    "tanh-normed": ("tanh", "norm", ""),
    "silu-normed": ("silu", "norm", ""),
    "unit": ("silu", "norm", "unit keys"),
    "write-gate": ("silu", "norm", "a write gate"),
    "gated-silu": ("silu", "norm", "Mamba-2's decay"),
    "gla-silu": ("silu", "norm", "GLA's decay"),
}
RIGHT = Axis("right", "Answered right", "%", digits=3, low="low", high="high", range=(-2, 102))


class Share(NamedTuple):
    """Share of questions answered right: mean, least and most over seeds; bytes of state."""

    mean: float
    low: float
    high: float
    state: int
    seeds: int


class Ranged(Protocol):
    """A share of right answers and its range over seeds."""

    @property
    def mean(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def with_range(found: Ranged) -> str:
    """A share in per cent, ± half of its range over several seeds: "68% ± 3"; "99.6% ± 0.1".

    A range of more than 30 points is told by its ends: "42% (1–65)".
    """
    if found.high == found.low:
        return percent(found.mean)
    half = 50 * (found.high - found.low)
    if half > 15:
        return f"{percent(found.mean)} ({100 * found.low:.0f}–{100 * found.high:.0f})"
    digits = 0 if half >= 0.95 else 1
    return f"{100 * found.mean:.{digits}f}% ± {half:.{digits}f}"


class Kind(NamedTuple):
    """A model and its size: heads, and the numbers of state that it was given, if any."""

    model: str
    heads: int
    state: int | None = None


def kind_of(run: Record) -> Kind:
    """The model that a run trained, by its names in `made_up_tasks`."""
    config = run["config"]
    return Kind(config["model"], config["n_head"], config["attention_options"].get("d_state"))


def label(model: str) -> str:
    """A model's name in prose."""
    return LABELS.get(model) or palette.label(model) or model


def at_best_rates(task: str, *, parts: bool = False) -> dict[Kind, list[Record]]:
    """The runs of each model at its best rate, one per seed; see `at_all_rates`."""
    return {kind: best_rate(runs) for kind, runs in at_all_rates(task, parts=parts).items()}


def at_all_rates(task: str, *, parts: bool = False) -> dict[Kind, list[Record]]:
    """The whole runs of each model on a task, at all rates and seeds.

    parts: of linear attention with parts of another layer, in place of those that are compared.
    """
    every: dict[Kind, list[Record]] = defaultdict(list)
    for run in learned(EXPERIMENT):
        part = run["config"]["model"] in PARTS
        if run["complete"] and run["config"]["task"] == task and part == parts:
            every[kind_of(run)].append(run)
    return every


def of_usual_size(kinds: dict[Kind, list[Record]], heads: int = 1) -> dict[str, list[Record]]:
    """Each model's runs with so many heads and, if its state has a size, the largest."""
    usual = {}
    for kind in sorted(kinds, key=lambda kind: kind.state or 0):
        if kind.heads == heads:
            usual[kind.model] = kinds[kind]
    return {model: usual[model] for model in in_order(usual)}


def best_rate(runs: Iterable[Record]) -> list[Record]:
    """All seeds of the rate with the best last validation, over the seeds that all rates have.

    The mean share right decides, then the loss. A run with a loss that was not finite comes last.
    """
    by_rate: dict[float, dict[int, Record]] = defaultdict(dict)
    for run in runs:
        by_rate[run["config"]["learning_rate"]][run["config"]["seed"]] = run
    shared = set.intersection(*(set(seeds) for seeds in by_rate.values()))

    def quality(rate: float) -> tuple[float, float]:
        last = [_last(run) for seed, run in by_rate[rate].items() if seed in shared or not shared]
        return fmean(right for right, _ in last), -fmean(loss for _, loss in last)

    best = by_rate[max(sorted(by_rate), key=quality)]
    return [best[seed] for seed in sorted(best)]


def _last(run: Record) -> tuple[float, float]:
    """Share right and loss of the last validation."""
    curve, (end,) = rows(run, "curve"), rows(run, "end")
    if end["ending"] == "not finite" or not curve:
        return 0.0, inf
    return curve[-1]["accuracy"], curve[-1]["loss"]


def answers(run: Record) -> list[Row]:
    """The rows of a run's test, from the table that has them."""
    return rows(run, "distances") or rows(run, "test")


def share(answers: Sequence[Row]) -> Share:
    """The share right of one question over all seeds."""
    right = [row["accuracy"] for row in answers]
    return Share(fmean(right), min(right), max(right), answers[0]["state"], len(right))


def score(runs: Iterable[Record], **wanted: int) -> Share:
    """The share over seeds, in the test's row with these values. Raises NotMeasuredError."""
    found = [row for run in runs for row in rows(run, "test", **wanted)]
    return share(need(found, f"{EXPERIMENT}: no test with {wanted}"))


def hardest(run: Record) -> float:
    """Share right in the longest test of a run."""
    return longest(run)["accuracy"]


def longest(run: Record) -> Row:
    """The row of the longest of its tests."""
    return max(answers(run), key=lambda row: row["length"])


def lead(
    task: str, first: str, second: str, right: Callable[[Record], float] = hardest, heads: int = 1
) -> Pairs:
    """Percentage points by which one model answers more than another, by seed.

    Each at its own best learning rate. `right` takes the share from a run. Raises NotMeasuredError.
    """
    found = of_usual_size(at_best_rates(task), heads)
    one, other = (
        {run["config"]["seed"]: 100 * right(run) for run in found.get(model, ())}
        for model in (first, second)
    )
    return compare([one[seed] - other[seed] for seed in sorted(one.keys() & other.keys())])


def right_columns(x: str, points: Iterable[tuple[int, Any]]) -> dict[str, list]:
    """Columns of a curve against `x`, on the axis `RIGHT`. points: a place and a share each."""
    places, shares = zip(*points, strict=True)
    return {
        x: [*places],
        "right": [100 * one.mean for one in shares],
        "low": [100 * one.low for one in shares],
        "high": [100 * one.high for one in shares],
    }


def layers_toggle(drawn: Iterable[str], shown: Iterable[str]) -> Toggle:
    """Control that selects the models; at first those in `shown`."""
    options = {name: label(name) for name in in_order(drawn)}
    return Toggle(
        "layer", "Layer", options=options,
        default=[name for name in shown if name in options] or None,
    )  # fmt: skip


def seeds_of(by_model: Mapping[str, list[Record]]) -> str:
    """Number of seeds of the models, in words. Raises NotMeasuredError."""
    return seeds_in_words([len(runs) for runs in need(by_model, EXPERIMENT).values()])


def in_order(models: Iterable[str]) -> Iterator[str]:
    """Models in the order of the catalogue, each before its variants."""
    wanted = {*models}
    after = {"gated": ["gla"], "delta": ["delta-adds", "gated-delta"], "linear": ["fades"]}
    after["taylor"] = ["taylor-2", "taylor-4"]
    for layer in LAYERS:
        yield from (name for name in (layer, *after.get(layer, [])) if name in wanted)


def runs_of_model(task: str, model: str, heads: int = 1) -> list[Record]:
    """Whole runs of a model of the usual size on a task, at all rates and seeds."""
    return of_usual_size(at_all_rates(task), heads).get(model, [])


def trainings(task: str) -> set[tuple[float, int]]:
    """Learning rates and seeds with which a task's stored models were trained."""
    return {(run["config"]["learning_rate"], run["config"]["seed"])
            for run in learned(EXPERIMENT) if run["config"]["task"] == task}  # fmt: skip


def rates_in_words(task: str) -> str:
    """A caption's sentences on training: its end, the number of rates, and how one was chosen.

    Raises NotMeasuredError.
    """
    kinds = [*need(at_all_rates(task), f"{EXPERIMENT}: no {task}").values()]
    config = kinds[0][0]["config"]
    rates = [len({run["config"]["learning_rate"] for run in runs}) for runs in kinds]
    fewest, most = min(rates), max(rates)
    if fewest == most == 1:
        seeds = {run["config"]["seed"] for runs in kinds for run in runs}
        more = " and one seed are" if len(seeds) == 1 else " is"
        chosen = f"So far one learning rate{more} stored."
    else:
        of = counted(most) if fewest == most else f"{counted(fewest)} to {counted(most)}"
        chosen = f"Validation chose one of {of} learning rates for each model."
    updates, solved = f"{config['updates']:,} updates", f"{100 * config['solved']:g}% right"
    return f"Training ended after {updates} or at {solved}. {chosen}"
