"""Costs of one head in each mode, forward and with its gradients."""

from __future__ import annotations

import math
import sys

from ..attention.counts import mode_flops
from ..checks import finite, whole
from .rooflines import STATE_BYTES, Cost

TILE = 128  # rows of queries that a tiled attention kernel keeps on chip


def least_bytes(T: int, K: int, V: int, *, itemsize: int = 2, training: bool = False) -> int:
    """Bytes that any program moves: q, k, v in, o out; training adds q, k, v, do, dq, dk, dv."""
    _check(T, K=K, V=V, itemsize=itemsize)
    return T * (6 * K + 5 * V if training else 2 * K + 2 * V) * itemsize


def best_chunk_size(K: int, V: int, flops_per_second: float, bytes_per_second: float) -> float:
    """The chunk size C that minimises the time of products inside chunks plus that of states.

    Products inside chunks take T C (K + V) FLOPs; a state a chunk, written and read, takes T / C
    times twice its bytes. At the best C both take equal time. With 32-bit states and K = V = d, C
    is 2 sqrt((d + 1) F / B), for F FLOPs and B bytes a second.
    """
    for name, size in (("K", K), ("V", V)):
        whole(name, size)
    for name, speed in (("flops", flops_per_second), ("bytes", bytes_per_second)):
        finite(f"{name}_per_second", speed, "a finite number above 0", low=sys.float_info.min)
    state = (K * V + K) * STATE_BYTES
    return math.sqrt(2 * state * flops_per_second / bytes_per_second / (K + V))


def mode_cost(
    mode: str, T: int, K: int, V: int, *, chunk_size: int = 64, itemsize: int = 2
) -> Cost:
    """Cost of one forward pass of a head in "softmax", "attention", "recurrent" or "chunked" mode.

    Masked products count half: token i has products with the i tokens up to itself.
    itemsize: bytes of a number in q, k, v, o. Raises ValueError for an unknown mode or a size that
        is no whole number.
    """
    _check(T, K=K, V=V, chunk_size=chunk_size, itemsize=itemsize)
    tokens = least_bytes(T, K, V, itemsize=itemsize)
    flops = mode_flops(mode, T, K, V, chunk_size)
    state = (K * V + K) * STATE_BYTES
    if mode in ("softmax", "attention"):
        # Each tile of queries reads all keys and values up to its own end.
        tiles = -(-T // TILE)
        again = sum(min(T, (i + 1) * TILE) for i in range(tiles)) - T if T else 0
        cache = T * (K + V) * itemsize
        traffic = tokens + again * (K + V) * itemsize
        return Cost(flops, traffic, min(T, 1), cache if mode == "softmax" else state)
    if mode == "recurrent":
        return Cost(flops, tokens, T, state)
    N = -(-T // chunk_size)
    return Cost(flops, tokens + 2 * N * state, N, state)


def training_cost(
    mode: str, T: int, K: int, V: int, *, chunk_size: int = 64, itemsize: int = 2
) -> Cost:
    """Cost of the forward pass of `mode_cost` and the gradients of q, k and v.

    Every product has two gradients, each as large as itself, so FLOPs are three times the forward
    pass's. The gradients read q, k, v, do and write dq, dk, dv. They read tiles and states once
    more, and take the sequence's steps once more, backwards.
    """
    forward = mode_cost(mode, T, K, V, chunk_size=chunk_size, itemsize=itemsize)
    again = forward.bytes - least_bytes(T, K, V, itemsize=itemsize)
    traffic = 2 * again + least_bytes(T, K, V, itemsize=itemsize, training=True)
    return Cost(3 * forward.flops, traffic, 2 * forward.steps, forward.state)


def reference_flops(mode: str, T: int, K: int, V: int, *, chunk_size: int = 64) -> int:
    """FLOPs that attention/reference.py spends: masked products counted whole, tails padded.

    torch's counter reports these for it; `mode_cost` counts the necessary ones.
    """
    _check(T, K=K, V=V, chunk_size=chunk_size)
    state = 2 * T * K * V
    if mode == "attention":
        return 2 * T * T * (K + V) + 2 * state + 2 * T * K
    if mode == "recurrent":
        return state  # the outer product k v^T is elementwise, and not counted
    if mode == "chunked":
        C = max(1, min(chunk_size, T))
        padded = -(-T // C) * C
        return 2 * padded * C * (K + V) + 4 * padded * K * V + 2 * padded * K
    raise ValueError(f"mode: expected attention, recurrent or chunked, got {mode!r}")


def _check(T: int, **sizes: int) -> None:
    """Raise ValueError unless T is a whole number, 0 or more, and all sizes are at least 1."""
    whole("T", T, 0)
    for name, size in sizes.items():
        whole(name, size)
