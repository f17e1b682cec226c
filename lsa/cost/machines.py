"""What one tick of each layer's machine costs."""

from __future__ import annotations

import math
from typing import NoReturn

from ..checks import whole
from .rooflines import STATE_BYTES, Cost

MACHINES = (
    "rnn tape",
    "rnn state",
    "k-gram state",
    "attention tape",
    "kv cache",
    "linear state",
    "taylor state",
)


def machine_cost(
    machine: str,
    t: int,
    D: int,
    *,
    n_heads: int = 1,
    degree: int = 2,
    k: int = 8,
    hidden: int | None = None,
    itemsize: int = 4,
) -> Cost:
    """Tick t (counted from 1) of the machine of one layer of width D, batch of one.

    machine: one of MACHINES. The tapes run their whole layer over all t inputs again.
    n_heads: of the attention layers. degree: of "taylor state". k, hidden: of "k-gram state";
        hidden is 4 D by default.
    itemsize: bytes of a number in weights and inputs.

    `state` is the state's size after the tick; bytes are the weights once, a growing state read
    once, a fixed one read and written. Raises ValueError for an unknown machine, or sizes that are
    no whole numbers or do not fit.
    """
    for name, value in (("t", t), ("D", D), ("n_heads", n_heads), ("k", k)):
        whole(name, value)
    whole("itemsize", itemsize)
    whole("degree", degree, 0)
    hidden = 4 * D if hidden is None else hidden
    whole("hidden", hidden)
    if D % n_heads:
        raise ValueError(f"n_heads: expected a divisor of D {D}, got {n_heads}")
    K = D // n_heads
    F = math.comb(K + degree, degree)
    rnn, attention, kgram = 2 * D * D, 4 * D * D, (k + 1) * D * hidden
    features = {"linear state": K, "taylor state": F}

    if machine in features:
        sums = n_heads * features[machine]
        state = sums * (K + 1) * STATE_BYTES
        return Cost(2 * attention + 4 * sums * K, attention * itemsize + 2 * state, 1, state)
    flops, weights, steps, state, passes = {
        "rnn tape": (2 * rnn * t, rnn, t, t * D, 1),
        "rnn state": (2 * rnn, rnn, 1, D, 2),
        "k-gram state": (2 * kgram, kgram, 1, (k - 1) * D, 2),
        "attention tape": (2 * attention * t + 2 * t * (t + 1) * D, attention, 1, t * D, 1),
        "kv cache": (2 * attention + 4 * t * D, attention, 1, 2 * t * D, 1),
    }.get(machine) or _unknown(machine)
    return Cost(flops, (weights + passes * state) * itemsize, steps, state * itemsize)


def _unknown(machine: str) -> NoReturn:
    raise ValueError(f"machine: expected one of {', '.join(MACHINES)}, got {machine!r}")
