"""Chunked mode forwards: one pass over each segment of each head; passes.py explains the design.

Per token and head, with blocks of BV values: 2 C (K + V) + 4 K V FLOPs, and 2 C K for every further
block; 8 D bytes in bf16, and 4 for the normaliser.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from ...call import Call, Saved
from ..arguments import faded, pointer
from ..tiles import (
    between,
    enter,
    left_between,
    load_decay,
    load_summed,
    load_tile,
    store_tile,
    store_tokens,
)
from ..tuning.plan import Plan


@triton.jit(do_not_specialize=["T", "N", "H", "L", "G", "reach", "s_Gb"])
def forward_kernel(
    p_q, p_k, p_v, p_o, p_den, p_S, p_z, p_sums, p_S_T, p_z_T,
    s_qb, s_qt, s_qh, s_kb, s_kt, s_kh, s_vb, s_vt, s_vh,
    T, N, H, L, G, reach, scale, eps, p_G, s_Gb, K: tl.constexpr, V: tl.constexpr,
    NORMALIZE: tl.constexpr, WITH_Z: tl.constexpr, MAP: tl.constexpr,
    FIRST: tl.constexpr, FIRST_Z: tl.constexpr, DECAY: tl.constexpr,
    C: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
    OPERAND: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One segment of one head, BV features of o: chunk by chunk, the state on chip.

    reach: how many earlier segments' sums are added to the state before the sequence.
    p_G: arguments.prefixes, if DECAY; s_Gb: its batch stride.
    """
    n_v = tl.cdiv(V, BV)
    pid = tl.program_id(0)
    i_v = pid % n_v
    i_g = pid // n_v % G
    i_bh = (pid // (n_v * G)).to(tl.int64)
    i_b, i_h = i_bh // H, i_bh % H
    p_q += i_b * s_qb + i_h * s_qh
    p_k += i_b * s_kb + i_h * s_kh
    p_v += i_b * s_vb + i_h * s_vh
    p_o += (i_b * T * H + i_h) * V
    p_den += i_b * T * H + i_h
    begin = i_g * L
    end = tl.minimum(T, begin + L)

    # 1. The state before the segment.
    o_k, o_v = tl.arange(0, BK), i_v * BV + tl.arange(0, BV)
    m_k = o_k < K
    o_S = o_k[:, None] * V + o_v[None, :]
    m_S = m_k[:, None] & (o_v < V)[None, :]
    p_sums += i_bh * (K * V + K)
    first, step = tl.maximum(0, i_g - reach), N.to(tl.int64) * (K * V + K)
    if DECAY:
        p_G += i_b * s_Gb + i_h * 2
        left = left_between(p_G, begin * 0, begin, H)
    b_S = load_summed(p_sums, o_S, m_S, first, i_g, step, p_G, begin, H, L, DECAY)
    if FIRST:
        b_first = tl.load(p_S + i_bh * K * V + o_S, mask=m_S, other=0.0)
        b_S += b_first * left if DECAY else b_first
    b_z = tl.zeros([BK], dtype=tl.float32)
    if WITH_Z:
        b_z += load_summed(p_sums + K * V, o_k, m_k, first, i_g, step, p_G, begin, H, L, DECAY)
    if FIRST_Z:
        b_first = tl.load(p_z + i_bh * K + o_k, mask=m_k, other=0.0)
        b_z += b_first * left if DECAY else b_first
    # FOLD: z as 16 equal columns, so that tensor cores form its sums and no tile has to be spread
    # over registers.
    FOLD: tl.constexpr = (OPERAND == "bf16") or (OPERAND == "bf16 in fp32")
    b_Z = b_z[:, None] + tl.zeros([BK, 16], dtype=tl.float32)
    b_ones = enter(tl.full([C, 16], 1.0, dtype=tl.float32), OPERAND)
    o_n = tl.arange(0, 16)[None, :]

    o_x = tl.arange(0, C)
    m_A = o_x[:, None] >= o_x[None, :]
    for i in range(tl.cdiv(end - begin, C)):
        start = begin + i * C
        b_q = enter(load_tile(p_q, start, end, s_qt, 0, K, MAP, C, BK), OPERAND)
        b_k = load_tile(p_k, start, end, s_kt, 0, K, MAP, C, BK)
        b_v = load_tile(p_v, start, end, s_vt, i_v * BV, V, "identity", C, BV)
        if DECAY:
            b_G, b_g, since, until, left = load_decay(p_G, start, end, H, C)
        # 2. The past of the normaliser. It comes first because nothing may read z's registers while
        # tensor cores work on other products: they would wait for each other.
        if NORMALIZE:
            if FOLD:
                # Three columns of bf16 hold the 24 bits of a float32 z.
                b_1 = b_Z.to(tl.bfloat16).to(tl.float32)
                b_2 = (b_Z - b_1).to(tl.bfloat16).to(tl.float32)
                b_3 = tl.where(o_n == 2, b_Z - b_1 - b_2, 0.0)
                b_3 = tl.where(o_n == 1, b_2, b_3)
                b_3 = tl.where(o_n == 0, b_1, b_3)
                b_n = tl.sum(tl.dot(b_q, enter(b_3, OPERAND), input_precision=PRECISION), axis=1)
            else:
                b_n = tl.sum(b_q.to(tl.float32) * b_z[None, :], axis=1)
            if DECAY:
                b_n *= since
        # 3. The products inside the chunk.
        b_A = tl.dot(b_q, tl.trans(enter(b_k, OPERAND)), input_precision=PRECISION)
        if DECAY:
            b_A *= between(b_G, b_g, m_A, False, OPERAND)
        else:
            b_A = tl.where(m_A, b_A, 0.0)
        # 4. The past through the state, the chunk through its products.
        b_o = tl.dot(enter(b_q, WIDE), enter(b_S, WIDE), input_precision=PRECISION)
        if DECAY:
            b_o *= since[:, None]
        b_o = tl.dot(enter(b_A, WIDE), enter(b_v, WIDE), b_o, input_precision=PRECISION)
        if NORMALIZE:
            b_n = scale * (b_n + tl.sum(b_A, axis=1))
            if i_v == 0:
                store_tokens(b_n, p_den, start, end, H, C)
            b_o *= (scale / (b_n + eps))[:, None]
        else:
            b_o *= scale
        store_tile(b_o, p_o, start, end, H * V, i_v * BV, V, C, BV)
        # 5. The chunk enters the state.
        b_v = enter(b_v, OPERAND)
        if DECAY:
            b_k = b_k.to(tl.float32) * until[:, None]
            b_S *= left
            b_z *= left
            b_Z *= left
        b_S += tl.dot(tl.trans(enter(b_k, OPERAND)), b_v, input_precision=PRECISION)
        if WITH_Z:
            if FOLD:
                b_Z += tl.dot(tl.trans(enter(b_k, OPERAND)), b_ones, input_precision=PRECISION)
            else:
                b_z += tl.sum(b_k.to(tl.float32), axis=0)

    if i_g == G - 1:
        tl.store(p_S_T + i_bh * K * V + o_S, b_S, mask=m_S)
        if WITH_Z:
            if FOLD:
                b_z = tl.sum(tl.where(o_n == 0, b_Z, 0.0), axis=1)
            tl.store(p_z_T + i_bh * K + o_k, b_z, mask=m_k & (i_v == 0))


def run_forward(call: Call, out: Saved, plan: Plan, G: Tensor | None) -> None:
    """Launch forward_kernel: o, the normaliser and the state after the last token.

    G: arguments.prefixes.
    """
    B, T, H, K, V = call.sizes
    q, k, v, like, launch = call.q, call.k, call.v, out.S_T, plan.forward
    G, s_Gb, decay = faded(G, like)
    forward_kernel[(-(-V // launch.BV) * plan.G * B * H,)](
        q, k, v, out.o, out.den, pointer(call.S, like), pointer(call.z, like),
        out.states, out.S_T, out.z_T,
        *q.stride()[:3], *k.stride()[:3], *v.stride()[:3],
        T, B * H, H, plan.L, plan.G, plan.reach, call.scale, call.eps, G, s_Gb,
        K, V, call.normalize, call.keeps_z, call.feature_map,
        call.S is not None, call.keeps_z and call.z is not None, decay,
        launch.C, launch.BK, launch.BV, *launch.kinds,
        num_warps=launch.num_warps, num_stages=launch.num_stages,
    )  # fmt: skip
