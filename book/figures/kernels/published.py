"""Published times of such kernels; none was measured here."""

from __future__ import annotations

# pytorch/helion, examples/fla/BENCHMARKS.md: the table "linear_attn" for one H100, in bf16.
# B, T, H, d, then milliseconds forward and forward+backward of Helion, and of fla.
PUBLISHED = [
    (1, 8192, 96, 128, 0.682, 2.010, 0.726, 3.367),
    (2, 16384, 16, 128, 0.457, 1.355, 0.609, 2.585),
    (4, 2048, 16, 128, 0.149, 0.956, 0.148, 1.547),
    (4, 4096, 64, 128, 0.900, 2.659, 0.950, 4.530),
    (8, 2048, 32, 256, 1.271, 3.994, 1.338, 8.981),
    (8, 1024, 8, 64, 0.143, 0.755, 0.137, 0.796),
]
LARGE = 500_000  # tokens of all heads from which a published time is not the host's
