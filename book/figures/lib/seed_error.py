"""The error of a mean over seeds, if all seeds answered the same questions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, variance

# Student's t of the 95% interval, by degrees of freedom.
T_95 = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
T_MANY = 1.96


def t_95(count: int) -> float:
    """Half of the 95% interval of a mean of `count` values, in standard errors."""
    z, freedom = T_MANY, count - 1
    if freedom in T_95:
        return T_95[freedom]
    # Hill's expansion about the normal quantile; three digits from ten degrees of freedom on.
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def with_seeds(
    values: Sequence[float], errors: Sequence[float], questions: int
) -> tuple[float, float]:
    """The mean over seeds, and half of its 95% interval.

    errors: standard errors of each seed's value, from the choice of `questions` questions. All
    seeds answer the same ones, so this part of the error stays when seeds are added; the part
    between seeds falls with their number. One seed does not show the latter. Student's t, with the
    degrees of freedom by Satterthwaite.
    """
    asked = fmean(error**2 for error in errors)
    seeds = variance(values) / len(values) if len(values) > 1 else 0.0
    if not (both := asked + seeds):
        return fmean(values), 0.0
    spread = asked**2 / (questions - 1) + (seeds**2 / (len(values) - 1) if seeds else 0.0)
    freedom = math.floor(round(both**2 / spread, 6))
    return fmean(values), t_95(freedom + 1) * math.sqrt(both)
