"""The gain on a passage that comes again, at three learning rates."""

from __future__ import annotations

from ..lib.format import in_words
from ..lib.pairs import Pairs, compare
from ..lib.records import NotMeasuredError, Record, learned, load, need, rows
from ..lib.tables import Missing, Table
from .copying import EXPERIMENT, NEAREST, RUNS, named

HALF, TWICE = "-rate0.001", "-rate0.004"
SOON = ("softmax", "window")  # models that copy by the end of the shorter runs


def at_rate(model: str, rate: str, distance: int = NEAREST) -> Pairs:
    """The gain of the first seed at another learning rate or, by "", at the usual one.

    After the longer runs; of models that copy by the end of the shorter ones, after these. Raises
    NotMeasuredError.
    """
    text = "often" if model in SOON else "longer"
    name = f"{RUNS[model].split('-(')[0]}-{text}{rate}-seed1"
    stored = [run for run in learned(EXPERIMENT) if run["complete"] and run["name"] == name]
    run = need(stored, f"{EXPERIMENT}: no {name}")[0]
    return _gain(run, distance)


def gains_at_rates(model: str, distance: int) -> list[float]:
    """The gains at the three rates. Raises NotMeasuredError."""
    return [at_rate(model, rate, distance).mean for rate in (HALF, "", TWICE)]


def in_precision(bfloat16: bool) -> Pairs:
    """Linear attention's gain with the first seed, on a processor with or without bfloat16.

    Where a processor multiplies in bfloat16 models are trained in it, else in float32. Raises
    NotMeasuredError.
    """
    found = [
        run
        for run in load(EXPERIMENT)
        if run["complete"] and run["name"] == "sum-longer-seed1"
        if run["provenance"]["device"]["name"].endswith("BF16") == bfloat16
    ]
    run = need(found, f"{EXPERIMENT}: no sum-longer-seed1 in that precision")[0]
    return _gain(run, NEAREST)


def _gain(run: Record, distance: int) -> Pairs:
    last = rows(run, "again", update=run["config"]["updates"], distance=distance)
    return compare([row["gain"] for row in last])


def table() -> Table | Missing:
    """Gain at three learning rates, for each model that was trained at all of them."""
    cells = []
    for model in RUNS:
        try:
            gains = [at_rate(model, rate) for rate in (HALF, "", TWICE)]
        except NotMeasuredError:
            continue
        told = (f"{round(one.mean, 2) + 0:.2f} ± {one.half or 0:.2f}" for one in gains)
        cells.append([named(model), *told])
    if not cells:
        return Missing(EXPERIMENT)
    return Table(["", "half the rate", "the rate above", "twice"], cells)


def numbers() -> dict[str, str]:
    """Numbers for the chapter."""
    return in_words(
        copying_delta_least_1024=lambda: f"{min(gains_at_rates('delta', 1024)):.2f}",
        copying_linear_most_1024=lambda: f"{max(gains_at_rates('linear', 1024)):.2f}",
        copying_linear_float32=lambda: f"{in_precision(False).mean:.2f}",
        copying_linear_bfloat16=lambda: f"{in_precision(True).mean:.2f}",
        **{
            f"copying_{model}_twice_1024": lambda m=model: f"{at_rate(m, TWICE, 1024).mean:.2f}"
            for model in ("linear", "exp")
        },
    )
