"""The two kernels of chunked mode; chunked.py says what they compute and why there are two."""

from __future__ import annotations

import triton
import triton.language as tl

from .tiles import enter, load_tile, load_tokens, slope, store_tile, store_tokens


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
