"""The selective scan's gradients: recompute states from the stored ones, then go backwards.

With g_t the gradient of h_t, a_t = exp(Δ_t A), and w_t = Δ_t (Euler) or (a_t - 1) / A (zero-order
hold),

    g_t = C_t dy_t + a_{t+1} g_{t+1}
    dC_t = sum_d dy_t h_t            dB_t = sum_d g_t w_t u_t         du_t = sum_n g_t w_t B_t
    dΔ_t = sum_n g_t (A a_t h_{t-1} + u_t B_t dw/dΔ)          dw/dΔ = 1 or a_t
    dA = sum_t g_t (Δ_t a_t h_{t-1} + u_t B_t dw/dA)          dw/dA = 0 or (Δ_t a_t - w_t) / A

Sums over channels combine lanes, and so do sums over n; each halving costs a shuffle and an
addition. So a tile is [R, BN, BL], with channels on two axes. Triton assigns lanes to the last axis
first, then to the one before, and registers to the other elements. At N = 16 a thread holds 4
channels times 2 of the N, and most of each sum stays in the thread.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .tiles import decay, held, held_slope, inverse, load_row, load_shared


@triton.jit(do_not_specialize=["T", "G", "L"])
def gradients_kernel(
    p_u, p_delta, p_A, p_B, p_C, p_dy, p_kept, p_last,
    p_du, p_ddelta, p_dA, p_dB, p_dC, p_dfirst,
    s_ub, s_ut, s_db, s_dt, s_Bb, s_Bt, s_Cb, s_Ct, s_yb, s_yt,
    T, D, G, L, N: tl.constexpr, RULE: tl.constexpr, LAST: tl.constexpr,
    CHUNK: tl.constexpr, BN: tl.constexpr, R: tl.constexpr, BL: tl.constexpr,
):  # fmt: skip
    """All gradients of one segment of R BL channels, from its last chunk to its first.

    p_last [B, G, N, D]: the gradient of the state after each segment, zero if not LAST.
    p_dB, p_dC [channel blocks, B, T, N] and p_dA [B, G, N, D]: what this program adds to each.
    """
    n_d = tl.cdiv(D, R * BL)
    pid = tl.program_id(0)
    i_d = pid % n_d
    i_g = pid // n_d % G
    i_b = (pid // (n_d * G)).to(tl.int64)
    n_b = tl.num_programs(0) // (n_d * G)
    o_n = tl.arange(0, BN)
    o_d = i_d * (R * BL) + tl.arange(0, R)[:, None] + tl.arange(0, BL)[None, :] * R
    m_n, m_d = o_n < N, o_d < D
    m_h = m_n[None, :, None] & m_d[:, None, :]
    # A hint that orders the axes, R before BL before BN, for any compiler.
    o_h = tl.max_contiguous(o_n[None, :, None] * D + o_d[:, None, :], (R, 1, 2))
    p_u += i_b * s_ub + o_d
    p_delta += i_b * s_db + o_d
    p_dy += i_b * s_yb + o_d
    p_du += i_b * T * D + o_d
    p_ddelta += i_b * T * D + o_d
    p_B += i_b * s_Bb
    p_C += i_b * s_Cb
    p_dB += (i_d * n_b + i_b) * T * N + o_n
    p_dC += (i_d * n_b + i_b) * T * N + o_n
    p_kept += i_b * tl.cdiv(T, CHUNK) * N * D
    begin = i_g * L
    end = tl.minimum(T, begin + L)
    n_c = tl.cdiv(end - begin, CHUNK)

    b_A = tl.load(p_A + o_h, mask=m_h, other=0.0)
    if RULE == "zoh":
        b_r = inverse(b_A)
    b_dA = tl.zeros([R, BN, BL], dtype=tl.float32)
    b_g = tl.zeros([R, BN, BL], dtype=tl.float32)
    if LAST:
        b_g += tl.load(p_last + (i_b * G + i_g) * N * D + o_h, mask=m_h, other=0.0)
    for i in range(n_c):
        start = begin + (n_c - 1 - i) * CHUNK
        last = end - 1 - start
        first_t = start.to(tl.int64)
        # 1. The chunk's states, forwards again.
        p_before = p_kept + first_t // CHUNK * (N * D) + o_h
        b_h = tl.load(p_before, mask=m_h, other=0.0)
        hs = ()
        # Pointers are advanced: as multiples of j, all offsets would be kept in registers.
        p_ut, p_dt = p_u + first_t * s_ut, p_delta + first_t * s_dt
        for j in tl.static_range(CHUNK):
            m_t = m_d & (j <= last)
            b_delta = load_row(p_dt, m_t)
            b_u = load_row(p_ut, m_t)
            p_ut += s_ut
            p_dt += s_dt
            b_B = load_shared(p_B + first_t * s_Bt, j, last, s_Bt, o_n, N, BN)[None, :, None]
            b_a = decay(b_delta[:, None, :], b_A)
            if RULE == "zoh":
                b_w = held(b_delta[:, None, :], b_delta[:, None, :] * b_A, b_a, b_r)
                b_x = b_w * b_u[:, None, :]
            else:
                b_x = (b_delta * b_u)[:, None, :]
            b_h = b_a * b_h + b_x * b_B
            hs += (b_h,)
        # 2. Backwards through the chunk. Past the end dy = Δ = u = 0, which leaves g unchanged.
        p_yt = p_dy + (first_t + CHUNK) * s_yt
        o_out = (first_t + CHUNK) * D
        o_w = (first_t + CHUNK) * N
        for j in tl.static_range(CHUNK):
            t = CHUNK - 1 - j
            m_t = m_d & (t <= last)
            p_ut -= s_ut
            p_dt -= s_dt
            p_yt -= s_yt
            o_out -= D
            b_delta = load_row(p_dt, m_t)
            b_u = load_row(p_ut, m_t)
            b_dy = load_row(p_yt, m_t)
            b_B = load_shared(p_B + first_t * s_Bt, t, last, s_Bt, o_n, N, BN)[None, :, None]
            b_C = load_shared(p_C + first_t * s_Ct, t, last, s_Ct, o_n, N, BN)[None, :, None]
            wide_delta, wide_u = b_delta[:, None, :], b_u[:, None, :]
            b_a = decay(wide_delta, b_A)
            b_dC = tl.sum(tl.sum(b_dy[:, None, :] * hs[CHUNK - 1 - j], axis=0), axis=1)
            b_g += b_dy[:, None, :] * b_C
            b_s = b_g * b_B
            if j == CHUNK - 1:
                b_h = tl.load(p_before, mask=m_h, other=0.0)  # again: registers are full
            else:
                b_h = hs[CHUNK - 2 - j]
            b_q = b_a * b_g * b_h
            b_dA += wide_delta * b_q
            if RULE == "zoh":
                b_z = wide_delta * b_A
                b_w = held(wide_delta, b_z, b_a, b_r)
                b_dA += wide_u * b_s * held_slope(wide_delta, b_z, b_a, b_r, b_w)
                b_du = tl.sum(b_s * b_w, axis=1)
                b_ddelta = tl.sum(b_A * b_q + wide_u * b_s * b_a, axis=1)
                b_dB = b_g * b_w * wide_u
            else:
                b_s = tl.sum(b_s, axis=1)
                b_du = b_delta * b_s
                b_ddelta = tl.sum(b_A * b_q, axis=1) + b_u * b_s
                b_dB = b_g * (b_delta * b_u)[:, None, :]
            b_dB = tl.sum(tl.sum(b_dB, axis=0), axis=1)
            b_g = b_a * b_g
            o_w -= N
            tl.store(p_du + o_out, b_du.to(p_du.dtype.element_ty), mask=m_t)
            tl.store(p_ddelta + o_out, b_ddelta.to(p_ddelta.dtype.element_ty), mask=m_t)
            tl.store(p_dB + o_w, b_dB, mask=m_n & (t <= last))
            tl.store(p_dC + o_w, b_dC, mask=m_n & (t <= last))

    tl.store(p_dA + (i_b * G + i_g) * N * D + o_h, b_dA, mask=m_h)
    if i_g == 0:
        tl.store(p_dfirst + i_b * N * D + o_h, b_g, mask=m_h)
