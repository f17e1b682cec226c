"""Keys that are written again: who answers the newest value, and what erasing is worth."""

from __future__ import annotations

from collections import defaultdict

from ...explorable.figure import Axis, Explorable, Series
from ..lib.format import in_words, percent
from ..lib.pairs import Pairs, compare
from ..lib.records import NotMeasuredError, Record, Row, provenance
from ..lib.seeds import bars
from ..lib.tables import Missing
from ..lib.tasks import (
    EXPERIMENT,
    RIGHT,
    Share,
    answers,
    at_best_rates,
    layers_toggle,
    of_usual_size,
    rates_in_words,
    right_columns,
    seeds_of,
    share,
)

TASK = "overwriting"
SHOWN = ("softmax", "linear", "gated", "delta", "delta-adds", "gated-delta", "mamba")


def shares(task: str, model: str, column: str) -> dict[int, Share]:
    """Share right, by the test's writes, or its pairs. Raises NotMeasuredError."""
    if not (runs := of_usual_size(at_best_rates(task)).get(model)):
        raise NotMeasuredError(f"{EXPERIMENT}: no {model} at {task}")
    found: dict[int, list[Row]] = defaultdict(list)
    for row in (row for run in runs for row in answers(run)):
        found[row[column]].append(row)
    return {asked: share(them) for asked, them in found.items()}


def erasing(task: str, column: str) -> Pairs:
    """Share right with the erase term less that without, by seed, at most writes or most pairs.

    Each at its own best learning rate. Raises NotMeasuredError.
    """
    ends = []
    for model in ("delta", "delta-adds"):
        runs = of_usual_size(at_best_rates(task)).get(model, [])
        ends.append({run["config"]["seed"]: _hardest(run, column) for run in runs})
    first, second = ends
    return compare([first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())])


def _hardest(run: Record, column: str) -> float:
    return max(answers(run), key=lambda row: row[column])["accuracy"]


def figure(id: str = "overwriting") -> Explorable | Missing:
    """Share of newest values answered against how often each key was written."""
    kinds = at_best_rates(TASK)
    found = of_usual_size(kinds)
    series = []
    for model, runs in found.items():
        if by_writes := shares(TASK, model, "writes"):
            columns = right_columns("writes", by_writes.items())
            series.append(Series({"layer": model}, columns, source=runs[0]["path"]))
    if not series:
        return Missing(EXPERIMENT)
    config = next(iter(found.values()))[0]["config"]
    drawn = [one.keys["layer"] for one in series]
    return Explorable(
        id=id,
        caption=(
            f"**The delta rule keeps the newest value.** Each of {config['cases'][0]['pairs']} "
            "keys is written several times, each time with another value. The newest is asked for. "
            f"{rates_in_words(kinds, TASK)} {bars(seeds_of(found))}"
        ),
        alt=(
            "Share of newest values answered right against how often each key was written, a line "
            "for each layer. The lines of layers that erase fall least."
        ),
        series=series,
        x=Axis("writes", "Writes of each key", log=2),
        y=RIGHT,
        color="layer",
        mark="line+dot",
        controls=[layers_toggle(drawn, SHOWN)],
        provenance=provenance([run for runs in found.values() for run in runs]),
    )


def numbers() -> dict[str, str]:
    """Gain of the erase term at both tasks, in points, and the share right without it."""

    def points(task: str, column: str) -> str:
        pairs = erasing(task, column)
        error = "" if pairs.error is None else f" ± {100 * pairs.error:.0f}"
        return f"{'−' if pairs.mean < 0 else '+'}{100 * abs(pairs.mean):.0f}{error}"

    def left(model: str) -> str:
        by_writes = shares(TASK, model, "writes")
        return percent(by_writes[max(by_writes)].mean)

    return in_words(
        erasing_recall=lambda: points("recall", "pairs"),
        erasing_overwriting=lambda: points(TASK, "writes"),
        overwritten_delta=lambda: left("delta"),
        overwritten_adds=lambda: left("delta-adds"),
    )
