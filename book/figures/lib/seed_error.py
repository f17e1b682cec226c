"""How far a mean over seeds can be trusted, where all seeds were asked the same questions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean, variance


def with_seeds(values: Sequence[float], errors: Sequence[float]) -> tuple[float, float]:
    """The mean of what several seeds gave, and its standard error.

    errors: of each seed's value, for the choice of questions. Further seeds answer the same ones,
    so this part of the error stays; the part that the seeds themselves make falls with their
    number. One seed says nothing of the latter.
    """
    questions = mean(error**2 for error in errors)
    seeds = variance(values) / len(values) if len(values) > 1 else 0.0
    return mean(values), math.sqrt(questions + seeds)
