"""The largest size of `scaling` at several learning rates: does the comparison depend on them?"""

from __future__ import annotations

from ..lib.format import in_words
from ..lib.pairs import Pairs, compare_seeds
from ..lib.records import NotMeasuredError, Record, need
from ..lib.seeds import mean_over_seeds
from ..lib.tables import Missing, Table
from . import scaling
from .scaling import ATTENTIONS, EXPERIMENT

USUAL = "as above"  # the learning rate of every size
TWICE = "twice the rate"


def _again() -> tuple[list[Record], str]:
    """The runs at other learning rates, and their size. Raises NotMeasuredError."""
    again = [
        run
        for run in scaling.learned(EXPERIMENT)
        if scaling.finished(run) and "change" in run["config"]
    ]
    return again, need(again, f"{EXPERIMENT}: other rates")[0]["config"]["size"]


def rates() -> dict[str, dict[str, dict[int, float]]]:
    """{rate: {attention: {seed: its last loss}}} of the size that was trained at several rates.

    The usual rate is between those below and above it. Raises NotMeasuredError.
    """
    again, size = _again()
    usual = [run for name in ATTENTIONS for run in scaling.sizes()[name].get(size, [])]
    losses: dict[str, dict[str, dict[int, float]]] = {}
    for run in sorted([*usual, *again], key=lambda run: run["config"]["learning_rate"]):
        config = run["config"]
        of_rate = losses.setdefault(config.get("change", USUAL), {name: {} for name in ATTENTIONS})
        of_rate[config["attention"]][config["seed"]] = run["tables"]["validation"]["loss"][-1]
    every = [of_one.keys() for of_rate in losses.values() for of_one in of_rate.values()]
    shared = sorted(set.intersection(*map(set, every)))
    seeds = need(shared, f"{EXPERIMENT}: other rates, with the same seeds")
    return {
        rate: {name: {seed: ends[seed] for seed in seeds} for name, ends in of_rate.items()}
        for rate, of_rate in losses.items()
    }


def _apart(of_rate: dict[str, dict[int, float]]) -> dict[int, float]:
    """Linear's last losses minus softmax's, by seed."""
    softmax, linear = (of_rate[name] for name in ATTENTIONS)
    return {seed: linear[seed] - softmax[seed] for seed in linear}


def behind() -> list[Pairs]:
    """Nats by which linear attention ends behind softmax at each rate. NotMeasuredError."""
    return [compare_seeds([_apart(of_rate)]) for of_rate in rates().values()]


def rise(attention: str, rate: str) -> Pairs:
    """Nats by which an attention ends higher at a rate than at the usual one. NotMeasuredError."""
    by_rate = rates()
    if rate not in by_rate:
        raise NotMeasuredError(f"{EXPERIMENT}: no {rate}")
    usual, other = (by_rate[one][attention] for one in (USUAL, rate))
    return compare_seeds([{seed: other[seed] - usual[seed] for seed in usual}])


def table() -> Table | Missing:
    """One size at several learning rates, on the same seeds."""
    try:
        by_rate = rates()
    except NotMeasuredError:
        return Missing(EXPERIMENT)
    cells = [
        [
            rate.removesuffix(" the rate"),
            *(mean_over_seeds(list(of_rate[name].values())) for name in ATTENTIONS),
            compare_seeds([_apart(of_rate)]).signed(),
        ]
        for rate, of_rate in by_rate.items()
    ]
    titles = ["rate", "softmax", "linear", "apart"]
    return Table(titles, cells, align="lrrr")


def numbers() -> dict[str, str]:
    """Numbers for the chapter on training: the rates."""
    return in_words(
        **{
            f"rates_{name}_twice": lambda name=name: rise(name, TWICE).spread()
            for name in ATTENTIONS
        },
        scaling_again=lambda: _again()[1],
    )
