"""What one tick of each relative's machine costs: AFT, RWKV, state spaces, gates, delta, powers."""

from __future__ import annotations

import math
from typing import NoReturn

from .rooflines import STATE_BYTES, Cost

RELATIVES = (
    "aft full",
    "aft local",
    "aft simple",
    "rwkv time mixing",
    "rwkv channel mixing",
    "causal conv",
    "s4",
    "s4d",
    "s6",
    "mamba",
    "gated fixed",
    "gated head",
    "gated channel",
    "delta",
    "gated delta",
    "power",
)


def relative_cost(
    machine: str,
    t: int,
    D: int,
    *,
    n_heads: int = 1,
    window: int = 32,
    width: int = 4,
    d_state: int | None = None,
    dt_rank: int | None = None,
    expand: int = 2,
    degree: int = 2,
    hidden: int | None = None,
    itemsize: int = 4,
) -> Cost:
    """Tick t (counted from 1) of the machine of one layer of width D, batch of one.

    machine: one of RELATIVES.
    n_heads: of the gates, the delta rule and the powers. degree: of "power".
    window: of "aft local". width: tokens of the short convolution. hidden: of "rwkv channel
        mixing", 4 D by default. d_state: N, 64 by default, 16 for "s6" and "mamba". dt_rank:
        ceil(D / 16) by default. expand: of "mamba".
    itemsize: bytes of a number in weights and inputs; sums and states are float32.

    Counted: matrix products, and each use of a state. A number of state that is updated and read
    costs two multiply-adds; a complex one as many as its real products. Exponentials, decays, gates
    and biases are not counted. Bytes are the weights once, those of the state (biases of positions,
    A, B, C) included, a growing state read once, a fixed one read and written.
    Raises ValueError for an unknown machine.
    """
    K, E = D // n_heads, expand * D
    F = math.comb(K + degree - 1, degree)
    N = (16 if machine in ("s6", "mamba") else 64) if d_state is None else d_state
    R = -(-D // 16) if dt_rank is None else dt_rank
    hidden = 4 * D if hidden is None else hidden
    weights, on_state, wide, narrow, others = _counts(
        machine, t, D, n_heads, K, F, N, R, E, window, width, hidden
    )
    state = wide * STATE_BYTES + narrow * itemsize
    passes = 1 if machine == "aft full" else 2
    return Cost(2 * weights + on_state, (weights + others) * itemsize + passes * state, 1, state)


def _counts(
    machine: str, t: int, D: int, H: int, K: int, F: int, N: int, R: int, E: int,
    window: int, width: int, hidden: int,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """See the comment at the table. K features a head, F of them with powers; E inner width."""
    qkvo, S = 4 * D * D, H * K * K

    def s6(channels: int) -> int:
        return channels * (2 * R + 2 * N)

    # Weights of the matrices, FLOPs on the state, numbers of state in float32 and in the inputs'
    # dtype, and parameters that belong to the state: biases of positions, A, B and C.
    return {
        "aft full": (qkvo, 4 * t * D, 2 * t * D, 0, t),
        "aft local": (qkvo, 4 * window * D + 4 * D, (2 * window + 1) * D, 0, window),
        "aft simple": (qkvo, 4 * D, 3 * D, 0, 0),
        "rwkv time mixing": (qkvo, 8 * D, 3 * D, D, 2 * D),
        "rwkv channel mixing": (D * D + 2 * D * hidden, 0, 0, D, 0),
        "causal conv": (0, 2 * width * D, 0, (width - 1) * D, width * D),
        "s4": (D * D, 20 * N * D, N * D, 0, 4 * N * D),
        "s4d": (D * D, 8 * N * D, N * D, 0, 2 * N * D),
        "s6": (s6(D), 4 * N * D, N * D, 0, N * D),
        "mamba": (
            3 * D * E + s6(E),
            4 * N * E + 2 * width * E,
            N * E,
            (width - 1) * E,
            (N + width) * E,
        ),
        "gated fixed": (qkvo, 4 * S, S, 0, 0),
        "gated head": (qkvo + D * H, 4 * S, S, 0, 0),
        "gated channel": (qkvo + 2 * D * min(16, D), 4 * S, S, 0, 0),
        "delta": (qkvo + D * H, 6 * S, S, 0, 0),
        "gated delta": (qkvo + 2 * D * H, 6 * S, S, 0, 0),
        "power": (qkvo, 4 * H * F * (K + 1), H * F * (K + 1), 0, 0),
    }.get(machine) or _unknown(machine)


def _unknown(machine: str) -> NoReturn:
    raise ValueError(f"machine: expected one of {', '.join(RELATIVES)}, got {machine!r}")
