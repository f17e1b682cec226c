"""How a sequence is cut into segments so that few heads fill a GPU. Needs no Triton."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch

from .gpu import gpu_of

SEGMENT_MULTIPLE = 128
# A pass that recovers S subtracts each chunk's terms from it. Each step may be off by 2^-24 of the
# final S, and tensor cores always round the same way. So after n chunks the first of them reads an
# S that is off by n^2 2^-24 / 2 of itself: 5e-4 for 128 chunks of 64, less than bf16 rounds.
LONGEST_RECOVERED = 8192
# Up to this many segments, each program adds up the sums of the segments before it: at D = 64 16 KB
# each, from the L2 cache. Past that, a launch in between scans them.
MOST_ADDED = 4
# Up to this many segments are tried even if fewer fill the GPU. The last wave of programs may be
# almost empty; with many short waves it is a small part.
EVENED = 12


class Pass(NamedTuple):
    """A launch that walks over the tokens, as `segments` needs it.

    programs: how many start for one segment of every head (B H times the blocks of a head's
        features).
    resident: how many a multiprocessor holds at once.
    needed: how many a multiprocessor must hold for memory to be the limit. With more, each runs
        slower; with fewer, memory is idle.
    vectors: how many of q, k, v, do and the results it reads or writes. A call with gradients in
        four passes has 16, and may be given as one pass.
    """

    programs: int
    resident: int = 2
    needed: float = 1.0
    vectors: int = 16


def vectors_moved(
    passes: tuple[Pass, ...], width: int, T: int, multiprocessors: int, G: int, L: int
) -> float:
    """Estimated time of a call in G segments of L tokens, in vectors of a head and token.

    A pass takes the time of its bytes, or of its programs wave after wave, whichever is longer.
    Before it, (G - 1) / G of k and v is summed, and backwards of q and do: 4 vectors. They are
    given more weight, because they double those of a forward pass without gradients. G - 1 states
    go through memory, each of 2 D vectors, about ten times with gradients.
    """
    walked = sum(
        one.vectors
        * max(1.0, -(-one.programs * G // (one.resident * multiprocessors)) * min(L, T) / T
              * one.needed * multiprocessors / one.programs)
        for one in passes
    )  # fmt: skip
    return walked + (G - 1) * (7 / G + 20 * width / T)


@lru_cache(maxsize=4096)
def segments(
    passes: tuple[Pass, ...], width: int, T: int, multiprocessors: int, longest: int | None = None
) -> tuple[int, int]:
    """How many segments G a sequence is cut into, and their length L (a multiple of 128).

    width: of a head. No segment is longer than `longest`. The cut with the least vectors_moved
    wins; within a hundredth, the one with the smallest G. So nothing is cut if all programs are
    resident in one wave and keep memory busy.
    """
    here = (passes, width, T, multiprocessors)
    uncut = sum(one.vectors for one in passes)

    def rank(G: int) -> tuple[float, int]:
        return round(vectors_moved(*here, G, _length(G, T)) / uncut, 2), G

    least = 1 if longest is None else max(1, -(-T // longest))
    filled = max(-(-one.resident * multiprocessors // one.programs) for one in passes)
    most = max(least, min(T // SEGMENT_MULTIPLE, max(filled, EVENED, 2 * least)))
    L = _length(min(range(least, most + 1), key=rank), T)
    return max(1, -(-T // L)), L


def _length(G: int, T: int) -> int:
    """Tokens of each of about G segments."""
    return max(1, -(-T // (G * SEGMENT_MULTIPLE))) * SEGMENT_MULTIPLE


def reach(G: int) -> int:
    """Number of sums between G segments that a program adds: all, or the one scanned for it."""
    return G if G <= MOST_ADDED else 1


def stages_of_sums(device: torch.device, weighted: bool) -> int:
    """Pipeline stages (num_stages) of the segment-sum kernel. weighted: by r, with sums of δ.

    Ampere lacks the registers for a third stage when sums are weighted: with Triton 3.6 it spilled,
    and two stages take fewer instructions.
    """
    return 2 if weighted and not gpu_of(device).large else 3


def warps_of_sums(device: torch.device, weighted: bool, faded: bool, width: int) -> int:
    """Warps of a program of the segment sums, of bf16. width: the wider of K and V.

    Decayed terms are added in two parts. Beside wide sums of δ, Ampere lacks the registers for
    them.
    """
    return 8 if weighted and faded and width > 64 and not gpu_of(device).large else 4
