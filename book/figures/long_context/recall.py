"""Recall by the number of pairs, the length of the text, and the size of the state."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean

from ...explorable.figure import Axis, Explorable, Filter, Series, Toggle
from ..lib.format import in_words, percent, times
from ..lib.records import Record, Row, need, provenance, rows
from ..lib.seeds import bars
from ..lib.tables import Missing, Table
from ..lib.tasks import (
    EXPERIMENT,
    RIGHT,
    Share,
    answers,
    at_best_rates,
    label,
    rates_in_words,
    right_columns,
    seeds_of,
    share,
)

TASK = "recall in windows"
NAMES = {
    "softmax": "softmax",
    "linear": "linear",
    "gated": "gated",
    "delta": "delta",
    "taylor-2": "taylor",
    "taylor-4": "Taylor 4",
    "none": "none",
}
PAIRS = 4, 16, 64
MANY = PAIRS[-1]
SHORTEST = 128  # tokens; shorter texts are dense, and only for training


def by_model() -> dict[str, list[Record]]:
    """The complete runs of each model at its best rate, all seeds together."""
    kinds = at_best_rates(TASK)
    by_name = {
        kind.model: [run for run in runs if _answer_rows(run)] for kind, runs in kinds.items()
    }
    return {model: by_name[model] for model in NAMES if by_name.get(model)}


def shares(model: str) -> dict[tuple[int, int], Share]:
    """Shares by number of pairs and length of the text. Raises NotMeasuredError."""
    runs = need(by_model().get(model), f"{EXPERIMENT}: no {model}")
    grouped: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in (row for run in runs for row in _answer_rows(run)):
        grouped[row["pairs"], row["length"]].append(row)
    return {what: share(them) for what, them in sorted(grouped.items())}


def _answer_rows(run: Record) -> list[Row]:
    """Rows of a run on the texts of the figure."""
    return [row for row in answers(run) if row["pairs"] in PAIRS and row["length"] >= SHORTEST]


def of_pairs(model: str, pairs: int) -> list[Share]:
    """Shares at every length, shortest first. Raises NotMeasuredError."""
    by_length = [one for (n, _), one in shares(model).items() if n == pairs]
    return need(by_length, f"{EXPERIMENT}: {model} was not asked for {pairs} pairs")


def recalled(model: str, pairs: int) -> float:
    """Share right in the mean over all lengths. Raises NotMeasuredError."""
    return fmean(one.mean for one in of_pairs(model, pairs))


def drift(model: str, pairs: int) -> float:
    """Difference of the shares at the shortest and at the longest text."""
    by_length = of_pairs(model, pairs)
    return abs(by_length[0].mean - by_length[-1].mean)


def _state(model: str) -> int:
    """Bytes of state after the longest text. Raises NotMeasuredError."""
    return max(one.state for one in shares(model).values())


def figure(id: str = "recall-windows") -> Explorable | Missing:
    """Share of questions answered right against the length of the text."""
    models = by_model()
    series = []
    for model, runs in models.items():
        all_shares = shares(model)
        for pairs in PAIRS:
            by_length = {length: one for (n, length), one in all_shares.items() if n == pairs}
            if by_length:
                columns = right_columns("length", by_length.items())
                keys = {"model": NAMES[model], "pairs": pairs}
                series.append(Series(keys, columns, source=runs[0]["path"]))
    if not series:
        return Missing(EXPERIMENT)
    config = next(iter(models.values()))[0]["config"]
    rates = rates_in_words(TASK)
    return Explorable(
        id=id,
        caption=(
            "**Longer texts change few answers; more pairs lower those of small states.** The "
            "share of keys whose value is answered, by the length of the text. Other tokens are "
            "one filler. One layer of width "
            f"{config['d_model']}, one head. {rates} {bars(seeds_of(models))}"
        ),
        alt="Share of questions answered right against the length of the text, lines nearly level.",
        series=series,
        x=Axis("length", "Length of the text", "tokens", log=2),
        y=RIGHT,
        color="model",
        mark="line+dot",
        controls=[
            Filter("pairs", "Pairs", options=PAIRS, default=MANY),
            Toggle(
                "model",
                "Attention",
                options={NAMES[name]: label(name) for name in models},
            ),
        ],
        provenance=provenance([run for runs in models.values() for run in runs]),
    )


def by_seed(model: str, pairs: int = MANY) -> list[float]:
    """Share right of this number of pairs for each seed, over all lengths together.

    Raises NotMeasuredError.
    """
    runs = need(by_model().get(model), f"{EXPERIMENT}: no {model}")
    accuracies = [
        [row["accuracy"] for row in _answer_rows(run) if row["pairs"] == pairs] for run in runs
    ]
    need(all(accuracies), f"{EXPERIMENT}: {model} was not asked for {pairs} pairs")
    return [fmean(shares) for shares in accuracies]


def table() -> Table | Missing:
    """Share right by pairs, over all lengths together, and bytes of state after the longest."""
    if not (models := by_model()):
        return Missing(EXPERIMENT)
    cells = []
    for model in models:
        texts = in_words(
            **{str(n): lambda model=model, n=n: _spread(by_seed(model, n)) for n in PAIRS}
        )
        cells.append([label(model), f"{_state(model):,}", *texts.values()])
    return Table(["", "state, B", *(f"{n} pairs" for n in PAIRS)], cells)


def _spread(shares: list[float]) -> str:
    """A mean over seeds with the least and the most: 31% (23–37)."""
    low, high = (f"{100 * x:.0f}" for x in (min(shares), max(shares)))
    return percent(fmean(shares)) if low == high else f"{percent(fmean(shares))} ({low}–{high})"


def learners(model: str) -> int:
    """Number of seeds that reached the validation share that ends a training.

    Raises NotMeasuredError.
    """
    runs = need(by_model().get(model), f"{EXPERIMENT}: no {model}")
    return sum(rows(run, "end")[0]["ending"] == "solved" for run in runs)


def numbers() -> dict[str, str]:
    """Numbers for the chapter on long context."""

    def updates() -> int:
        return need([*by_model().values()], EXPERIMENT)[0][0]["config"]["updates"]

    return in_words(
        windows_linear=lambda: percent(recalled("linear", MANY)),
        windows_linear_4=lambda: percent(recalled("linear", PAIRS[0])),
        windows_delta=lambda: percent(recalled("delta", MANY)),
        windows_delta_16=lambda: percent(recalled("delta", PAIRS[1])),
        windows_taylor_4_times=lambda: times(_state("taylor-4") / _state("softmax")),
        windows_updates=lambda: f"{updates():,}",
    )
