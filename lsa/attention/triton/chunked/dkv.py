"""Chunked mode's gradients: a pass forwards for dq (dq.py), one or two backwards for dk and dv.

With r = 1 / n, δ_x = -do_x·o_x (r = 1 and δ = 0 if nothing is normalised), and the states S, z
before a chunk and R, m after it,

    dq_x = scale r_x [ S do_x + sum_{chunk, y<=x} (do_x·v_y) φ(k_y) + δ_x z_x ] φ'(q_x)
    dk_y = scale [ R v_y + sum_{chunk, x>=y} r_x (v_y·do_x + δ_x) φ(q_x) + m ] φ'(k_y)
    dv_y = scale [ R^T φ(k_y) + sum_{chunk, x>=y} r_x (φ(k_y)·φ(q_x)) do_x ]
    R <- R + sum_{chunk} r_x φ(q_x) do_x^T        m <- m + sum_{chunk} r_x δ_x φ(q_x)

With decay (arguments.prefixes) every term is multiplied by its decay: products inside a chunk by
w_xy, S and z by the decay up to x, R and m by that from y to the end of the chunk, new terms of S
or R likewise. dg.py has the gradient of g.

R and m run backwards in time. They start at the gradients of the returned state over scale. After
the first token they are the gradient of the initial state.

Per token and head, K = V = D, in bf16:
dq: 8 D bytes (10 D normalised) and 4 C D + 4 D^2 FLOPs, 4 C D more if it forms δ.
dk and dv together: 12 D bytes and 8 C D + 6 D^2 FLOPs.
dk and dv apart: 8 D bytes and 4 C D + 4 D^2 FLOPs each.
R is the same for both. Together, a program holds all of R; apart, a block of it. They run apart
past 128 features, where R needs too many registers, and if heads are few, which makes too few
programs.
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
)
from ..tuning.plan import KEPT, Launch, Plan


@triton.jit(do_not_specialize=["T", "N", "H", "L", "G", "reach", "s_Gb"])
def dkv_kernel(
    p_q, p_k, p_v, p_do, p_dk, p_dv, p_den, p_delta, p_dS_T, p_dz_T, p_sums, p_dS, p_dz,
    s_qb, s_qt, s_qh, s_kb, s_kt, s_kh, s_vb, s_vt, s_vh, s_db, s_dt, s_dh,
    T, N, H, L, G, reach, scale, eps, p_G, s_Gb, p_kept, K: tl.constexpr, V: tl.constexpr,
    DK: tl.constexpr, DV: tl.constexpr, NORMALIZE: tl.constexpr, MAP: tl.constexpr,
    LAST: tl.constexpr, LAST_Z: tl.constexpr,
    DECAY: tl.constexpr, KEEP: tl.constexpr, KEPT: tl.constexpr,
    C: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
    OPERAND: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One segment of one head, backwards in time: dk, dv or both, from one state R [BK, BV].

    dk of BK features needs all values in BV, dv of BV values all features in BK.
    KEEP: store R and m after every KEPT tokens.
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
    # FLIP: R^T in place of R. With wide values, only this leaves enough registers for dk.
    FLIP: tl.constexpr = not DV
    if FLIP:
        o_R = o_k[None, :] * V + o_v[:, None]
        m_R = m_k[None, :] & (o_v < V)[:, None]
    else:
        o_R = o_k[:, None] * V + o_v[None, :]
        m_R = m_k[:, None] & (o_v < V)[None, :]
    p_sums += i_bh * (K * V + K)
    last, step = tl.minimum(G - 1, i_g + reach), N.to(tl.int64) * (K * V + K)
    if DECAY:
        p_G += i_b * s_Gb + i_h * 2
        left = left_between(p_G, end, T, H)
    b_R = tl.zeros(o_R.shape, dtype=tl.float32)
    if LAST:
        # Loaded first: a whole R, its sum and the terms added to it would not fit in registers.
        b_R = tl.load(p_dS_T + i_bh * K * V + o_R, mask=m_R, other=0.0) / scale
        if DECAY:
            b_R *= left
    b_R = load_summed(p_sums, o_R, m_R, i_g, last, step, p_G, end, H, L, DECAY, True, b_R)
    b_m = tl.zeros([BK], dtype=tl.float32)
    # CONSTANT: m is the same for all tokens. Loaded again for each chunk, it takes no registers.
    CONSTANT: tl.constexpr = not NORMALIZE and not DECAY and (MAP == "identity")
    if DK and NORMALIZE:
        b_m += load_summed(p_sums + K * V, o_k, m_k, i_g, last, step, p_G, end, H, L, DECAY, True)
    if DK and LAST_Z and not CONSTANT:
        b_last = tl.load(p_dz_T + i_bh * K + o_k, mask=m_k, other=0.0) / scale
        b_m += b_last * left if DECAY else b_last
    if KEEP:
        p_kept += i_bh * (K * V + K)
    # FOLD: m as the sum of two of 16 columns, so that tensor cores form its sums.
    FOLD: tl.constexpr = DK and NORMALIZE and ((OPERAND == "bf16") or (OPERAND == "bf16 in fp32"))
    o_n = tl.arange(0, 16)[None, :]
    b_M = tl.where(o_n == 0, b_m[:, None], 0.0)
    # φ(q) of a chunk enters in two tiles. Rounding it once costs 2e-3 of dk, as much as rounding
    # the products, and as rounding dk itself.
    ROUNDS: tl.constexpr = (MAP != "identity") and (MAP != "relu")
    BF16: tl.constexpr = (WIDE == "bf16") or (WIDE == "bf16 in fp32")
    SPLIT: tl.constexpr = DK and ROUNDS and BF16
    # In sums over tokens the rounding errors of φ(k) average out. The part of dv from the gradient
    # of the returned state is no such sum, so there φ(k) enters in two tiles. So does r φ(q) in an
    # m that decays, most of which comes from a few tokens.
    SPLIT_R: tl.constexpr = DV and LAST and ROUNDS and BF16
    SPLIT_M: tl.constexpr = FOLD and DECAY

    o_y = tl.arange(0, C)
    m_A = o_y[:, None] <= o_y[None, :]
    for i in range(n_c):
        start = begin + (n_c - 1 - i) * C
        b_q = load_tile(p_q, start, end, s_qt, i_k * BK, K, MAP, C, BK)
        b_do = enter(load_tile(p_do, start, end, s_dt, i_v * BV, V, "identity", C, BV), OPERAND)
        if NORMALIZE:
            b_r = 1.0 / (load_tokens(p_den, start, end, H, 1.0, C) + eps)
        if DECAY:
            b_G, b_g, since, until, left = load_decay(p_G, start, end, H, C)
        if DK and NORMALIZE:
            b_delta = load_tokens(p_delta, start, end, H, 0.0, C)
            if FOLD:
                b_m = tl.sum(tl.where(o_n < 2, b_M, 0.0), axis=1)
        if KEEP and ((start + C) % KEPT == 0 or start + C >= T):
            p_n = p_kept + (start // KEPT) * step
            tl.store(p_n + o_R, b_R, mask=m_R)
            tl.store(p_n + K * V + o_k, b_m, mask=m_k)
        if DV:
            # 2. dv. The weights r multiply the products, which are rounded anyway.
            b_f = load_tile(p_k, start, end, s_kt, i_k * BK, K, MAP, C, BK)
            b_k = enter(b_f, OPERAND)
            b_A = tl.dot(b_k, tl.trans(enter(b_q, OPERAND)), input_precision=PRECISION)
            if NORMALIZE:
                b_A *= b_r[None, :]
            if DECAY:
                b_A *= between(b_G, b_g, m_A, True, OPERAND)
            else:
                b_A = tl.where(m_A, b_A, 0.0)
            b_A = enter(b_A, WIDE)
            b_dv = tl.dot(enter(b_k, WIDE), enter(b_R, WIDE), input_precision=PRECISION)
            if SPLIT_R:
                b_f = enter(b_f - b_k.to(tl.float32), WIDE)
                b_dv = tl.dot(b_f, enter(b_R, WIDE), b_dv, input_precision=PRECISION)
            if DECAY:
                b_dv *= until[:, None]
            b_dv = tl.dot(b_A, enter(b_do, WIDE), b_dv, input_precision=PRECISION)
            store_tile(b_dv * scale, p_dv, start, end, H * V, i_v * BV, V, C, BV)
        if DK:
            # 3. dk.
            b_v = enter(load_tile(p_v, start, end, s_vt, i_v * BV, V, "identity", C, BV), OPERAND)
            b_P = tl.dot(b_v, tl.trans(b_do), input_precision=PRECISION)
            if NORMALIZE:
                b_P = (b_P + b_delta[None, :]) * b_r[None, :]
            if DECAY:
                b_P *= between(b_G, b_g, m_A, True, OPERAND)
            else:
                b_P = tl.where(m_A, b_P, 0.0)
            b_P = enter(b_P, WIDE)
            if FLIP:
                b_RT = enter(b_R, WIDE)
            else:
                b_RT = tl.trans(enter(b_R, WIDE))
            b_dk = tl.dot(enter(b_v, WIDE), b_RT, input_precision=PRECISION)
            if DECAY:
                b_dk *= until[:, None]
            b_dk = tl.dot(b_P, enter(b_q, WIDE), b_dk, input_precision=PRECISION)
            if SPLIT:
                b_l = enter(b_q - enter(b_q, WIDE).to(tl.float32), WIDE)
                b_dk = tl.dot(b_P, b_l, b_dk, input_precision=PRECISION)
            if NORMALIZE or (LAST_Z and not CONSTANT):
                b_dk += until[:, None] * b_m[None, :] if DECAY else b_m[None, :]
            b_dk *= scale
            if LAST_Z and CONSTANT:
                b_t = tl.load(p_dz_T + i_bh * K + o_k, mask=m_k, other=0.0, volatile=True)
                b_dk += b_t[None, :]
            if MAP != "identity":
                b_x = load_tile(p_k, start, end, s_kt, i_k * BK, K, "identity", C, BK)
                b_dk *= slope(b_x.to(tl.float32), MAP)
            store_tile(b_dk, p_dk, start, end, H * K, i_k * BK, K, C, BK)
        # 4. The chunk enters R.
        if DECAY:
            b_R *= left
            b_m *= left
            b_M *= left
        if NORMALIZE:
            if DECAY:
                b_r *= since
            # r multiplies the narrower tile; on φ(q) it is rounded together with the map.
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
                if SPLIT_M:
                    b_f = b_q.to(tl.float32) * b_r[:, None] if BK <= BV else b_q.to(tl.float32)
                    b_l = enter(b_f - b_t.to(tl.float32), WIDE)
                    b_M += tl.dot(tl.trans(b_l), b_d, input_precision=PRECISION)
            elif DK:
                b_m += tl.sum(b_q.to(tl.float32) * (b_delta * b_r)[:, None], axis=0)
        elif FLIP:
            if DECAY:
                b_q = b_q.to(tl.float32) * since[:, None]
            b_R += tl.dot(tl.trans(b_do), enter(b_q, OPERAND), input_precision=PRECISION)
        else:
            if DECAY:
                b_q = b_q.to(tl.float32) * since[:, None]
            b_R += tl.dot(tl.trans(enter(b_q, OPERAND)), b_do, input_precision=PRECISION)

    if i_g == 0:
        if DV:
            tl.store(p_dS + i_bh * K * V + o_R, b_R * scale, mask=m_R)
        if DK:
            if FOLD:
                b_m = tl.sum(tl.where(o_n < 2, b_M, 0.0), axis=1)
            b_m *= scale
            if LAST_Z and CONSTANT:
                b_m = tl.load(p_dz_T + i_bh * K + o_k, mask=m_k, other=0.0)
            tl.store(p_dz + i_bh * K + o_k, b_m, mask=m_k)


def run_dkv(
    call: Call, out: Saved, do: Tensor, dS: Tensor | None, dz: Tensor | None,
    delta: Tensor | None, sums: Tensor, grads: Grads, plan: Plan, launch: Launch,
    dk: bool, dv: bool, G: Tensor | None = None, kept: Tensor | None = None,
) -> None:  # fmt: skip
    """Launch dkv_kernel for dk, dv or both. sums: what segments add to R and m.

    G: arguments.prefixes. kept: memory for R and m; see dg.py.
    """
    B, T, H, K, V = call.sizes
    q, k, v, like = call.q, call.k, call.v, out.S_T
    G, s_Gb, decay = faded(G, like)
    blocks = -(-K // launch.BK) * -(-V // launch.BV)
    dkv_kernel[(blocks * plan.G * B * H,)](
        q, k, v, do, grads.dk, grads.dv, out.den, pointer(delta, out.den),
        pointer(dS, like), pointer(dz, like), sums, grads.dS, grads.dz,
        *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *do.stride()[:3],
        T, B * H, H, plan.L, plan.G, plan.reach, call.scale, call.eps,
        G, s_Gb, pointer(kept, like), K, V,
        dk, dv, call.normalize, call.feature_map, dS is not None, dz is not None,
        decay, kept is not None, KEPT,
        launch.C, launch.BK, launch.BV, *launch.kinds,
        num_warps=launch.num_warps, num_stages=launch.num_stages,
    )  # fmt: skip
