"""Power laws through a few points, with the interval that so few points leave."""

from __future__ import annotations

from math import log, sqrt
from statistics import mean
from typing import NamedTuple

from ..lib.records import NotMeasuredError
from ..lib.seed_error import t_95


class Fit(NamedTuple):
    """log y falls by `exponent` times log x; wide: half of the exponent's 95% interval.

    points: how many were fitted; with two there is a line and no uncertainty, `wide` is None.
    """

    exponent: float
    wide: float | None
    points: int


def fit(xs: list[float], ys: list[float]) -> Fit:
    """Least squares of log y on log x. Raises NotMeasuredError for less than two different x."""
    if len(set(xs)) < 2:
        raise NotMeasuredError("no two sizes to fit a power law to")
    u, v = [log(x) for x in xs], [log(y) for y in ys]
    n, u_mean, v_mean = len(u), mean(u), mean(v)
    spread = sum((a - u_mean) ** 2 for a in u)
    slope = sum((a - u_mean) * (b - v_mean) for a, b in zip(u, v, strict=True)) / spread
    level = v_mean - slope * u_mean
    if n < 3:
        return Fit(-slope, None, n)
    left = sum((b - level - slope * a) ** 2 for a, b in zip(u, v, strict=True))
    error = sqrt(left / (n - 2) / spread)
    return Fit(-slope, t_95(n - 1) * error, n)
