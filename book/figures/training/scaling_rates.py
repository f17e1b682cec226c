"""The largest size of `scaling` at several learning rates: does the comparison hang on the rate?"""

from __future__ import annotations

from statistics import mean

from ..lib.format import counted, in_words
from ..lib.records import NotMeasuredError, Record
from ..lib.seeds import mean_and_spread, seeds_in_words
from ..lib.tables import Missing, Table
from . import scaling
from .scaling import ATTENTIONS, EXPERIMENT

USUAL = "as above"  # the learning rate of every size


def _again() -> tuple[list[Record], str]:
    """The runs at other learning rates, and their size. Raises NotMeasuredError."""
    again = [
        run
        for run in scaling.learned(EXPERIMENT)
        if scaling.finished(run) and "change" in run["config"]
    ]
    if not again:
        raise NotMeasuredError(f"{EXPERIMENT}: other rates")
    return again, again[0]["config"]["size"]


def _rates() -> dict[str, dict[str, dict[int, float]]]:
    """{rate: {attention: {seed: its last loss}}} of the size that was trained at several rates.

    The usual rate stands between those below and above it. Raises NotMeasuredError.
    """
    again, size = _again()
    usual = [run for name in ATTENTIONS for run in scaling.sizes()[name].get(size, [])]
    found: dict[str, dict[str, dict[int, float]]] = {}
    for run in sorted([*usual, *again], key=lambda run: run["config"]["learning_rate"]):
        config = run["config"]
        of_rate = found.setdefault(config.get("change", USUAL), {name: {} for name in ATTENTIONS})
        of_rate[config["attention"]][config["seed"]] = run["tables"]["validation"]["loss"][-1]
    every = [of_one.keys() for of_rate in found.values() for of_one in of_rate.values()]
    if not (seeds := sorted(set.intersection(*map(set, every)))):
        raise NotMeasuredError(f"{EXPERIMENT}: other rates, with the same seeds")
    return {
        rate: {name: {seed: ends[seed] for seed in seeds} for name, ends in of_rate.items()}
        for rate, of_rate in found.items()
    }


def _behind(softmax: dict[int, float], linear: dict[int, float]) -> float:
    return mean(linear.values()) - mean(softmax.values())


def table() -> Table | Missing:
    """The same size at several learning rates, on the same seeds."""
    try:
        found = _rates()
    except NotMeasuredError:
        return Missing(EXPERIMENT)
    cells = [
        [
            rate.removesuffix(" the rate"),
            *(mean_and_spread(list(of_rate[name].values())) for name in ATTENTIONS),
            f"{_behind(**of_rate):+.3f}".replace("-", "−"),
        ]
        for rate, of_rate in found.items()
    ]
    titles = ["rate", "softmax", "linear", "apart"]
    return Table(titles, cells, align="lrrr")


def _of_the_rates() -> str:
    """Whether the comparison at this size hangs on the one rate that all sizes have."""
    found = _rates()
    seeds = seeds_in_words([len(next(iter(found.values()))["linear"])])
    apart = [_behind(**of_rate) for of_rate in found.values()]
    best = [min(found.values(), key=lambda of, name=name: mean(of[name].values()))[name]
            for name in ATTENTIONS]  # fmt: skip
    at_best = _behind(*best)
    each = (
        f"With each attention at the best of the {counted(len(found))} rates, linear attention "
        f"ends {abs(at_best):.3f} nats {scaling.side(at_best)} ({seeds})"
    )
    least = scaling.noise()
    if abs(at_best) <= least:
        return f"{each}, no more than another seed may do ({least:.3f})"
    if min(map(abs, apart)) > least and len({gap > 0 for gap in apart}) == 1:
        return f"{each}, and it is {'behind' if at_best > 0 else 'ahead'} at every one of them"
    return f"{each}, but not at every one of them by more than another seed may do ({least:.3f})"


def numbers() -> dict[str, str]:
    """What the chapter on training says of the rates."""
    return in_words(scaling_rates=_of_the_rates, scaling_again=lambda: _again()[1])
