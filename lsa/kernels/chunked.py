"""Chunked mode: attention inside chunks of C tokens, a state that stays on chip between them.

With S and z before a chunk, for the tokens i of the chunk,

    o_i = scale / n_i [ φ(q_i) S + sum_{chunk, j<=i} (φ(q_i)·φ(k_j)) v_j ]
    n_i = scale [ φ(q_i)·z + sum_{chunk, j<=i} φ(q_i)·φ(k_j) ] + eps        (or 1)
    S <- S + sum_{chunk} φ(k_j) v_j^T        z <- z + sum_{chunk} φ(k_j)

Bytes. The mode is bound by memory: at D = K = V = 128 and C = 64, in bf16, 4 C D + 4 D^2 = 98 k
FLOPs meet 8 D = 1 k bytes a token and head, below the 200 to 300 FLOPs a byte where Hopper's
tensor cores would be the limit. What can be chosen is how often memory is gone through:

    design                              forward          with gradients      programs
    least possible                      8 D              22 D
    states of every chunk stored        12 D + 4 D^2/C   40 D + 24 D^2/C     B H T / C
    G segments, three passes back (1)   8 D + 4 D g      32 D + 8 D g        B H G D / BD
    G segments, one pass back (2)       8 D + 4 D g      22 D + 8 D g        B H G

with g = (G - 1) / G: the segments but one are first summed (k and v, or q and do, alone), a scan
over G states of 4 (K V + K) bytes a head makes the state before each, and one pass per segment
carries it along on chip. With G = 1 there is nothing to sum: 8 D. Few heads leave most of a GPU
idle at G = 1, so `segments` weighs idle multiprocessors against the 8 D g. The states of (1) and
(2) come on top: each is written or read 4 times forwards, and 6 or 5 times more backwards. Over a
long sequence that is nothing; at T = 1024 and D = 64 it can be as much as 8 D, though few enough
bytes in all to stay in the L2 cache. `lsa.cost.design_cost` counts both.

(2) keeps S^T and R^T [V, K] of kernels/shared.py on chip together and needs neither chunk states
nor a second forward pass: walking back, S before a chunk is S after it less what the chunk had
added, in float32 and for no more than LONGEST_RECOVERED tokens. Both states and the products of
a chunk have to fit in registers: up to 64 x 64 without a normaliser (with a map, or a gradient
of the last state, up to 48 bytes a thread do not). Everything else takes (1), one launch of
pass_kernel for each of dq, dk and dv; normalised, its dq reads q too (2 D). Normalised features
past 128 (on Ampere past 64 if they are mapped) need o unrounded: stored in float32 and rounded
after, 8 D more forwards, 6 D backwards.

C = 64 fills wgmma's 64 rows with four warps; 128 would double the products inside chunks, and
their registers, to save nothing that memory notices. The output's features are split into blocks
of 64 (BD), programs of one head side by side, so that q and k come from the L2 cache the second
time. Where that would spill registers, chunks or blocks are smaller (`pass_launch`). The
normaliser adds 4 bytes a token (den) and a row sum to the forward pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
import triton
import triton.language as tl
from torch import Tensor

from .segments import LONGEST_RECOVERED, segments
from .shared import (
    Gradients,
    Outputs,
    Precision,
    Problem,
    Role,
    arithmetic_fits,
    block,
    dk_role,
    dq_role,
    dv_role,
    empty_gradients,
    empty_outputs,
    enter,
    forward_role,
    large,
    load_tile,
    load_tokens,
    multiprocessors,
    output_delta,
    pointer,
    prepare,
    rounded_gradients,
    rounded_outputs,
    segment_sums,
    slope,
    store_tile,
    store_tokens,
)


@triton.jit(do_not_specialize=["T", "N", "H", "L", "G"])
def pass_kernel(
    p_a, p_b, p_c, p_raw, p_out, p_den, p_delta, p_first, p_first_z, p_between, p_last, p_last_z,
    s_ab, s_at, s_ah, s_ad,
    s_bb, s_bt, s_bh, s_bd,
    s_cb, s_ct, s_ch, s_cd,
    s_rb, s_rt, s_rh, s_rd,
    s_ob, s_ot, s_oh, s_od,
    s_ma, s_mc, s_la, s_lc, first_factor, last_factor,
    T, N, H, L, G, scale, eps, A: tl.constexpr, D: tl.constexpr,
    ROLE: tl.constexpr, NORMALIZE: tl.constexpr, WITH_Z: tl.constexpr,
    MAP_A: tl.constexpr, MAP_B: tl.constexpr, MAP_C: tl.constexpr, SLOPE: tl.constexpr,
    FORM_DELTA: tl.constexpr, FOLD: tl.constexpr,
    FIRST: tl.constexpr, FIRST_Z: tl.constexpr, LAST: tl.constexpr, LAST_Z: tl.constexpr,
    C: tl.constexpr, BA: tl.constexpr, BD: tl.constexpr,
    OPERAND: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One segment of one head, BD features of the output: chunk by chunk, the state on chip."""
    REVERSE: tl.constexpr = (ROLE == "dk") or (ROLE == "dv")
    n_d = tl.cdiv(D, BD)
    pid = tl.program_id(0)
    i_d = pid % n_d
    i_g = pid // n_d % G
    i_bh = (pid // (n_d * G)).to(tl.int64)
    i_b, i_h = i_bh // H, i_bh % H
    p_a += i_b * s_ab + i_h * s_ah
    p_b += i_b * s_bb + i_h * s_bh
    p_c += i_b * s_cb + i_h * s_ch
    p_raw += i_b * s_rb + i_h * s_rh
    p_out += i_b * s_ob + i_h * s_oh
    p_den += i_b * T * H + i_h
    p_delta += i_b * T * H + i_h
    begin = i_g * L
    end = tl.minimum(T, begin + L)
    n_c = tl.cdiv(end - begin, C)

    # 1. The state before the segment: M [A, D] and, where the role has one, its vector.
    o_a = tl.arange(0, BA)
    o_d = i_d * BD + tl.arange(0, BD)
    m_a, m_d = o_a < A, o_d < D
    m_M = m_a[:, None] & m_d[None, :]
    o_M = o_a[:, None] * s_ma + o_d[None, :] * s_mc
    b_M = tl.zeros([BA, BD], dtype=tl.float32)
    # Over a's features in role o (the normaliser z), over c's in roles dq and dk.
    b_z = tl.zeros([BA], dtype=tl.float32)
    b_m = tl.zeros([BD], dtype=tl.float32)
    b_ones = enter(tl.full([C, 16], 1.0, dtype=tl.float32), OPERAND)
    o_n = tl.arange(0, 16)[None, :]
    if REVERSE:
        i_order = G - 1 - i_g
        i_state = i_g
    else:
        i_order = i_g
        i_state = i_g - 1
    if i_order == 0:
        if FIRST:
            b_M += tl.load(p_first + i_bh * A * D + o_M, mask=m_M, other=0.0) * first_factor
        if FIRST_Z and ROLE == "o":
            b_z += tl.load(p_first_z + i_bh * A + o_a, mask=m_a, other=0.0) * first_factor
        if FIRST_Z and (ROLE == "dq" or ROLE == "dk"):
            b_m += tl.load(p_first_z + i_bh * D + o_d, mask=m_d, other=0.0) * first_factor
    else:
        if ROLE == "o" or ROLE == "dv":
            SIZE = A * D + A
        else:
            SIZE = A * D + D
        p_between += (i_state.to(tl.int64) * N + i_bh) * SIZE
        b_M += tl.load(p_between + o_M, mask=m_M, other=0.0)
        if WITH_Z and ROLE == "o":
            b_z += tl.load(p_between + A * D + o_a, mask=m_a, other=0.0)
        if WITH_Z and (ROLE == "dq" or ROLE == "dk"):
            b_m += tl.load(p_between + A * D + o_d, mask=m_d, other=0.0)

    # FOLD: the vectors as 16 columns, so that tensor cores form their sums and no tile has to be
    # spread over registers for it: z in each, m as the sum of the first PARTS.
    PARTS: tl.constexpr = 2 if ROLE == "dk" else 1
    b_Z = b_z[:, None] + tl.zeros([BA, 16], dtype=tl.float32)
    b_Y = tl.where(o_n == 0, b_m[:, None], 0.0)

    o_x = tl.arange(0, C)
    if REVERSE:
        m_A = o_x[:, None] <= o_x[None, :]
    else:
        m_A = o_x[:, None] >= o_x[None, :]
    # Normalising takes the mean out of φ(k) again, and with it most of what a map has added, but
    # not what rounding φ(k) has left. So dq takes what bf16 cuts off as a second tile, or forms
    # all of its products in tf32.
    PRECISE: tl.constexpr = (ROLE == "dq") and NORMALIZE and FOLD
    SPLIT: tl.constexpr = PRECISE and (MAP_C != "identity") and (WIDE != "tf32")
    ENTRY: tl.constexpr = WIDE if PRECISE else OPERAND
    for i in range(n_c):
        if REVERSE:
            start = begin + (n_c - 1 - i) * C
        else:
            start = begin + i * C
        b_a = enter(load_tile(p_a, start, end, s_at, s_ad, 0, A, MAP_A, C, BA), OPERAND)
        b_b = load_tile(p_b, start, end, s_bt, s_bd, 0, A, MAP_B, C, BA)
        b_c = load_tile(p_c, start, end, s_ct, s_cd, i_d * BD, D, MAP_C, C, BD)
        # 2. The products inside the chunk.
        b_A = tl.dot(b_a, tl.trans(enter(b_b, OPERAND)), input_precision=PRECISION)
        if ROLE == "dq" and NORMALIZE and not FORM_DELTA:
            b_delta = load_tokens(p_delta, start, end, H, 0.0, C)
            b_A += b_delta[:, None]
        if NORMALIZE and ROLE != "o":
            b_r = 1.0 / (load_tokens(p_den, start, end, H, 1.0, C) + eps)
        if ROLE == "dk" and NORMALIZE:
            b_delta = load_tokens(p_delta, start, end, H, 0.0, C)
            b_A += b_delta[None, :]
        if REVERSE and NORMALIZE:
            # On the products, which are rounded anyway, and not on c.
            b_A *= b_r[None, :]
        b_A = tl.where(m_A, b_A, 0.0)
        # 3. The past through the state, the chunk through its products.
        b_o = tl.dot(enter(b_a, WIDE), enter(b_M, WIDE), input_precision=PRECISION)
        b_o = tl.dot(enter(b_A, WIDE), enter(b_c, WIDE), b_o, input_precision=PRECISION)
        if SPLIT:
            b_l = enter(b_c - enter(b_c, WIDE).to(tl.float32), WIDE)
            b_o = tl.dot(enter(b_A, WIDE), b_l, b_o, input_precision=PRECISION)
        if ROLE == "o" and NORMALIZE:
            if FOLD:
                # Three columns of bf16 hold the 24 bits of a float32 z.
                b_1 = b_Z.to(tl.bfloat16).to(tl.float32)
                b_2 = (b_Z - b_1).to(tl.bfloat16).to(tl.float32)
                b_3 = tl.where(o_n == 2, b_Z - b_1 - b_2, 0.0)
                b_3 = tl.where(o_n == 1, b_2, b_3)
                b_3 = tl.where(o_n == 0, b_1, b_3)
                b_n = tl.sum(tl.dot(b_a, enter(b_3, OPERAND), input_precision=PRECISION), axis=1)
            else:
                b_n = tl.sum(b_a.to(tl.float32) * b_z[None, :], axis=1)
            b_n = scale * (b_n + tl.sum(b_A, axis=1))
            if i_d == 0:
                store_tokens(b_n, p_den, start, end, H, C)
            b_o *= (scale / (b_n + eps))[:, None]
        else:
            if ROLE == "dq" and NORMALIZE and FORM_DELTA:
                # do·num is q times its own gradient. Formed from the rounded sum itself, δ
                # takes out what rounding left along q, where the exact gradient has nothing.
                b_q = load_tile(p_raw, start, end, s_rt, s_rd, 0, D, MAP_C, C, BD)
                b_delta = -scale * b_r * tl.sum(b_q.to(tl.float32) * b_o, axis=1)
                store_tokens(b_delta, p_delta, start, end, H, C)
                # δ in two parts of bf16, times the k of its past.
                b_1 = b_delta.to(tl.bfloat16).to(tl.float32)
                b_A = enter(tl.where(m_A, b_1[:, None], 0.0), WIDE)
                b_o = tl.dot(b_A, enter(b_c, WIDE), b_o, input_precision=PRECISION)
                if SPLIT:
                    b_o = tl.dot(b_A, b_l, b_o, input_precision=PRECISION)
                b_A = enter(tl.where(m_A, (b_delta - b_1)[:, None], 0.0), WIDE)
                b_o = tl.dot(b_A, enter(b_c, WIDE), b_o, input_precision=PRECISION)
            if FOLD and (ROLE == "dq" or ROLE == "dk"):
                b_m = tl.sum(tl.where(o_n < PARTS, b_Y, 0.0), axis=1)
            if ROLE == "dk" and WITH_Z:
                b_o += b_m[None, :]
            if ROLE == "dq" and NORMALIZE:
                b_o = (b_o + b_delta[:, None] * b_m[None, :]) * (scale * b_r)[:, None]
            else:
                b_o *= scale
        if SLOPE != "identity":
            b_raw = load_tile(p_raw, start, end, s_rt, s_rd, i_d * BD, D, "identity", C, BD)
            b_o *= slope(b_raw.to(tl.float32), SLOPE)
        store_tile(b_o, p_out, start, end, s_ot, s_od, i_d * BD, D, C, BD)
        # 4. The chunk enters the state.
        if REVERSE and NORMALIZE:
            b_c = enter(b_c.to(tl.float32) * b_r[:, None], WIDE)
            b_M += tl.dot(tl.trans(enter(b_b, WIDE)), b_c, input_precision=PRECISION)
            if ROLE == "dk" and FOLD:
                b_1 = b_delta.to(tl.bfloat16).to(tl.float32)
                b_2 = tl.where(o_n == 0, b_1[:, None], (b_delta - b_1)[:, None])
                b_Y += tl.dot(tl.trans(b_c), enter(b_2, WIDE), input_precision=PRECISION)
            elif ROLE == "dk":
                b_m += tl.sum(b_c.to(tl.float32) * b_delta[:, None], axis=0)
        else:
            b_c = enter(b_c, ENTRY)
            b_M += tl.dot(tl.trans(enter(b_b, ENTRY)), b_c, input_precision=PRECISION)
            if SPLIT:
                b_M += tl.dot(tl.trans(enter(b_b, ENTRY)), b_l, input_precision=PRECISION)
            if ROLE == "o" and WITH_Z and FOLD:
                b_Z += tl.dot(tl.trans(enter(b_b, OPERAND)), b_ones, input_precision=PRECISION)
            elif ROLE == "o" and WITH_Z:
                b_z += tl.sum(b_b.to(tl.float32), axis=0)
            if ROLE == "dq" and NORMALIZE and FOLD:
                b_Y += tl.dot(tl.trans(b_c), enter(b_ones, ENTRY), input_precision=PRECISION)
                if SPLIT:
                    b_Y += tl.dot(tl.trans(b_l), b_ones, input_precision=PRECISION)
            elif ROLE == "dq" and NORMALIZE:
                b_m += tl.sum(b_c.to(tl.float32), axis=0)

    if i_order == G - 1:
        if LAST:
            # The strides come twice so that no offset of the beginning is kept for the end.
            o_L = o_a[:, None] * s_la + o_d[None, :] * s_lc
            tl.store(p_last + i_bh * A * D + o_L, b_M * last_factor, mask=m_M)
        if LAST_Z and ROLE == "o":
            if FOLD:
                b_z = tl.sum(tl.where(o_n == 0, b_Z, 0.0), axis=1)
            tl.store(p_last_z + i_bh * A + o_a, b_z * last_factor, mask=m_a & (i_d == 0))
        if LAST_Z and ROLE == "dk":
            if FOLD:
                b_m = tl.sum(tl.where(o_n < PARTS, b_Y, 0.0), axis=1)
            tl.store(p_last_z + i_bh * D + o_d, b_m * last_factor, mask=m_d)


@triton.jit(do_not_specialize=["T", "N", "H", "L", "G"])
def backward_kernel(
    p_q, p_k, p_v, p_do, p_dq, p_dk, p_dv, p_den,
    p_S, p_z, p_states, p_dS_T, p_dz_T, p_R, p_dS, p_dz,
    s_qb, s_qt, s_qh, s_qd,
    s_kb, s_kt, s_kh, s_kd,
    s_vb, s_vt, s_vh, s_vd,
    s_db, s_dt, s_dh, s_dd,
    T, N, H, L, G, scale, eps, K: tl.constexpr, V: tl.constexpr,
    NORMALIZE: tl.constexpr, MAP: tl.constexpr,
    LAST_S: tl.constexpr, LAST_Z: tl.constexpr,
    C: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
    OPERAND: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """All three gradients of one segment of one head, from its last chunk to its first.

    S^T and R^T [V, K] stay on chip. S is not stored while going forwards: it is known after the
    segment, and leaving a chunk takes away what the chunk had added. No product takes the
    transpose of another one as its left factor: where that would be needed, the transposed
    product is formed from the inputs (v·do^T beside do·v^T) or the result is (dv^T).
    """
    pid = tl.program_id(0)
    i_g = pid % G
    i_bh = (pid // G).to(tl.int64)
    i_b, i_h = i_bh // H, i_bh % H
    p_q += i_b * s_qb + i_h * s_qh
    p_k += i_b * s_kb + i_h * s_kh
    p_v += i_b * s_vb + i_h * s_vh
    p_do += i_b * s_db + i_h * s_dh
    p_den += i_b * T * H + i_h
    p_dq += (i_b * T * H + i_h) * K
    p_dk += (i_b * T * H + i_h) * K
    p_dv += (i_b * T * H + i_h) * V
    begin = i_g * L
    end = tl.minimum(T, begin + L)
    n_c = tl.cdiv(end - begin, C)

    # 1. The states at the segment's end.
    o_k, o_v = tl.arange(0, BK), tl.arange(0, BV)
    m_k = o_k < K
    m_M = (o_v[:, None] < V) & m_k[None, :]
    o_M = o_v[:, None] + o_k[None, :] * V
    b_S = tl.zeros([BV, BK], dtype=tl.float32)
    b_R = tl.zeros([BV, BK], dtype=tl.float32)
    b_z = tl.zeros([BK], dtype=tl.float32)
    b_m = tl.zeros([BK], dtype=tl.float32)
    if i_g == G - 1:
        b_S += tl.load(p_S + i_bh * K * V + o_M, mask=m_M, other=0.0)
        if NORMALIZE:
            b_z += tl.load(p_z + i_bh * K + o_k, mask=m_k, other=0.0)
        if LAST_S:
            b_R += tl.load(p_dS_T + i_bh * K * V + o_M, mask=m_M, other=0.0) / scale
        if LAST_Z:
            b_m += tl.load(p_dz_T + i_bh * K + o_k, mask=m_k, other=0.0) / scale
    else:
        i_state = (i_g.to(tl.int64) * N + i_bh) * (K * V + K)
        b_R += tl.load(p_R + i_state + o_M, mask=m_M, other=0.0)
        b_S += tl.load(p_states + i_state + o_M, mask=m_M, other=0.0)
        if NORMALIZE:
            b_z += tl.load(p_states + i_state + K * V + o_k, mask=m_k, other=0.0)
        if NORMALIZE or LAST_Z:
            b_m += tl.load(p_R + i_state + K * V + o_k, mask=m_k, other=0.0)

    o_x = tl.arange(0, C)
    m_A = o_x[:, None] >= o_x[None, :]
    m_AT = o_x[:, None] <= o_x[None, :]
    for i in range(n_c):
        start = begin + (n_c - 1 - i) * C
        b_q = enter(load_tile(p_q, start, end, s_qt, s_qd, 0, K, MAP, C, BK), OPERAND)
        b_k = enter(load_tile(p_k, start, end, s_kt, s_kd, 0, K, MAP, C, BK), OPERAND)
        b_v = enter(load_tile(p_v, start, end, s_vt, s_vd, 0, V, "identity", C, BV), OPERAND)
        b_do = enter(load_tile(p_do, start, end, s_dt, s_dd, 0, V, "identity", C, BV), OPERAND)
        if NORMALIZE:
            b_r = 1.0 / (load_tokens(p_den, start, end, H, 1.0, C) + eps)
        # 2. S before the chunk.
        b_S -= tl.dot(tl.trans(b_v), b_k, input_precision=PRECISION)
        # 3. dq, as attention of (do, v, k); δ as in pass_kernel.
        b_P = tl.where(m_A, tl.dot(b_do, tl.trans(b_v), input_precision=PRECISION), 0.0)
        b_dq = tl.dot(enter(b_do, WIDE), enter(b_S, WIDE), input_precision=PRECISION)
        b_dq = tl.dot(enter(b_P, WIDE), enter(b_k, WIDE), b_dq, input_precision=PRECISION)
        if NORMALIZE:
            b_delta = -scale * b_r * tl.sum(b_q.to(tl.float32) * b_dq, axis=1)
            b_z -= tl.sum(b_k.to(tl.float32), axis=0)
            b_past = tl.dot(enter(m_A, OPERAND), b_k, input_precision=PRECISION) + b_z[None, :]
            b_dq = (b_dq + b_delta[:, None] * b_past) * b_r[:, None]
        b_dq *= scale
        if MAP != "identity":
            b_x = load_tile(p_q, start, end, s_qt, s_qd, 0, K, "identity", C, BK)
            b_dq *= slope(b_x.to(tl.float32), MAP)
        store_tile(b_dq, p_dq, start, end, H * K, 1, 0, K, C, BK)
        # 4. dk, as reversed attention of (v, do, q).
        b_P = tl.dot(b_v, tl.trans(b_do), input_precision=PRECISION)
        if NORMALIZE:
            b_P = (b_P + b_delta[None, :]) * b_r[None, :]
        b_P = tl.where(m_AT, b_P, 0.0)
        b_dk = tl.dot(enter(b_v, WIDE), enter(b_R, WIDE), input_precision=PRECISION)
        b_dk = tl.dot(enter(b_P, WIDE), enter(b_q, WIDE), b_dk, input_precision=PRECISION)
        if NORMALIZE or LAST_Z:
            b_dk += b_m[None, :]
        b_dk *= scale
        if MAP != "identity":
            b_x = load_tile(p_k, start, end, s_kt, s_kd, 0, K, "identity", C, BK)
            b_dk *= slope(b_x.to(tl.float32), MAP)
        store_tile(b_dk, p_dk, start, end, H * K, 1, 0, K, C, BK)
        # 5. dv, transposed, as reversed attention of (k, q, do).
        b_A = tl.dot(b_q, tl.trans(b_k), input_precision=PRECISION)
        if NORMALIZE:
            b_A *= b_r[:, None]
        b_A = tl.where(m_A, b_A, 0.0)
        b_dv = tl.dot(enter(b_R, WIDE), tl.trans(enter(b_k, WIDE)), input_precision=PRECISION)
        b_dv = tl.dot(
            tl.trans(enter(b_do, WIDE)), enter(b_A, WIDE), b_dv, input_precision=PRECISION
        )
        o_t = start.to(tl.int64) * H * V + o_x * (H * V)
        m_t = (o_x < end - start)[None, :] & (o_v < V)[:, None]
        b_dv = (b_dv * scale).to(p_dv.dtype.element_ty)
        tl.store(p_dv + o_t[None, :] + o_v[:, None], b_dv, mask=m_t)
        # 6. R before the chunk.
        if NORMALIZE:
            b_w = b_q.to(tl.float32) * b_r[:, None]
            b_m += tl.sum(b_w * b_delta[:, None], axis=0)
            b_R += tl.dot(tl.trans(enter(b_do, WIDE)), enter(b_w, WIDE), input_precision=PRECISION)
        else:
            b_R += tl.dot(tl.trans(b_do), b_q, input_precision=PRECISION)

    if i_g == 0:
        tl.store(p_dS + i_bh * K * V + o_M, b_R * scale, mask=m_M)
        tl.store(p_dz + i_bh * K + o_k, b_m * scale, mask=m_k)


@dataclass(frozen=True)
class Launch:
    """C tokens a chunk, BD features of the output a program."""

    C: int
    BD: int
    num_warps: int
    num_stages: int


BACKWARD = Launch(64, 64, 8, 3)


def pass_launch(problem: Problem, role: Role) -> Launch:
    """The configuration of pass_kernel: the widest that spills no registers.

    Found by compiling every choice for compute capabilities 8.0 and 9.0; the experiment
    kernel_build keeps what came of it. float32 forms its products without tensor cores, whose
    operands take the more registers the wider the state: past 128 it does spill.
    """
    dtype, normalize = problem.q.dtype, problem.normalize
    A, D = block(role.a.shape[-1]), role.c.shape[-1]
    if dtype == torch.float32:
        return Launch(16, block(D, 64 if A <= 64 else 16), 4 if A <= 32 else 8, 1)
    # Where dq forms δ, a program holds all of the output's features.
    whole = role.name == "dq" and forms_delta(problem)
    if A > 128:
        if dtype == torch.bfloat16 and not normalize and large(problem.q.device):
            # A map has its results in shared memory beside what it was loaded from.
            return Launch(64, block(D, 32), 8, 3 if problem.feature_map == "identity" else 2)
        return Launch(16, block(D) if whole else block(D, 32), 8, 2)
    BD = block(D, 128 if whole else 64)
    if not large(problem.q.device):
        return Launch(32 if max(A, BD) <= 64 else 16, BD, 8, 3 if whole else 2)
    if dtype == torch.float16:
        return Launch(16 if BD > 64 else 32, BD, 8, 2)
    mapped = problem.feature_map != "identity"
    if whole and BD > 64:
        return Launch(16, BD, 8, 3) if mapped else Launch(32, BD, 8, 2)
    if normalize and role.name == "dk" and (A > 64 or mapped):
        return Launch(64, min(BD, 32), 8, 3 if A > 64 else 2)
    if normalize and role.name == "dq" and A > 64:
        return Launch(64, BD, 8, 3)
    few = A <= 64 and (role.name == "o" or not normalize or (whole and mapped))
    return Launch(64, BD, 4 if few else 8, 2)


def forms_delta(problem: Problem) -> bool:
    """Whether a program of the dq pass holds all of K, and so forms δ by itself.

    float32 inputs have no need of it: their o is not rounded, and δ comes from there.
    """
    rounded = problem.q.dtype != torch.float32
    # With a map it takes φ(k) in two tiles, for which an Ampere's registers are too few past 64.
    split = problem.feature_map != "identity" and problem.q.dtype == torch.bfloat16
    most = 64 if split and not large(problem.q.device) else 128
    return problem.normalize and rounded and problem.sizes[3] <= most


def plan(problem: Problem) -> tuple[int, int]:
    """G and L for this problem on its device."""
    B, T, H, _, _ = problem.sizes
    longest = LONGEST_RECOVERED if fits_fused(problem) else None
    return segments(B * H, T, multiprocessors(problem.q.device), longest)


def boundaries(problem: Problem) -> int:
    """How many states between segments forward() returns."""
    return plan(problem)[0] - 1


def keeps_exact(problem: Problem) -> bool:
    """Whether the backward pass needs o unrounded: where no program can form δ by itself."""
    rounded = problem.q.dtype in (torch.float16, torch.bfloat16)
    return problem.normalize and rounded and not forms_delta(problem)


def forward(problem: Problem, cut: tuple[int, int] | None = None) -> Outputs:
    """o and what the backward pass needs. cut: G and L, in place of the planned ones."""
    problem = prepare(problem)
    G, L = cut or plan(problem)
    states = segment_sums(problem, L, G, first=problem.S, first_z=problem.z)
    out = replace(empty_outputs(problem, keeps_exact(problem)), states=states)
    role = forward_role(problem, out)
    run_pass(problem, role, states, G, L, out.den, None)
    return rounded_outputs(problem, out, keeps_exact(problem))


def backward(
    problem: Problem, out: Outputs, do: Tensor, dS: Tensor | None, dz: Tensor | None,
    cut: tuple[int, int] | None = None, fused: bool | None = None,
) -> Gradients:  # fmt: skip
    """The gradients, from those of o and of the returned state (None where there is none).

    fused: whether one pass gives all three, in place of the planned choice.
    """
    problem, do = prepare(problem), arithmetic_fits(do)
    dS, dz = (None if d is None else d.to(torch.float32).contiguous() for d in (dS, dz))
    B, T, H, K, V = problem.sizes
    G, L = cut or plan(problem)
    grads = empty_gradients(problem)
    if fits_fused(problem) if fused is None else fused:
        R = segment_sums(problem, L, G, do=do, o=out.o, den=out.den, first=dS, first_z=dz)
        run_backward(problem, out, do, dS, dz, R, grads, G, L, BACKWARD)
        return rounded_gradients(problem, grads)
    delta = None
    if forms_delta(problem):
        delta = torch.empty(B, T, H, dtype=torch.float32, device=do.device)
    elif problem.normalize:
        delta = output_delta(problem, out.exact if out.exact.numel() else out.o, do)
    run_pass(problem, dq_role(problem, do, grads), out.states, G, L, out.den, delta)
    R = segment_sums(problem, L, G, do=do, den=out.den, delta=delta, first=dS, first_z=dz)
    for role in (dk_role(problem, do, grads, dS, dz), dv_role(problem, do, grads, dS)):
        run_pass(problem, role, R, G, L, out.den, delta)
    return rounded_gradients(problem, grads)


def fits_fused(problem: Problem) -> bool:
    """Whether both states and a chunk's products fit in registers without spilling."""
    narrow = max(problem.sizes[3:]) <= 64 and problem.q.dtype == torch.bfloat16
    return narrow and not problem.normalize and large(problem.q.device)


def run_pass(
    problem: Problem, role: Role, between: Tensor, G: int, L: int,
    den: Tensor | None, delta: Tensor | None, launch: Launch | None = None,
) -> None:  # fmt: skip
    """Launch pass_kernel for one role. `between`: the states between the segments."""
    B, T, H, _, V = problem.sizes
    A, D = role.a.shape[-1], role.c.shape[-1]
    form_delta = role.name == "dq" and forms_delta(problem)
    launch = launch or pass_launch(problem, role)
    like = role.out
    raw = pointer(role.raw, like)
    pass_kernel[(triton.cdiv(D, launch.BD) * G * B * H,)](
        role.a, role.b, role.c, raw, role.out, pointer(den, like), pointer(delta, like),
        pointer(role.first, like), pointer(role.first_z, like), between,
        pointer(role.last, like), pointer(role.last_z, like),
        *role.a.stride(), *role.b.stride(), *role.c.stride(), *raw.stride(), *role.out.stride(),
        *role.state_strides(V), *role.state_strides(V), role.first_factor, role.last_factor,
        T, B * H, H, L, G, problem.scale, problem.eps, A=A, D=D,
        ROLE=role.name, NORMALIZE=problem.normalize, WITH_Z=role.with_z,
        MAP_A=role.maps[0], MAP_B=role.maps[1], MAP_C=role.maps[2], SLOPE=role.slope,
        FORM_DELTA=form_delta, FOLD=problem.q.dtype == torch.bfloat16,
        FIRST=role.first is not None, FIRST_Z=role.with_z and role.first_z is not None,
        LAST=role.last is not None, LAST_Z=role.last_z is not None,
        C=launch.C, BA=block(A), BD=launch.BD, **role_precision(problem, role).arguments(),
        num_warps=launch.num_warps, num_stages=launch.num_stages,
    )  # fmt: skip


def role_precision(problem: Problem, role: Role) -> Precision:
    """dq of wide normalised heads sums in tf32: nothing takes out what bf16 leaves along q.

    With a map the mean of φ(k), which δ has to take out, is large beside what is left, so that
    the o that δ is formed from has to be better than bf16 too.
    """
    closest = ("dq", "o") if problem.feature_map != "identity" else ("dq",)
    if role.name in closest and keeps_exact(problem):
        return replace(problem.precision(), WIDE="tf32", PRECISION="tf32")
    return problem.precision()


def run_backward(
    problem: Problem, out: Outputs, do: Tensor, dS: Tensor | None, dz: Tensor | None,
    R: Tensor, grads: Gradients, G: int, L: int, launch: Launch,
) -> None:  # fmt: skip
    """Launch backward_kernel: all three gradients."""
    B, T, H, K, V = problem.sizes
    q, k, v, like = problem.q, problem.k, problem.v, grads.dq
    backward_kernel[(G * B * H,)](
        q, k, v, do, grads.dq, grads.dk, grads.dv, out.den,
        out.S_T, out.z_T, out.states, pointer(dS, like), pointer(dz, like), R, grads.dS, grads.dz,
        *q.stride(), *k.stride(), *v.stride(), *do.stride(),
        T, B * H, H, L, G, problem.scale, problem.eps, K=K, V=V,
        NORMALIZE=problem.normalize, MAP=problem.feature_map,
        LAST_S=dS is not None, LAST_Z=dz is not None,
        C=launch.C, BK=block(K), BV=block(V), **problem.precision().arguments(),
        num_warps=launch.num_warps, num_stages=launch.num_stages,
    )  # fmt: skip
