"""Chunked mode's dq: one pass forwards over each segment of each head.

Per token and head, K = V = D, in bf16: 8 D bytes (10 D normalised) and 4 C D + 4 D^2 FLOPs. The
formula is in dkv.py.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from ...call import Call, Grads, Saved
from ..arguments import faded, pointer
from ..tiles import (
    between,
    enter,
    in_two,
    left_between,
    load_decay,
    load_summed,
    load_tile,
    load_tokens,
    slope,
    store_tile,
    store_tokens,
)
from ..tuning.plan import KEPT, Plan


@triton.jit(do_not_specialize=["T", "N", "H", "L", "G", "reach", "s_Gb"])
def dq_kernel(
    p_q, p_k, p_v, p_do, p_dq, p_den, p_delta, p_S, p_z, p_sums,
    s_qb, s_qt, s_qh, s_kb, s_kt, s_kh, s_vb, s_vt, s_vh, s_db, s_dt, s_dh,
    T, N, H, L, G, reach, scale, eps, p_G, s_Gb, p_kept, K: tl.constexpr, V: tl.constexpr,
    NORMALIZE: tl.constexpr, FORM_DELTA: tl.constexpr, MAP: tl.constexpr,
    FIRST: tl.constexpr, FIRST_Z: tl.constexpr,
    DECAY: tl.constexpr, KEEP: tl.constexpr, KEEP_Z: tl.constexpr, KEPT: tl.constexpr,
    C: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
    OPERAND: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One segment of one head, BK features of dq, forwards in time. BV holds all values.

    FORM_DELTA: BK holds all of q's features, and δ is formed here; otherwise it is given.
    KEEP: store S, and KEEP_Z z, before every KEPT tokens.
    """
    n_k = tl.cdiv(K, BK)
    pid = tl.program_id(0)
    i_k = pid % n_k
    i_g = pid // n_k % G
    i_bh = (pid // (n_k * G)).to(tl.int64)
    i_b, i_h = i_bh // H, i_bh % H
    p_q += i_b * s_qb + i_h * s_qh
    p_k += i_b * s_kb + i_h * s_kh
    p_v += i_b * s_vb + i_h * s_vh
    p_do += i_b * s_db + i_h * s_dh
    p_dq += (i_b * T * H + i_h) * K
    p_den += i_b * T * H + i_h
    p_delta += i_b * T * H + i_h
    begin = i_g * L
    end = tl.minimum(T, begin + L)

    # 1. S^T and z before the segment.
    o_k, o_v = i_k * BK + tl.arange(0, BK), tl.arange(0, BV)
    m_k = o_k < K
    o_S = o_k[None, :] * V + o_v[:, None]
    m_S = m_k[None, :] & (o_v < V)[:, None]
    p_sums += i_bh * (K * V + K)
    first, step = tl.maximum(0, i_g - reach), N.to(tl.int64) * (K * V + K)
    if DECAY:
        p_G += i_b * s_Gb + i_h * 2
        left = left_between(p_G, begin * 0, begin, H)
    b_S = tl.zeros(o_S.shape, dtype=tl.float32)
    if FIRST:
        # Loaded first: a whole S, its sum and the terms added to it would not fit in registers.
        b_S = tl.load(p_S + i_bh * K * V + o_S, mask=m_S, other=0.0)
        if DECAY:
            b_S *= left
    b_S = load_summed(p_sums, o_S, m_S, first, i_g, step, p_G, begin, H, L, DECAY, False, b_S)
    WITH_Z: tl.constexpr = NORMALIZE or KEEP_Z
    b_z = tl.zeros([BK], dtype=tl.float32)
    if WITH_Z:
        b_z += load_summed(p_sums + K * V, o_k, m_k, first, i_g, step, p_G, begin, H, L, DECAY)
        if FIRST_Z:
            b_first = tl.load(p_z + i_bh * K + o_k, mask=m_k, other=0.0)
            b_z += b_first * left if DECAY else b_first
    if KEEP:
        p_kept += i_bh * (K * V + K)
    # Rounding φ(k) costs 2e-3 of dq, as much as rounding the products or dq, so φ(k) enters in two
    # tiles. The normaliser removes the mean of φ(k), and with it most of what a map has added. The
    # error from rounding S stays, 2.5e-3 of dq past the first chunks. There S enters in two tiles
    # as well, or products are in tf32.
    BF16: tl.constexpr = (OPERAND == "bf16") or (OPERAND == "bf16 in fp32")
    PRECISE: tl.constexpr = NORMALIZE and BF16
    ROUNDS: tl.constexpr = (MAP != "identity") and (MAP != "relu")
    SPLIT: tl.constexpr = BF16 and ROUNDS and (WIDE != "tf32")
    # TWICE: the products inside the chunk enter in two tiles. So does S if δ is given: that δ comes
    # from an unrounded o, and does not remove the rounding error of S.
    TWICE: tl.constexpr = PRECISE and (WIDE != "tf32")
    SPLIT_S: tl.constexpr = (SPLIT and NORMALIZE) or (TWICE and not FORM_DELTA)
    # Decay multiplies φ(k), which is then rounded again; without a map it was exact.
    SPLIT_FADED: tl.constexpr = BF16 and DECAY and (WIDE != "tf32")
    ENTRY: tl.constexpr = WIDE if PRECISE else OPERAND
    # With 16 rows the chunk enters the state before δ is formed. Later, each warp would form most
    # of the products itself: 225 tensor-core instructions instead of 56.
    EARLY: tl.constexpr = FORM_DELTA and PRECISE and (C == 16)
    # If δ is formed here, z is formed with it. Otherwise chunks are added to it. FOLD: as the first
    # of 16 columns, so that tensor cores form the sums.
    ADD_Z: tl.constexpr = WITH_Z and not (NORMALIZE and FORM_DELTA)
    FOLD: tl.constexpr = ADD_Z and BF16
    o_n = tl.arange(0, 16)[None, :]
    b_Z = tl.where(o_n == 0, b_z[:, None], 0.0)
    b_ones = enter(tl.full([C, 16], 1.0, dtype=tl.float32), ENTRY)

    o_x = tl.arange(0, C)
    m_A = o_x[:, None] >= o_x[None, :]
    for i in range(tl.cdiv(end - begin, C)):
        start = begin + i * C
        b_do = enter(load_tile(p_do, start, end, s_dt, 0, V, "identity", C, BV), OPERAND)
        b_v = load_tile(p_v, start, end, s_vt, 0, V, "identity", C, BV)
        b_k = load_tile(p_k, start, end, s_kt, i_k * BK, K, MAP, C, BK)
        until, left = 1.0, 1.0
        if DECAY:
            b_G, b_g, since, until, left = load_decay(p_G, start, end, H, C)
        if NORMALIZE and not FORM_DELTA:
            b_r = 1.0 / (load_tokens(p_den, start, end, H, 1.0, C) + eps)
        if FOLD:
            b_z = tl.sum(tl.where(o_n == 0, b_Z, 0.0), axis=1)
        if KEEP and start % KEPT == 0:
            p_n = p_kept + (start // KEPT) * step
            tl.store(p_n + o_S, b_S, mask=m_S)
            if WITH_Z:
                tl.store(p_n + K * V + o_k, b_z, mask=m_k)
        # 2. The products inside the chunk.
        b_P = tl.dot(b_do, tl.trans(enter(b_v, OPERAND)), input_precision=PRECISION)
        if NORMALIZE and not FORM_DELTA:
            b_delta = load_tokens(p_delta, start, end, H, 0.0, C)
            b_P += b_delta[:, None]
        if DECAY:
            b_w = between(b_G, b_g, m_A, False, OPERAND)
            b_P *= b_w
        else:
            b_P = tl.where(m_A, b_P, 0.0)
        # δ_x removes the part do_x·o_x from do_x·v_y, almost all of it for the first tokens. dk and
        # dv subtract δ from the exact product, so δ needs more digits than bf16 holds. Without them
        # dk would be off by up to 5e-3.
        if TWICE:
            b_P, b_p = in_two(b_P, WIDE)
        else:
            b_P = enter(b_P, WIDE)
        # 3. The past through the state, the chunk through its products.
        b_c = enter(b_k, WIDE)
        b_l = b_c
        if SPLIT_S:
            b_1, b_2 = in_two(b_S, WIDE)
            b_dq = tl.dot(b_do, b_1, input_precision=PRECISION)
            b_dq = tl.dot(b_do, b_2, b_dq, input_precision=PRECISION)
        else:
            b_dq = tl.dot(enter(b_do, WIDE), enter(b_S, WIDE), input_precision=PRECISION)
        if DECAY:
            b_dq *= since[:, None]
        b_dq = tl.dot(b_P, b_c, b_dq, input_precision=PRECISION)
        if TWICE:
            b_dq = tl.dot(b_p, b_c, b_dq, input_precision=PRECISION)
        if SPLIT:
            b_l = enter(b_k - b_c.to(tl.float32), WIDE)
            b_dq = tl.dot(b_P, b_l, b_dq, input_precision=PRECISION)
        if EARLY:
            b_S, b_Z, b_z = with_chunk(
                b_S, b_Z, b_z, b_k, b_v, b_l, b_ones, until, left,
                DECAY, SPLIT, SPLIT_FADED, ADD_Z, FOLD, ENTRY, PRECISION,
            )  # fmt: skip
        if NORMALIZE:
            if FORM_DELTA:
                # do·num is q times its own gradient. If δ is formed from the rounded sum, it
                # removes the rounding error along q, where the exact gradient is zero. δ multiplies
                # Y, the sum of the keys so far, which gives n again. With few tokens dq is a small
                # difference of large terms. With the n of the forward pass, from rounded features,
                # it would be off by up to 1e-2.
                b_q = load_tile(p_q, start, end, s_qt, 0, K, MAP, C, BK)
                if DECAY and BF16:
                    b_1, b_2 = in_two(b_w, WIDE)
                elif DECAY:
                    b_1 = enter(b_w, WIDE)
                else:
                    b_1 = enter(tl.where(m_A, 1.0, 0.0), WIDE)
                b_Y = tl.dot(b_1, b_c, input_precision=PRECISION)
                if SPLIT:
                    b_Y = tl.dot(b_1, b_l, b_Y, input_precision=PRECISION)
                if DECAY and BF16:
                    b_Y = tl.dot(b_2, b_c, b_Y, input_precision=PRECISION)
                b_Y += since[:, None] * b_z[None, :] if DECAY else b_z[None, :]
                b_r = 1.0 / (scale * tl.sum(b_q.to(tl.float32) * b_Y, axis=1) + eps)
                b_delta = -scale * b_r * tl.sum(b_q.to(tl.float32) * b_dq, axis=1)
                store_tokens(b_delta, p_delta, start, end, H, C)
                b_dq = (b_dq + b_delta[:, None] * b_Y) * (scale * b_r)[:, None]
                b_z = tl.sum(tl.where(o_x[:, None] == C - 1, b_Y, 0.0), axis=0)
            else:
                if DECAY:
                    b_delta *= since
                b_dq = (b_dq + b_delta[:, None] * b_z[None, :]) * (scale * b_r)[:, None]
        else:
            b_dq *= scale
        if MAP != "identity":
            b_x = load_tile(p_q, start, end, s_qt, i_k * BK, K, "identity", C, BK)
            b_dq *= slope(b_x.to(tl.float32), MAP)
        store_tile(b_dq, p_dq, start, end, H * K, i_k * BK, K, C, BK)
        # 4. The chunk enters the state.
        if not EARLY:
            b_S, b_Z, b_z = with_chunk(
                b_S, b_Z, b_z, b_k, b_v, b_l, b_ones, until, left,
                DECAY, SPLIT, SPLIT_FADED, ADD_Z, FOLD, ENTRY, PRECISION,
            )  # fmt: skip


@triton.jit
def with_chunk(
    b_S, b_Z, b_z, b_k, b_v, b_l, b_ones, until, left,
    DECAY: tl.constexpr, SPLIT: tl.constexpr, SPLIT_FADED: tl.constexpr, ADD_Z: tl.constexpr,
    FOLD: tl.constexpr, ENTRY: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """S^T and, where ADD_Z, z (b_Z where FOLD) after a chunk. b_l: rounding error of b_k."""
    if DECAY:
        b_k = b_k.to(tl.float32) * until[:, None]
        b_S *= left
        if ADD_Z:
            b_Z *= left
            b_z *= left
    b_c, b_v = enter(b_k, ENTRY), enter(b_v, ENTRY)
    if SPLIT_FADED:
        b_l = enter(b_k - b_c.to(tl.float32), ENTRY)
    b_S += tl.dot(tl.trans(b_v), b_c, input_precision=PRECISION)
    if SPLIT or SPLIT_FADED:
        b_S += tl.dot(tl.trans(b_v), b_l, input_precision=PRECISION)
    if ADD_Z:
        if FOLD:
            b_Z += tl.dot(tl.trans(b_c), b_ones, input_precision=PRECISION)
            if SPLIT or SPLIT_FADED:
                b_Z += tl.dot(tl.trans(b_l), b_ones, input_precision=PRECISION)
        else:
            b_z += tl.sum(b_k.to(tl.float32), axis=0)
    return b_S, b_Z, b_z


def run_dq(
    call: Call, out: Saved, do: Tensor, delta: Tensor | None, grads: Grads,
    plan: Plan, G: Tensor | None = None, kept: Tensor | None = None, keep_z: bool = False,
) -> None:  # fmt: skip
    """Launch dq_kernel; if the plan says so, it also writes delta.

    G: arguments.prefixes. kept: memory for S, and with keep_z for z; see dg.py.
    """
    B, T, H, K, V = call.sizes
    q, k, v, like, launch = call.q, call.k, call.v, out.S_T, plan.dq
    G, s_Gb, decay = faded(G, like)
    dq_kernel[(-(-K // launch.BK) * plan.G * B * H,)](
        q, k, v, do, grads.dq, out.den, pointer(delta, out.den),
        pointer(call.S, like), pointer(call.z, like), out.states,
        *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *do.stride()[:3],
        T, B * H, H, plan.L, plan.G, plan.reach, call.scale, call.eps,
        G, s_Gb, pointer(kept, like), K, V,
        call.normalize, plan.form_delta, call.feature_map,
        call.S is not None, call.z is not None, decay, kept is not None, keep_z, KEPT,
        launch.C, launch.BK, launch.BV, *launch.kinds,
        num_warps=launch.num_warps, num_stages=launch.num_stages,
    )  # fmt: skip
