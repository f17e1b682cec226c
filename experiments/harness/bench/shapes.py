"""The shapes [B, T, H, D] in which kernels are raced, and what is timed of each."""

from __future__ import annotations

LADDER = [  # the shapes of a published comparison of such kernels
    (1, 8192, 96, 128),
    (2, 16384, 16, 128),
    (4, 2048, 16, 128),
    (4, 4096, 64, 128),
    (8, 2048, 32, 256),
    (8, 1024, 8, 64),
]
# GPT-2's heads at doubling lengths, the telling ones first, and a length that nothing divides.
GPT2 = [(1, T, 12, 64) for T in (8192, 1024, 65536, 131072, 16384, 4096, 2048, 32768, 65537)]
BETWEEN = GPT2[4:]  # timed when all else has been
SMALL = (2, 512, 2, 64)
PASSES = ("forward", "forward+backward")
