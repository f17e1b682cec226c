"""Parts shared by the selective scan's kernels: rows of a sequence, and one number's step."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def load_row(p, m):
    """A token's channels in float32; zero where not m."""
    return tl.load(p, mask=m, other=0.0).to(tl.float32)


@triton.jit
def load_shared(p, j, last, s_t, o_n, N: tl.constexpr, BN: tl.constexpr):
    """B or C at token j of a chunk, [BN] in float32; past `last`, the values at `last`.

    Past the end u, Δ and dy are zero, so these values have no effect and need no mask.
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
    """exp(Δ A), as a power of two: the hardware has an instruction for that."""
    return tl.exp2(delta * (A * 1.4426950408889634))


@triton.jit
def inverse(A):
    """1 / A for `held`, and a finite number at A = 0."""
    return 1.0 / tl.where(A == 0.0, 1.0, A)


@triton.jit
def held(delta, z, a, r):
    """w = (exp(z) - 1) / A, the input factor of zero-order hold; z = Δ A, a = exp(z), r = 1 / A.

    Near 0 the difference would cancel; there it is Δ (1 + z/2 + z^2/6 + ...), exact to float32 at
    1/2.
    """
    m = tl.abs(z) < 0.5
    x = tl.where(m, z, 0.0)
    near = 1.0 / 120 + x * (1.0 / 720 + x * (1.0 / 5040 + x * (1.0 / 40320)))
    near = 1.0 + x * (1.0 / 2 + x * (1.0 / 6 + x * (1.0 / 24 + x * near)))
    return tl.where(m, delta * near, (a - 1.0) * r)


@triton.jit
def held_slope(delta, z, a, r, w):
    """dw/dA = (Δ exp(z) - w) / A; near 0 it is Δ^2 (1/2 + z/3 + z^2/8 + z^3/30 + ...)."""
    m = tl.abs(z) < 0.5
    x = tl.where(m, z, 0.0)
    near = 1.0 / 144 + x * (1.0 / 840 + x * (1.0 / 5760 + x * (1.0 / 45360)))
    near = 1.0 / 2 + x * (1.0 / 3 + x * (1.0 / 8 + x * (1.0 / 30 + x * near)))
    return tl.where(m, delta * delta * near, (delta * a - w) * r)
