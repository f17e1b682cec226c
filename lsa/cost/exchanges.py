"""Bytes that ranks exchange to share a sequence, a layer: a state's against keys' and values'.

They are the payload that the busiest rank receives going forward; backward it receives as many for
gradients. P ranks hold T / P tokens each; B sequences, H heads, K features, V values.
"""

from __future__ import annotations

from math import prod

from ..checks import one_of, whole
from .rooflines import STATE_BYTES

DECAYS = ("none", "head", "token")
WAYS = ("gather", "scan")


def state_exchange(
    P: int, *, B: int = 1, H: int, K: int, V: int, decay: str = "none", way: str = "gather"
) -> int:
    """Bytes of `lsa.parallel.linear_attention`: S, z and the decay of the state, for any T.

    decay: "none", fixed numbers a "head", or one a "token" and head. way: as for `lsa.parallel`.
    """
    _check(P=P, B=B, H=H, K=K, V=V)
    one_of("decay", decay, DECAYS)
    one_of("way", way, WAYS)
    numbers = B * H * K * (V + 1) + {"none": 0, "head": H, "token": B * H}[decay]
    return STATE_BYTES * numbers * times_received(P, way)


def times_received(P: int, way: str) -> int:
    """Number of transitions that the last of P ranks receives."""
    # A scan's first exchange shifts by one rank; each further one doubles the ranks covered.
    return P - 1 if way == "gather" or P < 3 else 1 + (P - 2).bit_length()


def key_exchange(P: int, T: int, *, B: int = 1, H: int, K: int, V: int, itemsize: int = 2) -> int:
    """Bytes of softmax by exchanging all keys and values, by a ring or one all-gather.

    P divides T. A ring takes P - 1 exchanges, one after the other, and holds two ranks' keys; an
    all-gather takes one, and holds all.
    """
    _check(P=P, B=B, H=H, K=K, V=V, itemsize=itemsize)
    return itemsize * prod((P - 1, _part(P, T), B, H, K + V))


def head_exchange(P: int, T: int, *, B: int = 1, H: int, K: int, V: int, itemsize: int = 2) -> int:
    """Bytes of softmax by heads: q, k, v of all tokens for a rank's heads, and o back.

    Two all-to-all exchanges (DeepSpeed-Ulysses, Jacobs et al., 2023). P divides T, and there are at
    least P heads. If P does not divide H, some ranks have one head more; they are the busiest.
    """
    _check(P=P, B=B, H=H, K=K, V=V, itemsize=itemsize)
    if P > H:
        raise ValueError(f"P: expected at most a rank for each of {H} heads, got {P}")
    heads = -(-H // P)
    return itemsize * _part(P, T) * B * ((P - 1) * heads * (2 * K + V) + (H - heads) * V)


def _part(P: int, T: int) -> int:
    """Tokens of each rank."""
    whole("T", T, 0)
    if T % P:
        raise ValueError(f"T: expected a multiple of P = {P}, got {T}")
    return T // P


def _check(**numbers: int) -> None:
    for name, value in numbers.items():
        whole(name, value)
