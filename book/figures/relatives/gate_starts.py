"""Recall by layers with a gate, by the half-life that the gate starts with."""

from __future__ import annotations

from statistics import fmean

from ..lib.format import in_words, percent
from ..lib.pairs import Pairs, compare
from ..lib.records import NotMeasuredError, Record, learned, need
from ..lib.tables import Missing, Table
from ..lib.tasks import hardest, label

EXPERIMENT = "gate_starts"
MODELS = ("gated-delta", "gated")
FAILED = 0  # the seed that never left chance in `made_up_tasks`


def by_start(model: str) -> dict[float, list[Record]]:
    """A model's runs by the first half-life in tokens, by seed."""
    found: dict[float, list[Record]] = {}
    for run in learned(EXPERIMENT):
        if run["complete"] and run["config"]["model"] == model:
            found.setdefault(run["config"]["half_life"], []).append(run)
    return dict(sorted(found.items()))


def shares(model: str, half_life: float) -> list[float]:
    """Share of each seed in the longest test. Raises NotMeasuredError."""
    runs = need(by_start(model).get(half_life), f"{EXPERIMENT}: no {model} from {half_life}")
    return [hardest(run) for run in runs]


def table() -> Table | Missing:
    """Recall of both layers by the first half-life: mean, and each seed."""
    starts = sorted({start for model in MODELS for start in by_start(model)})
    cells = [[f"{start:g}", *(_seeds(model, start) for model in MODELS)] for start in starts]
    titles = ["first half-life", *map(label, MODELS)]
    return Table(titles, cells, align="rrr") if cells else Missing(EXPERIMENT)


def _seeds(model: str, half_life: float) -> str:
    """A mean share with each seed's: "62% (60, 58, 68)"."""
    try:
        found = shares(model, half_life)
    except NotMeasuredError:
        return "–"
    return f"{percent(fmean(found))} ({', '.join(f'{100 * one:.0f}' for one in found)})"


def slow_start(model: str = "gated-delta") -> Pairs:
    """Points that the slowest start recalls above a start of one token, by seed."""
    slow, fast = shares(model, max(by_start(model), default=0)), shares(model, 1)
    return compare([100 * (a - b) for a, b in zip(slow, fast, strict=True)])


def numbers() -> dict[str, str]:
    """Numbers for the chapter on the relatives."""
    return in_words(
        start_of_one=lambda: percent(shares("gated-delta", 1)[FAILED]),
        start_slow=lambda: slow_start().spread(0),
    )
