"""Chunked mode's three gradients in one backward pass, for the unnormalised sum.

With the states S before a chunk and R after it, as in dkv.py for r = 1, δ = 0,

    S <- S - sum_{chunk} φ(k_j) v_j^T
    dq_x = scale [ S do_x + sum_{chunk, y<=x} (do_x·v_y) φ(k_y) ] φ'(q_x)
    dk_y = scale [ R v_y + sum_{chunk, x>=y} (v_y·do_x) φ(q_x) + m ] φ'(k_y)
    dv_y = scale [ R^T φ(k_y) + sum_{chunk, x>=y} (φ(k_y)·φ(q_x)) do_x ]
    R <- R + sum_{chunk} φ(q_x) do_x^T

Per token and head, K = V = D: 14 D bytes in bf16, 12 C D + 10 D^2 FLOPs.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from ...call import Call, Grads, Saved
from ..arguments import pointer
from ..tiles import enter, load_summed, load_tile, slope, store_tile
from ..tuning.plan import Plan


@triton.jit(do_not_specialize=["T", "N", "H", "L", "G", "reach"])
def one_pass_kernel(
    p_q, p_k, p_v, p_do, p_dq, p_dk, p_dv,
    p_S, p_S_T, p_states, p_dS_T, p_dz_T, p_sums, p_dS, p_dz,
    s_qb, s_qt, s_qh, s_kb, s_kt, s_kh, s_vb, s_vt, s_vh, s_db, s_dt, s_dh,
    T, N, H, L, G, reach, scale, K: tl.constexpr, V: tl.constexpr, MAP: tl.constexpr,
    FIRST: tl.constexpr, LAST: tl.constexpr, LAST_Z: tl.constexpr,
    C: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
    OPERAND: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """All three gradients of one segment of one head, from its last chunk to its first.

    S^T and R^T [V, K] stay on chip. The forward pass does not store S: it is known after the
    segment, and subtracting a chunk's terms gives S before the chunk. No product takes the
    transpose of another product as its left factor. Where one would be needed, the transposed
    product is formed from the inputs (v·do^T beside do·v^T), or the result is transposed (dv^T).
    """
    pid = tl.program_id(0)
    i_g = pid % G
    i_bh = (pid // G).to(tl.int64)
    i_b, i_h = i_bh // H, i_bh % H
    p_q += i_b * s_qb + i_h * s_qh
    p_k += i_b * s_kb + i_h * s_kh
    p_v += i_b * s_vb + i_h * s_vh
    p_do += i_b * s_db + i_h * s_dh
    p_dq += (i_b * T * H + i_h) * K
    p_dk += (i_b * T * H + i_h) * K
    p_dv += (i_b * T * H + i_h) * V
    begin = i_g * L
    end = tl.minimum(T, begin + L)
    n_c = tl.cdiv(end - begin, C)

    # 1. The states at the segment's end.
    o_k, o_v = tl.arange(0, BK), tl.arange(0, BV)
    m_k = o_k < K
    m_S = (o_v[:, None] < V) & m_k[None, :]
    o_S = o_v[:, None] + o_k[None, :] * V
    first, last = tl.maximum(0, i_g + 1 - reach), tl.minimum(G - 1, i_g + reach)
    step = N.to(tl.int64) * (K * V + K)
    b_R = load_summed(p_sums + i_bh * (K * V + K), o_S, m_S, i_g, last, step)
    if LAST:
        b_R += tl.load(p_dS_T + i_bh * K * V + o_S, mask=m_S, other=0.0) / scale
    b_m = tl.zeros([BK], dtype=tl.float32)
    if LAST_Z:
        b_m += tl.load(p_dz_T + i_bh * K + o_k, mask=m_k, other=0.0) / scale
    if i_g == G - 1:
        b_S = tl.load(p_S_T + i_bh * K * V + o_S, mask=m_S, other=0.0)
    else:
        p_states += i_bh * (K * V + K)
        b_S = load_summed(p_states, o_S, m_S, first, i_g + 1, step)
        if FIRST:
            b_S += tl.load(p_S + i_bh * K * V + o_S, mask=m_S, other=0.0)

    o_x = tl.arange(0, C)
    m_A = o_x[:, None] >= o_x[None, :]
    m_AT = o_x[:, None] <= o_x[None, :]
    for i in range(n_c):
        start = begin + (n_c - 1 - i) * C
        b_q = enter(load_tile(p_q, start, end, s_qt, 0, K, MAP, C, BK), OPERAND)
        b_k = enter(load_tile(p_k, start, end, s_kt, 0, K, MAP, C, BK), OPERAND)
        b_v = enter(load_tile(p_v, start, end, s_vt, 0, V, "identity", C, BV), OPERAND)
        b_do = enter(load_tile(p_do, start, end, s_dt, 0, V, "identity", C, BV), OPERAND)
        # 2. S before the chunk.
        b_S -= tl.dot(tl.trans(b_v), b_k, input_precision=PRECISION)
        # 3. dq.
        b_P = tl.where(m_A, tl.dot(b_do, tl.trans(b_v), input_precision=PRECISION), 0.0)
        b_dq = tl.dot(b_do, enter(b_S, WIDE), input_precision=PRECISION)
        b_dq = tl.dot(enter(b_P, WIDE), b_k, b_dq, input_precision=PRECISION) * scale
        if MAP != "identity":
            b_x = load_tile(p_q, start, end, s_qt, 0, K, "identity", C, BK)
            b_dq *= slope(b_x.to(tl.float32), MAP)
        store_tile(b_dq, p_dq, start, end, H * K, 0, K, C, BK)
        # 4. dk.
        b_P = tl.where(m_AT, tl.dot(b_v, tl.trans(b_do), input_precision=PRECISION), 0.0)
        b_dk = tl.dot(b_v, enter(b_R, WIDE), input_precision=PRECISION)
        b_dk = tl.dot(enter(b_P, WIDE), b_q, b_dk, input_precision=PRECISION)
        if LAST_Z:
            b_dk += b_m[None, :]
        b_dk *= scale
        if MAP != "identity":
            b_x = load_tile(p_k, start, end, s_kt, 0, K, "identity", C, BK)
            b_dk *= slope(b_x.to(tl.float32), MAP)
        store_tile(b_dk, p_dk, start, end, H * K, 0, K, C, BK)
        # 5. dv, transposed.
        b_A = tl.where(m_A, tl.dot(b_q, tl.trans(b_k), input_precision=PRECISION), 0.0)
        b_dv = tl.dot(enter(b_R, WIDE), tl.trans(b_k), input_precision=PRECISION)
        b_dv = tl.dot(tl.trans(b_do), enter(b_A, WIDE), b_dv, input_precision=PRECISION)
        p_t = p_dv + start.to(tl.int64) * H * V
        m_t = (o_x < end - start)[None, :] & (o_v < V)[:, None]
        b_dv = (b_dv * scale).to(p_dv.dtype.element_ty)
        tl.store(p_t + (o_x[None, :] * (H * V) + o_v[:, None]), b_dv, mask=m_t)
        # 6. R before the chunk.
        b_R += tl.dot(tl.trans(b_do), b_q, input_precision=PRECISION)

    if i_g == 0:
        tl.store(p_dS + i_bh * K * V + o_S, b_R * scale, mask=m_S)
        tl.store(p_dz + i_bh * K + o_k, b_m * scale, mask=m_k)


def run_one_pass(
    call: Call, out: Saved, do: Tensor, dS: Tensor | None, dz: Tensor | None,
    sums: Tensor, grads: Grads, plan: Plan,
) -> None:  # fmt: skip
    """Launch one_pass_kernel. sums: what segments add to R."""
    B, T, H, K, V = call.sizes
    q, k, v, like, launch = call.q, call.k, call.v, out.S_T, plan.one_pass
    one_pass_kernel[(plan.G * B * H,)](
        q, k, v, do, grads.dq, grads.dk, grads.dv,
        pointer(call.S, like), out.S_T, out.states, pointer(dS, like), pointer(dz, like),
        sums, grads.dS, grads.dz,
        *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *do.stride()[:3],
        T, B * H, H, plan.L, plan.G, plan.reach, call.scale, K, V, call.feature_map,
        call.S is not None, dS is not None, dz is not None,
        launch.C, launch.BK, launch.BV, *launch.kinds,
        num_warps=launch.num_warps, num_stages=launch.num_stages,
    )  # fmt: skip
