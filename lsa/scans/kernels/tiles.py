"""What the kernels of the selective scan share: rows of a sequence, and one number's step."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def load_row(p, j, s_t, m):
    """Token j of a chunk that begins at p, in float32; zero where not m."""
    return tl.load(p + j * s_t, mask=m, other=0.0).to(tl.float32)


@triton.jit
def load_shared(p, j, last, s_t, o_n, N: tl.constexpr, BN: tl.constexpr):
    """B or C at token j of a chunk, [BN] in float32; past `last`, which is in the chunk, as there.

    What is past the end meets a u, Δ and dy of zero. Without a mask nothing has to be cleared.
    """
    p += tl.minimum(j, last) * s_t
    p += o_n
    if N == BN:
        b = tl.load(p)
    else:
        b = tl.load(p, mask=o_n < N, other=0.0)
    return b.to(tl.float32)


@triton.jit
def decay(delta, A):
    """exp(Δ A), as a power of two, which is what the hardware has."""
    return tl.exp2(delta * (A * 1.4426950408889634))


@triton.jit
def held(z, a):
    """φ(z) = (exp(z) - 1) / z, of z and a = exp(z). Near 0 the difference would cancel: a series.

    Zero-order hold lets Δ φ(Δ A) B u into the state. Eight terms are exact to float32 at 1/2.
    """
    m = tl.abs(z) < 0.5
    x = tl.where(m, z, 0.0)
    near = 1.0 / 120 + x * (1.0 / 720 + x * (1.0 / 5040 + x * (1.0 / 40320)))
    near = 1.0 + x * (1.0 / 2 + x * (1.0 / 6 + x * (1.0 / 24 + x * near)))
    return tl.where(m, near, (a - 1.0) / tl.where(m, 1.0, z))


@triton.jit
def held_slope(z, a, phi):
    """φ'(z) = (exp(z) - φ(z)) / z, of z, exp(z) and φ(z): sum_k (k + 1) z^k / (k + 2)! near 0."""
    m = tl.abs(z) < 0.5
    x = tl.where(m, z, 0.0)
    near = 1.0 / 144 + x * (1.0 / 840 + x * (1.0 / 5760 + x * (1.0 / 45360)))
    near = 1.0 / 2 + x * (1.0 / 3 + x * (1.0 / 8 + x * (1.0 / 30 + x * near)))
    return tl.where(m, near, (a - phi) / tl.where(m, 1.0, z))
