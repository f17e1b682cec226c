"""How a sequence is cut so that few heads fill a GPU. Needs no Triton."""

from __future__ import annotations

from functools import lru_cache

import torch

from .gpu import gpu_of

SEGMENT_MULTIPLE = 128
# A pass that recovers S takes away chunk by chunk what S had gained. Each step may be off by
# 2^-24 of S as it is at the end, and tensor cores round all the same way, so after n chunks the
# first of them reads an S that is off by n^2 2^-24 / 2 of itself: 5e-4 for 128 chunks of 64, less
# than bf16 rounds.
LONGEST_RECOVERED = 8192
# Up to so many segments, each program adds up the sums of the segments before it by itself: at
# D = 64 16 KB each, from the L2 cache. Past that, a launch in between scans them.
MOST_ADDED = 4


@lru_cache(maxsize=4096)
def segments(programs: int, T: int, slots: int, longest: int | None = None) -> tuple[int, int]:
    """How many segments G a sequence is cut into, and their length L (a multiple of 128).

    programs: how many start for one segment of every head (B H times the blocks that a head's
        features are shared by). Few of them, or a number that is not a multiple of the `slots`
        multiprocessors, leave part of the GPU idle; G segments make G times as many, but
        (G - 1) / G of k and v (and of q and do, backwards) is then read once more: 32 D bytes a
        token become 32 D + 8 D (G - 1) / G.

    The G with the best product of the two shares wins, the smallest where it is a draw, and no
    segment is longer than `longest`. Two programs a multiprocessor keep memory busy, so that
    no sequence is cut for more.
    """

    def score(G: int) -> float:
        busy = programs * G / (slots * -(-programs * G // slots))
        return busy * 32 / (32 + 8 * (G - 1) / G)

    least = 1 if longest is None else max(1, -(-T // longest))
    enough = -(-2 * slots // programs) if programs < 2 * slots else 1
    most = max(least, min(T // SEGMENT_MULTIPLE, max(enough, 2 * least)))
    G = max(range(least, most + 1), key=lambda G: (round(score(G), 2), -G))
    L = max(1, -(-T // (G * SEGMENT_MULTIPLE))) * SEGMENT_MULTIPLE
    return max(1, -(-T // L)), L


def reach(G: int) -> int:
    """How many of the sums between G segments a program adds: all, or the one scanned for it."""
    return G if G <= MOST_ADDED else 1


def stages_of_sums(device: torch.device, weighted: bool) -> int:
    """How many tiles the sums of bf16 inputs have on their way. weighted: by r, with those of δ.

    Ampere has no registers for a third of these: with Triton 3.6 it spilled, and takes fewer
    instructions with two.
    """
    return 2 if weighted and not gpu_of(device).large else 3
