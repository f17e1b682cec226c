"""Power laws through a few points, with the interval that so few points leave."""

from __future__ import annotations

from math import log, sqrt
from statistics import mean
from typing import NamedTuple

from ..lib.records import NotMeasuredError

# Student's t for 95% within, by degrees of freedom.
T_95 = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306}
T_MANY = 1.96


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
    return Fit(-slope, T_95.get(n - 2, T_MANY) * error, n)
