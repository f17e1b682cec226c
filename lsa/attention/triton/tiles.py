"""Loading, mapping, rounding and storing tiles of a head, shared by all kernels."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def feature(x, MAP: tl.constexpr):
    """The feature map of x, in float32."""
    if MAP == "elu_plus_one":
        x = tl.where(x > 0, x + 1.0, tl.exp(tl.minimum(x, 0.0)))
    elif MAP == "relu":
        x = tl.maximum(x, 0.0)
    elif MAP == "softplus":
        # log(1 + e) loses the low bits of e in 1 + e; the quotient restores them.
        e = tl.exp(-tl.abs(x))
        u = 1.0 + e
        rounded = u - 1.0
        safe = tl.where(rounded == 0.0, 1.0, rounded)
        x = tl.maximum(x, 0.0) + tl.where(rounded == 0.0, e, tl.log(u) * (e / safe))
    return x


@triton.jit
def slope(x, MAP: tl.constexpr):
    """The derivative of the feature map at x, in float32."""
    if MAP == "elu_plus_one":
        x = tl.where(x > 0, 1.0, tl.exp(tl.minimum(x, 0.0)))
    elif MAP == "relu":
        x = tl.where(x > 0, 1.0, 0.0)
    else:
        e = tl.exp(-tl.abs(x))
        x = tl.where(x > 0, 1.0, e) / (1.0 + e)
    return x


@triton.jit
def enter(x, KIND: tl.constexpr):
    """x in the number format of a product; the kinds are those of arguments.Precision."""
    if KIND == "fp16":
        x = x.to(tl.float16)
    elif KIND == "bf16":
        x = x.to(tl.bfloat16)
    else:
        x = x.to(tl.float32)
        if KIND == "bf16 in fp32":
            i = x.to(tl.int32, bitcast=True)
            i = (i + 0x7FFF + ((i >> 16) & 1)) & -0x10000
            x = i.to(tl.float32, bitcast=True)
        elif KIND == "tf32":
            i = x.to(tl.int32, bitcast=True)
            x = ((i + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    return x


@triton.jit
def tile_mask(o_t, o_d, length, D: tl.constexpr, BD: tl.constexpr):
    """Mask of the elements of a tile that exist; of tokens alone if blocks divide D."""
    m = (o_t < length)[:, None]
    if D % BD != 0:
        m = m & (o_d < D)[None, :]
    return m


@triton.jit
def load_tile(
    p, start, end, s_t, first,
    D: tl.constexpr, MAP: tl.constexpr, C: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """Tokens start .. start + C and features first .. first + BD of one head; zeros outside.

    The offset of the first token is computed in int64; inside a tile, offsets fit in int32. The
    features of a token are adjacent in memory.
    """
    o_t = tl.arange(0, C)
    o_d = first + tl.arange(0, BD)
    m = tile_mask(o_t, o_d, end - start, D, BD)
    p += start.to(tl.int64) * s_t
    x = tl.load(p + (o_t[:, None] * s_t + o_d[None, :]), mask=m, other=0.0)
    if MAP != "identity":
        # A map may be positive at zero, and missing elements must have no weight.
        x = tl.where(m, feature(x.to(tl.float32), MAP), 0.0)
    return x


@triton.jit
def store_tile(x, p, start, end, s_t, first, D: tl.constexpr, C: tl.constexpr, BD: tl.constexpr):
    """Store a tile; the counterpart of load_tile."""
    o_t = tl.arange(0, C)
    o_d = first + tl.arange(0, BD)
    m = tile_mask(o_t, o_d, end - start, D, BD)
    p += start.to(tl.int64) * s_t
    tl.store(p + (o_t[:, None] * s_t + o_d[None, :]), x.to(p.dtype.element_ty), mask=m)


@triton.jit
def load_tokens(p, start, end, s_t, other, C: tl.constexpr):
    """One float32 a token: start .. start + C, `other` past the end."""
    o_t = tl.arange(0, C)
    p += start.to(tl.int64) * s_t
    return tl.load(p + o_t * s_t, mask=o_t < end - start, other=other)


@triton.jit
def store_tokens(x, p, start, end, s_t, C: tl.constexpr):
    """Store one number a token; the counterpart of load_tokens."""
    o_t = tl.arange(0, C)
    p += start.to(tl.int64) * s_t
    tl.store(p + o_t * s_t, x, mask=o_t < end - start)


@triton.jit
def load_summed(
    p, o, m, first, last, step, p_G=None, at=0, H=0, L=0,
    DECAY: tl.constexpr = False, REVERSE: tl.constexpr = False, b=None,
):  # fmt: skip
    """b, or zero, and the sum of the states first .. last - 1, `step` (int64) apart, at o where m.

    DECAY: state j covers the tokens up to (j + 1) L, and decays from there to token `at`. In
    REVERSE it covers the tokens from there on, and `at` comes before.
    """
    if b is None:
        b = tl.zeros(o.shape, dtype=tl.float32)
    for j in range(first, last):
        b_j = tl.load(p + j * step + o, mask=m, other=0.0)
        if DECAY:
            if REVERSE:
                b_j *= left_between(p_G, at, (j + 1) * L, H)
            else:
                b_j *= left_between(p_G, (j + 1) * L, at, H)
        b += b_j
    return b


@triton.jit
def left_between(p_G, begin, end, H):
    """exp(g_begin + ... + g_{end - 1}), the decay of a head's state from token begin to token end.

    p_G: arguments.prefixes of the head. begin, end: token numbers, both of one shape.
    """
    p_0, p_1 = p_G + begin.to(tl.int64) * 2 * H, p_G + end.to(tl.int64) * 2 * H
    return tl.exp2((tl.load(p_1) - tl.load(p_0)) + (tl.load(p_1 + 1) - tl.load(p_0 + 1)))


@triton.jit
def load_decay(p_G, start, end, H, C: tl.constexpr):
    """Decay inside the chunk that starts at `start`; after the last token nothing decays.

    Returns each token's prefix in two parts, for `between`; the decay from the chunk's start to
    each token; that from each token to the chunk's end; and that of the whole chunk.
    """
    p_G += start.to(tl.int64) * 2 * H
    length = tl.minimum(end - start, C)
    o_t = tl.minimum(1 + tl.arange(0, C), length) * (2 * H)
    b_1, b_2 = tl.load(p_G + o_t), tl.load(p_G + o_t + 1)
    h_1, h_2 = tl.load(p_G), tl.load(p_G + 1)
    t_1, t_2 = tl.load(p_G + length * (2 * H)), tl.load(p_G + length * (2 * H) + 1)
    b_G = (b_1 - h_1) + (b_2 - h_2)
    until = tl.exp2((t_1 - b_1) + (t_2 - b_2))
    return (
        b_G,
        (b_1 - h_1 - b_G) + (b_2 - h_2),
        tl.exp2(b_G),
        until,
        tl.exp2((t_1 - h_1) + (t_2 - h_2)),
    )


@triton.jit
def between(b_G, b_g, m, REVERSE: tl.constexpr, OPERAND: tl.constexpr):
    """w_xy of two tokens of a chunk, from load_decay's prefixes: rows x after columns y.

    In REVERSE rows come before columns. Zero outside m, where an exponential could overflow, so a
    product with it needs no mask of its own.
    """
    gap = b_G[None, :] - b_G[:, None] if REVERSE else b_G[:, None] - b_G[None, :]
    # Over 64 tokens with g = -30 the float32 sum is off by 1e-4; only float32 products show it.
    if OPERAND == "fp32":
        gap += b_g[None, :] - b_g[:, None] if REVERSE else b_g[:, None] - b_g[None, :]
    return tl.exp2(tl.where(m, gap, float("-inf")))


@triton.jit
def in_two(x, KIND: tl.constexpr):
    """x as two numbers for a product: x rounded, and the rounding error."""
    b_1 = x.to(tl.bfloat16).to(tl.float32)
    return enter(b_1, KIND), enter(x - b_1, KIND)
