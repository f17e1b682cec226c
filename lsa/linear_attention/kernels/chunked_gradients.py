"""Chunked mode's gradients: one pass forwards for dq, one or two backwards for dk and dv.

With u_x the gradient of what o_x's division is done to, r = 1 / n, δ_x = -do_x·o_x (r = 1 and
δ = 0 where nothing is normalised), and the states S, z before a chunk and R, m after it,

    dq_x = scale r_x [ S do_x + sum_{chunk, y<=x} (do_x·v_y) φ(k_y) + δ_x z_x ] φ'(q_x)
    dk_y = scale [ R v_y + sum_{chunk, x>=y} r_x (v_y·do_x + δ_x) φ(q_x) + m ] φ'(k_y)
    dv_y = scale [ R^T φ(k_y) + sum_{chunk, x>=y} r_x (φ(k_y)·φ(q_x)) do_x ]
    R <- R + sum_{chunk} r_x φ(q_x) do_x^T        m <- m + sum_{chunk} r_x δ_x φ(q_x)

R and m run backwards in time, from the gradients of the returned state over scale; what is left
in them after the first token is the gradient of the initial state.

Per token and head, K = V = D, in bf16: dq 8 D bytes (10 D normalised) and 4 C D + 4 D^2 FLOPs,
6 C D more where it forms δ;
dk and dv together 12 D bytes and 8 C D + 6 D^2 FLOPs, apart 8 D bytes and 4 C D + 4 D^2 FLOPs
each. R is the same for both; what parts them is how much of it a program's registers hold.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from .plans import Launch, Plan
from .problem import Gradients, Outputs, Problem, pointer
from .tiles import (
    enter,
    in_two,
    load_summed,
    load_tile,
    load_tokens,
    slope,
    store_tile,
    store_tokens,
)


@triton.jit(do_not_specialize=["T", "N", "H", "L", "G", "reach"])
def dq_kernel(
    p_q, p_k, p_v, p_do, p_dq, p_den, p_delta, p_S, p_z, p_sums,
    s_qb, s_qt, s_qh, s_kb, s_kt, s_kh, s_vb, s_vt, s_vh, s_db, s_dt, s_dh,
    T, N, H, L, G, reach, scale, eps, K: tl.constexpr, V: tl.constexpr,
    NORMALIZE: tl.constexpr, FORM_DELTA: tl.constexpr, MAP: tl.constexpr,
    FIRST: tl.constexpr, FIRST_Z: tl.constexpr,
    C: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
    OPERAND: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One segment of one head, BK features of dq, forwards in time. BV holds all values.

    FORM_DELTA: BK holds all of q's features, and δ is formed here; otherwise it is given.
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
    b_S = load_summed(p_sums, o_S, m_S, first, i_g, step)
    if FIRST:
        b_S += tl.load(p_S + i_bh * K * V + o_S, mask=m_S, other=0.0)
    b_z = tl.zeros([BK], dtype=tl.float32)
    if NORMALIZE:
        b_z += load_summed(p_sums + K * V, o_k, m_k, first, i_g, step)
        if FIRST_Z:
            b_z += tl.load(p_z + i_bh * K + o_k, mask=m_k, other=0.0)
    # What rounding φ(k) leaves is 2e-3 of dq, beside as much each from the products and from dq
    # itself, so it enters in two tiles. Normalising takes the mean out of φ(k) again, and with it
    # most of what a map has added, but not what rounding S has left, 2.5e-3 of dq past the first
    # chunks: so there S enters in two as well, or products are in tf32.
    FOLD: tl.constexpr = (OPERAND == "bf16") or (OPERAND == "bf16 in fp32")
    PRECISE: tl.constexpr = NORMALIZE and FOLD
    ROUNDS: tl.constexpr = (MAP != "identity") and (MAP != "relu")
    SPLIT: tl.constexpr = FOLD and ROUNDS and (WIDE != "tf32")
    SPLIT_S: tl.constexpr = SPLIT and NORMALIZE
    ENTRY: tl.constexpr = WIDE if PRECISE else OPERAND
    # FOLD: z as the first of 16 columns, so that tensor cores form its sums.
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
        if NORMALIZE:
            b_r = 1.0 / (load_tokens(p_den, start, end, H, 1.0, C) + eps)
            if FOLD:
                b_z = tl.sum(tl.where(o_n == 0, b_Z, 0.0), axis=1)
        # 2. The products inside the chunk.
        b_P = tl.dot(b_do, tl.trans(enter(b_v, OPERAND)), input_precision=PRECISION)
        if NORMALIZE and not FORM_DELTA:
            b_delta = load_tokens(p_delta, start, end, H, 0.0, C)
            b_P += b_delta[:, None]
        b_P = tl.where(m_A, b_P, 0.0)
        # δ_x takes out of do_x·v_y what it has of do_x·o_x: for the first tokens nearly all of
        # it. dk and dv take it from the exact product, so that δ has to know more of the product
        # than bf16 holds, or dk would be off by up to 5e-3.
        if FORM_DELTA and PRECISE:
            b_P, b_p = in_two(b_P, WIDE)
        else:
            b_P = enter(b_P, WIDE)
        # 3. The past through the state, the chunk through its products.
        b_c = enter(b_k, WIDE)
        if SPLIT_S:
            b_1, b_2 = in_two(b_S, WIDE)
            b_dq = tl.dot(b_do, b_1, input_precision=PRECISION)
            b_dq = tl.dot(b_do, b_2, b_dq, input_precision=PRECISION)
        else:
            b_dq = tl.dot(enter(b_do, WIDE), enter(b_S, WIDE), input_precision=PRECISION)
        b_dq = tl.dot(b_P, b_c, b_dq, input_precision=PRECISION)
        if FORM_DELTA and PRECISE:
            b_dq = tl.dot(b_p, b_c, b_dq, input_precision=PRECISION)
        if SPLIT:
            b_l = enter(b_k - b_c.to(tl.float32), WIDE)
            b_dq = tl.dot(b_P, b_l, b_dq, input_precision=PRECISION)
        if NORMALIZE:
            if FORM_DELTA:
                # do·num is q times its own gradient. Formed from the rounded sum itself, δ
                # takes out what rounding left along q, where the exact gradient has nothing.
                b_q = load_tile(p_q, start, end, s_qt, 0, K, MAP, C, BK)
                b_delta = -scale * b_r * tl.sum(b_q.to(tl.float32) * b_dq, axis=1)
                store_tokens(b_delta, p_delta, start, end, H, C)
                # δ in two parts, times the k of its past.
                b_1 = b_delta.to(tl.bfloat16).to(tl.float32)
                b_P = enter(tl.where(m_A, b_1[:, None], 0.0), WIDE)
                b_dq = tl.dot(b_P, b_c, b_dq, input_precision=PRECISION)
                if SPLIT:
                    b_dq = tl.dot(b_P, b_l, b_dq, input_precision=PRECISION)
                b_P = enter(tl.where(m_A, (b_delta - b_1)[:, None], 0.0), WIDE)
                b_dq = tl.dot(b_P, b_c, b_dq, input_precision=PRECISION)
            b_dq = (b_dq + b_delta[:, None] * b_z[None, :]) * (scale * b_r)[:, None]
        else:
            b_dq *= scale
        if MAP != "identity":
            b_x = load_tile(p_q, start, end, s_qt, i_k * BK, K, "identity", C, BK)
            b_dq *= slope(b_x.to(tl.float32), MAP)
        store_tile(b_dq, p_dq, start, end, H * K, i_k * BK, K, C, BK)
        # 4. The chunk enters the state.
        b_c, b_v = enter(b_k, ENTRY), enter(b_v, ENTRY)
        b_S += tl.dot(tl.trans(b_v), b_c, input_precision=PRECISION)
        if SPLIT:
            b_S += tl.dot(tl.trans(b_v), b_l, input_precision=PRECISION)
        if NORMALIZE:
            if FOLD:
                b_Z += tl.dot(tl.trans(b_c), b_ones, input_precision=PRECISION)
                if SPLIT:
                    b_Z += tl.dot(tl.trans(b_l), b_ones, input_precision=PRECISION)
            else:
                b_z += tl.sum(b_k.to(tl.float32), axis=0)


@triton.jit(do_not_specialize=["T", "N", "H", "L", "G", "reach"])
def dkv_kernel(
    p_q, p_k, p_v, p_do, p_dk, p_dv, p_den, p_delta, p_dS_T, p_dz_T, p_sums, p_dS, p_dz,
    s_qb, s_qt, s_qh, s_kb, s_kt, s_kh, s_vb, s_vt, s_vh, s_db, s_dt, s_dh,
    T, N, H, L, G, reach, scale, eps, K: tl.constexpr, V: tl.constexpr,
    DK: tl.constexpr, DV: tl.constexpr, NORMALIZE: tl.constexpr, MAP: tl.constexpr,
    LAST: tl.constexpr, LAST_Z: tl.constexpr,
    C: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
    OPERAND: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One segment of one head, backwards in time: dk, dv or both, from one state R [BK, BV].

    dk of BK features needs all values in BV, dv of BV values all features in BK.
    """
    n_k, n_v = tl.cdiv(K, BK), tl.cdiv(V, BV)
    pid = tl.program_id(0)
    i_v = pid % n_v
    i_k = pid // n_v % n_k
    i_g = pid // (n_k * n_v) % G
    i_bh = (pid // (n_k * n_v * G)).to(tl.int64)
    i_b, i_h = i_bh // H, i_bh % H
    p_q += i_b * s_qb + i_h * s_qh
    p_k += i_b * s_kb + i_h * s_kh
    p_v += i_b * s_vb + i_h * s_vh
    p_do += i_b * s_db + i_h * s_dh
    p_dk += (i_b * T * H + i_h) * K
    p_dv += (i_b * T * H + i_h) * V
    p_den += i_b * T * H + i_h
    p_delta += i_b * T * H + i_h
    begin = i_g * L
    end = tl.minimum(T, begin + L)
    n_c = tl.cdiv(end - begin, C)

    # 1. R and m after the segment: sum j is that of segment j + 1.
    o_k, o_v = i_k * BK + tl.arange(0, BK), i_v * BV + tl.arange(0, BV)
    m_k = o_k < K
    # FLIP: R^T in place of R. Wide values leave registers enough for dk only so.
    FLIP: tl.constexpr = not DV
    if FLIP:
        o_R = o_k[None, :] * V + o_v[:, None]
        m_R = m_k[None, :] & (o_v < V)[:, None]
    else:
        o_R = o_k[:, None] * V + o_v[None, :]
        m_R = m_k[:, None] & (o_v < V)[None, :]
    p_sums += i_bh * (K * V + K)
    last, step = tl.minimum(G - 1, i_g + reach), N.to(tl.int64) * (K * V + K)
    b_R = load_summed(p_sums, o_R, m_R, i_g, last, step)
    if LAST:
        b_R += tl.load(p_dS_T + i_bh * K * V + o_R, mask=m_R, other=0.0) / scale
    b_m = tl.zeros([BK], dtype=tl.float32)
    if DK and NORMALIZE:
        b_m += load_summed(p_sums + K * V, o_k, m_k, i_g, last, step)
    if DK and LAST_Z:
        b_m += tl.load(p_dz_T + i_bh * K + o_k, mask=m_k, other=0.0) / scale
    # FOLD: m as the sum of two of 16 columns, so that tensor cores form its sums.
    FOLD: tl.constexpr = DK and NORMALIZE and ((OPERAND == "bf16") or (OPERAND == "bf16 in fp32"))
    o_n = tl.arange(0, 16)[None, :]
    b_M = tl.where(o_n == 0, b_m[:, None], 0.0)
    # A chunk's φ(q) enters in two tiles: what rounding it once leaves is 2e-3 of dk, beside as
    # much each from the products and from dk itself.
    ROUNDS: tl.constexpr = (MAP != "identity") and (MAP != "relu")
    BF16: tl.constexpr = (WIDE == "bf16") or (WIDE == "bf16 in fp32")
    SPLIT: tl.constexpr = DK and ROUNDS and BF16

    o_y = tl.arange(0, C)
    m_A = o_y[:, None] <= o_y[None, :]
    for i in range(n_c):
        start = begin + (n_c - 1 - i) * C
        b_q = load_tile(p_q, start, end, s_qt, i_k * BK, K, MAP, C, BK)
        b_do = enter(load_tile(p_do, start, end, s_dt, i_v * BV, V, "identity", C, BV), OPERAND)
        if NORMALIZE:
            b_r = 1.0 / (load_tokens(p_den, start, end, H, 1.0, C) + eps)
        if DK and NORMALIZE:
            b_delta = load_tokens(p_delta, start, end, H, 0.0, C)
            if FOLD:
                b_m = tl.sum(tl.where(o_n < 2, b_M, 0.0), axis=1)
        if DV:
            # 2. dv. The weights r go on the products, which are rounded anyway.
            b_k = enter(load_tile(p_k, start, end, s_kt, i_k * BK, K, MAP, C, BK), OPERAND)
            b_A = tl.dot(b_k, tl.trans(enter(b_q, OPERAND)), input_precision=PRECISION)
            if NORMALIZE:
                b_A *= b_r[None, :]
            b_A = enter(tl.where(m_A, b_A, 0.0), WIDE)
            b_dv = tl.dot(enter(b_k, WIDE), enter(b_R, WIDE), input_precision=PRECISION)
            b_dv = tl.dot(b_A, enter(b_do, WIDE), b_dv, input_precision=PRECISION)
            store_tile(b_dv * scale, p_dv, start, end, H * V, i_v * BV, V, C, BV)
        if DK:
            # 3. dk.
            b_v = enter(load_tile(p_v, start, end, s_vt, i_v * BV, V, "identity", C, BV), OPERAND)
            b_P = tl.dot(b_v, tl.trans(b_do), input_precision=PRECISION)
            if NORMALIZE:
                b_P = (b_P + b_delta[None, :]) * b_r[None, :]
            b_P = enter(tl.where(m_A, b_P, 0.0), WIDE)
            if FLIP:
                b_RT = enter(b_R, WIDE)
            else:
                b_RT = tl.trans(enter(b_R, WIDE))
            b_dk = tl.dot(enter(b_v, WIDE), b_RT, input_precision=PRECISION)
            b_dk = tl.dot(b_P, enter(b_q, WIDE), b_dk, input_precision=PRECISION)
            if SPLIT:
                b_l = enter(b_q - enter(b_q, WIDE).to(tl.float32), WIDE)
                b_dk = tl.dot(b_P, b_l, b_dk, input_precision=PRECISION)
            if NORMALIZE or LAST_Z:
                b_dk += b_m[None, :]
            b_dk *= scale
            if MAP != "identity":
                b_x = load_tile(p_k, start, end, s_kt, i_k * BK, K, "identity", C, BK)
                b_dk *= slope(b_x.to(tl.float32), MAP)
            store_tile(b_dk, p_dk, start, end, H * K, i_k * BK, K, C, BK)
        # 4. The chunk enters R.
        if NORMALIZE:
            # r goes on the narrower tile; on φ(q) it is rounded together with the map.
            if BK <= BV:
                b_t, b_w = enter(b_q.to(tl.float32) * b_r[:, None], WIDE), enter(b_do, WIDE)
            else:
                b_t, b_w = enter(b_q, WIDE), enter(b_do.to(tl.float32) * b_r[:, None], WIDE)
            if FLIP:
                b_R += tl.dot(tl.trans(b_w), b_t, input_precision=PRECISION)
            else:
                b_R += tl.dot(tl.trans(b_t), b_w, input_precision=PRECISION)
            if FOLD:
                b_1, b_2 = in_two(b_delta if BK <= BV else b_delta * b_r, WIDE)
                b_d = tl.where(o_n == 0, b_1[:, None], b_2[:, None])
                b_M += tl.dot(tl.trans(b_t), b_d, input_precision=PRECISION)
            elif DK:
                b_m += tl.sum(b_q.to(tl.float32) * (b_delta * b_r)[:, None], axis=0)
        elif FLIP:
            b_R += tl.dot(tl.trans(b_do), enter(b_q, OPERAND), input_precision=PRECISION)
        else:
            b_R += tl.dot(tl.trans(enter(b_q, OPERAND)), b_do, input_precision=PRECISION)

    if i_g == 0:
        if DV:
            tl.store(p_dS + i_bh * K * V + o_R, b_R * scale, mask=m_R)
        if DK:
            if FOLD:
                b_m = tl.sum(tl.where(o_n < 2, b_M, 0.0), axis=1)
            tl.store(p_dz + i_bh * K + o_k, b_m * scale, mask=m_k)


def run_dq(
    problem: Problem, out: Outputs, do: Tensor, delta: Tensor | None, grads: Gradients, plan: Plan
) -> None:
    """Launch dq_kernel; where the plan says so, it fills delta too."""
    B, T, H, K, V = problem.sizes
    q, k, v, like, launch = problem.q, problem.k, problem.v, out.S_T, plan.dq
    dq_kernel[(triton.cdiv(K, launch.BK) * plan.G * B * H,)](
        q, k, v, do, grads.dq, out.den, pointer(delta, out.den),
        pointer(problem.S, like), pointer(problem.z, like), out.states,
        *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *do.stride()[:3],
        T, B * H, H, plan.L, plan.G, plan.reach, problem.scale, problem.eps, K, V,
        problem.normalize, plan.form_delta, problem.feature_map,
        problem.S is not None, problem.z is not None,
        launch.C, launch.BK, launch.BV, *launch.kinds,
        num_warps=launch.num_warps, num_stages=launch.num_stages,
    )  # fmt: skip


def run_dkv(
    problem: Problem, out: Outputs, do: Tensor, dS: Tensor | None, dz: Tensor | None,
    delta: Tensor | None, sums: Tensor, grads: Gradients, plan: Plan, launch: Launch,
    dk: bool, dv: bool,
) -> None:  # fmt: skip
    """Launch dkv_kernel for dk, dv or both. sums: what segments add to R and m."""
    B, T, H, K, V = problem.sizes
    q, k, v, like = problem.q, problem.k, problem.v, out.S_T
    blocks = triton.cdiv(K, launch.BK) * triton.cdiv(V, launch.BV)
    dkv_kernel[(blocks * plan.G * B * H,)](
        q, k, v, do, grads.dk, grads.dv, out.den, pointer(delta, out.den),
        pointer(dS, like), pointer(dz, like), sums, grads.dS, grads.dz,
        *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *do.stride()[:3],
        T, B * H, H, plan.L, plan.G, plan.reach, problem.scale, problem.eps, K, V,
        dk, dv, problem.normalize, problem.feature_map, dS is not None, dz is not None,
        launch.C, launch.BK, launch.BV, *launch.kinds,
        num_warps=launch.num_warps, num_stages=launch.num_stages,
    )  # fmt: skip
