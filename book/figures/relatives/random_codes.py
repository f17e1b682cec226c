"""Number of values that a sum of random codes returns: by the chapter's law, and counted."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ...explorable.figure import Series

DRAWS = 40  # of all codes; the share's error is then about a hundredth
LEAST_BYTES = 256  # the least state for which codes are drawn


def right_by_the_law(K: float, V: int, pairs: int, tokens: int) -> float:
    """Share of n keys answered right by a sum of random codes, by the chapter's law.

    E[Φ((1 + r z) / sqrt(r^2 + 1/V))^(m - 1)] over a standard normal z, by the trapezium rule,
    with r^2 = (n - 1) / K (1/m + (1 - 1/m) / V).

    K, V: widths of a key and a value. pairs: n. tokens: m, the candidates for a value.
    """
    noise = (pairs - 1) / K * (1 / tokens + (1 - 1 / tokens) / V)
    others, step = math.sqrt(noise + 1 / V), 0.05
    total = 0.0
    for i in range(-160, 161):
        z = i * step
        below = 0.5 * math.erfc(-(1 + math.sqrt(noise) * z) / others / math.sqrt(2))
        total += math.exp(-z * z / 2) * below ** (tokens - 1)
    return total * step / math.sqrt(2 * math.pi)


@lru_cache
def right_when_drawn(K: int, V: int, pairs: int, tokens: int) -> float:
    """The same share, counted: the mean over DRAWS seeded draws of all codes and keys."""
    rng = np.random.default_rng(0)

    def codes(count: int, width: int) -> np.ndarray:
        return rng.choice([-1.0, 1.0], (DRAWS, count, width)) * width**-0.5

    keys, alphabet = codes(pairs, K), codes(tokens, V)
    values = rng.integers(tokens, size=(DRAWS, pairs))
    written = np.take_along_axis(alphabet, values[..., None], 1)
    S = keys.transpose(0, 2, 1) @ written  # [.., K, V]
    answers = (keys @ S @ alphabet.transpose(0, 2, 1)).argmax(-1)
    return float((answers == values).mean())


def series(pairs: int, states: list[int], V: int, tokens: int) -> Series:
    """Recall of random codes over the range of states, for values of the model's width."""
    least, most = (number / 4 / V for number in (min(LEAST_BYTES, *states), max(states)))
    widths = sorted({round(least * (most / least) ** (i / 20)) for i in range(21)} - {0})
    right = [100 * right_when_drawn(K, V, pairs, tokens) for K in widths]
    columns = {"state": [4 * V * K for K in widths], "right": right, "low": right, "high": right}
    return Series({"pairs": pairs}, columns, label="random codes")
