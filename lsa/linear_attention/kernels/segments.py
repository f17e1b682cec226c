"""How a sequence is cut so that few heads fill a GPU. Needs no Triton."""

from __future__ import annotations

from functools import lru_cache

SEGMENT_MULTIPLE = 128
# A pass that recovers S takes away chunk by chunk what S had gained. Each step may be off by
# 2^-24 of S as it is at the end, and tensor cores round all the same way, so after n chunks the
# first of them reads an S that is off by n^2 2^-24 / 2 of itself: 5e-4 for 128 chunks of 64, less
# than bf16 rounds.
LONGEST_RECOVERED = 8192


@lru_cache(maxsize=4096)
def segments(heads: int, T: int, slots: int, longest: int | None = None) -> tuple[int, int]:
    """How many segments G a sequence is cut into, and their length L (a multiple of 128).

    heads = B H programs would leave part of the GPU idle when they are few, or not a multiple
    of its multiprocessors; G segments make G times as many, but (G - 1) / G of k and v (and of
    q and do, backwards) is then read once more: 32 D bytes a token become 32 D + 8 D (G - 1) / G.
    The G with the best product of the two shares wins, the smallest where it is a draw, and no
    segment is longer than `longest`.
    """

    def score(G: int) -> float:
        busy = heads * G / (slots * -(-heads * G // slots))
        return busy * 32 / (32 + 8 * (G - 1) / G)

    least = 1 if longest is None else max(1, -(-T // longest))
    most = max(least, min(T // SEGMENT_MULTIPLE, 2 * slots))
    G = max(range(least, most + 1), key=lambda G: (round(score(G), 2), -G))
    L = max(1, -(-T // (G * SEGMENT_MULTIPLE))) * SEGMENT_MULTIPLE
    return max(1, -(-T // L)), L
