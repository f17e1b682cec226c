"""Keys that are written again: which layers return the newest value, and the effect of erasing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from ...explorable.figure import Axis, Explorable, Series
from ..lib.format import in_words, percent
from ..lib.pairs import Pairs
from ..lib.records import NotMeasuredError, Record, Row, need, provenance
from ..lib.seeds import bars
from ..lib.tables import Missing
from ..lib.tasks import (
    EXPERIMENT,
    RIGHT,
    Share,
    answers,
    at_best_rates,
    hardest,
    label,
    layers_toggle,
    lead,
    longest,
    of_usual_size,
    rates_in_words,
    right_columns,
    runs_of_model,
    seeds_of,
    share,
    with_range,
)

TASK = "overwriting"
MOST = 8  # writes of a key
SHOWN = ("softmax", "linear", "gated", "delta", "delta-adds", "gated-delta", "mamba")


def shares(task: str, model: str, column: str) -> dict[int, Share]:
    """Share right by the test's number of writes, or of pairs. Raises NotMeasuredError."""
    runs = need(
        of_usual_size(at_best_rates(task)).get(model), f"{EXPERIMENT}: no {model} at {task}"
    )
    found: dict[int, list[Row]] = defaultdict(list)
    for row in (row for run in runs for row in answers(run)):
        found[row[column]].append(row)
    return {asked: share(them) for asked, them in found.items()}


def _fall(model: str) -> str:
    """A model's share at one write of each key and at the most."""

    def found_after(writes: int) -> str:
        by_writes = shares(TASK, model, "writes")
        if writes not in by_writes:
            raise NotMeasuredError(f"{EXPERIMENT}: {model} was not asked after {writes} writes")
        return percent(by_writes[writes].mean)

    found = in_words(once=lambda: found_after(1), most=lambda: found_after(MOST))
    return f"{label(model)} goes from {found['once']} to {found['most']}"


def easiest(run: Record) -> float:
    """Share right in the shortest test of a run."""
    return min(answers(run), key=lambda row: row["length"])["accuracy"]


def change(run: Record) -> float:
    """Share right in the longest test minus that in the shortest; negative for a fall."""
    return hardest(run) - easiest(run)


def erasing(task: str, right: Callable[[Record], float] = hardest) -> Pairs:
    """Points that the erase term adds, by seed. Raises NotMeasuredError."""
    return lead(task, "delta", "delta-adds", right)


def figure(id: str = "overwriting") -> Explorable | Missing:
    """Share of newest values returned against the number of writes of each key."""
    found = of_usual_size(at_best_rates(TASK))
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
            "**The more often keys are written, the fewer newest values are found.** "
            f"{_fall('delta')}, {_fall('delta-adds')}. Each of "
            f"{config['cases'][0]['pairs']} keys is written several times, each time with another "
            "value. The newest is asked for. "
            f"{rates_in_words(TASK)} {bars(seeds_of(found))}"
        ),
        alt=(
            "Share of newest values answered right against how often each key was written, a line "
            "for each layer."
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
    """Numbers for the chapter on the relatives: shares in three tasks, and numbers of questions."""

    def right(model: str, writes: int) -> str:
        return with_range(shares(TASK, model, "writes")[writes])

    def copied(model: str) -> str:
        (found,) = shares("selective copying", model, "length").values()
        return with_range(found)

    def questions(task: str) -> str:
        models = need([*of_usual_size(at_best_rates(task)).values()], f"{EXPERIMENT}: no {task}")
        return f"{longest(models[0][0])['questions']:,}"

    def worst(model: str, rate: float) -> str:
        runs = [run for run in runs_of_model(TASK, model) if run["config"]["learning_rate"] == rate]
        return percent(min(map(hardest, need(runs, f"{EXPERIMENT}: no {model} at {rate}"))))

    told = {
        "delta": "delta",
        "adds": "delta-adds",
        "softmax": "softmax",
        "gated": "gated-delta",
        "linear": "linear",
    }
    return in_words(
        **{f"overwritten_{key}": lambda model=model: right(model, MOST)
           for key, model in told.items()},
        recall_erasing=lambda: erasing("recall").spread(0),
        recall_delta_lead=lambda: lead("recall", "delta", "linear").spread(0),
        recall_adds_lead=lambda: lead("recall", "delta-adds", "linear").spread(0),
        selective_erasing=lambda: erasing("selective copying").spread(0),
        overwriting_erasing=lambda: erasing(TASK).spread(0),
        overwriting_erasing_once=lambda: erasing(TASK, easiest).spread(0),
        overwriting_fall=lambda: erasing(TASK, change).spread(0),
        overwriting_ahead=lambda: lead(TASK, "delta", "softmax").spread(0),
        overwriting_stuck=lambda: worst("delta", 1e-2),
        selective_erases=lambda: copied("delta"),
        selective_adds=lambda: copied("delta-adds"),
        asked_once=lambda: questions(TASK),
        asked_recall=lambda: questions("recall"),
    )  # fmt: skip
