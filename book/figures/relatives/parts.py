"""Recall by linear attention with parts of the delta rule's control, one after another."""

from __future__ import annotations

from ..lib.format import SMALL, in_words, percent
from ..lib.pairs import Pairs, compare
from ..lib.records import NotMeasuredError, Record, need
from ..lib.tables import Missing, Table
from ..lib.tasks import (
    EXPERIMENT,
    PARTS,
    Share,
    at_all_rates,
    at_best_rates,
    hardest,
    of_usual_size,
    score,
    with_range,
)

TASK = "recall"
GATES = ("gated", "gla")
# Described as `PARTS` are.
MODELS = {
    "linear": ("elu + 1", "denominator", ""),
    **{name: of for name, of in PARTS.items() if not name.startswith(GATES)},
    "delta-adds": ("silu", "norm", "unit keys, a write gate"),
    **{
        name: of if name in PARTS else ("plain", *of[1:])
        for gate in GATES
        for of in [PARTS[f"{gate}-silu"]]
        for name in (gate, f"{gate}-silu")
    },
}


def runs(model: str, task: str = TASK, heads: int = 1) -> list[Record]:
    """A model's runs at its best rate, one per seed. Raises NotMeasuredError."""
    if model in PARTS:
        kinds = at_best_rates(task, parts=True)
        kinds = {kind.model: found for kind, found in kinds.items() if kind.heads == heads}
    else:
        kinds = of_usual_size(at_best_rates(task))
    return need(kinds.get(model), f"{EXPERIMENT}: no {task} by {model}")


def share(model: str) -> Share:
    """The share of the most pairs that it recalls, over seeds. Raises NotMeasuredError."""
    most = max(case["pairs"] for case in runs(model)[0]["config"]["cases"])
    return score(runs(model), pairs=most)


def recalled(model: str, pairs: int) -> float:
    """Mean share of so many pairs that it recalls. Raises NotMeasuredError."""
    return score(runs(model), pairs=pairs).mean


def lead(first: str, second: str, task: str = TASK, heads: int = 1) -> Pairs:
    """Points that one model answers above another, by seed. Raises NotMeasuredError."""
    one, other = (
        {run["config"]["seed"]: 100 * hardest(run) for run in runs(model, task, heads)}
        for model in (first, second)
    )
    return compare([one[seed] - other[seed] for seed in sorted(one.keys() & other.keys())])


def at_each(first: str, second: str) -> list[float]:
    """Points that one part recalls above another, at equal rates and seeds. NotMeasuredError."""
    one, other = (
        {
            (run["config"]["learning_rate"], run["config"]["seed"]): 100 * hardest(run)
            for kind, found in at_all_rates(TASK, parts=True).items()
            if kind.model == model and kind.heads == 1
            for run in found
        }
        for model in (first, second)
    )
    shared = sorted(one.keys() & other.keys())
    return need([one[at] - other[at] for at in shared], f"{EXPERIMENT}: no {first} and {second}")


def agreeing(first: str, second: str) -> str:
    """In how many of these pairs the first recalls more: "seven of eight"."""
    found = at_each(first, second)
    return f"{SMALL[sum(more > 0 for more in found)]} of {SMALL[len(found)]}"


def table() -> Table | Missing:
    """Recall of each, with what it is made of."""
    cells = []
    for model, made_of in MODELS.items():
        try:
            found = [hardest(run) for run in runs(model)]
        except NotMeasuredError:
            continue
        rate = runs(model)[0]["config"]["learning_rate"]
        seeds = ", ".join(f"{100 * one:.0f}" for one in found)
        recalled = f"{percent(sum(found) / len(found))} ({seeds})"
        features, outputs, also = made_of
        cells.append([features, recalled, also, outputs, f"{rate:g}"])
    if not cells:
        return Missing(f"{EXPERIMENT} --only task={TASK}")
    titles = ["features", "recalled", "also", "outputs by", "rate"]
    return Table(titles, cells, align="lrllr")


def numbers() -> dict[str, str]:
    """Numbers for the chapter on the relatives."""
    return in_words(
        **{
            f"part_{model.replace('-', '_')}": lambda model=model: percent(share(model).mean)
            for model in MODELS
            if model != "tanh-normed"
        },
        part_narrow_lead=lambda: lead("silu-normed", "linear-normed", heads=4).spread(0),
        part_elu_pairs=lambda: agreeing("elu-normed", "linear-normed"),
        part_lowered_pairs=lambda: agreeing("lowered-silu-normed", "raised-silu-normed"),
        part_tanh_normed=lambda: with_range(share("tanh-normed")),
        **{
            f"part_{gate}_lead": lambda gate=gate: lead(f"{gate}-silu", gate).spread(0)
            for gate in GATES
        },
        part_selective_lead=lambda: lead("gated-silu", "gated", "selective copying").spread(0),
    )
