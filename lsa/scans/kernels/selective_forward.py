"""The selective scan forwards: the whole state of BD channels in registers, token by token.

A program is one warp and BD = 32 channels, one channel a lane. A channel's N numbers of state are
in one thread, so y = C·h needs no other lane. selective.py derives the costs.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .tiles import decay, held, inverse, load_row, load_shared


@triton.jit(do_not_specialize=["T", "G", "L"])
def outputs_kernel(
    p_u, p_delta, p_A, p_B, p_C, p_y, p_first, p_last, p_kept,
    s_ub, s_ut, s_db, s_dt, s_Bb, s_Bt, s_Cb, s_Ct,
    T, D, G, L, N: tl.constexpr, RULE: tl.constexpr, FIRST: tl.constexpr, KEEP: tl.constexpr,
    CHUNK: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """y of one segment and, if KEEP, the state before each of its chunks.

    p_first [B, G, N, D]: the state before each segment, zero if not FIRST. p_last [B, N, D].
    p_kept [B, chunks, N, D].
    """
    n_d = tl.cdiv(D, BD)
    pid = tl.program_id(0)
    i_d = pid % n_d
    i_g = pid // n_d % G
    i_b = (pid // (n_d * G)).to(tl.int64)
    o_n, o_d = tl.arange(0, BN), i_d * BD + tl.arange(0, BD)
    m_n, m_d = o_n < N, o_d < D
    m_h = m_n[:, None] & m_d[None, :]
    # multiple_of(1) hides the alignment: vectorised loads would spread n
    # over lanes.
    o_h = tl.multiple_of(o_n[:, None] * D + o_d[None, :], (1, 1))
    begin = i_g * L
    end = tl.minimum(T, begin + L)
    first_t = begin.to(tl.int64)
    p_u += i_b * s_ub + first_t * s_ut + o_d
    p_delta += i_b * s_db + first_t * s_dt + o_d
    p_y += (i_b * T + first_t) * D + o_d
    p_B += i_b * s_Bb
    p_C += i_b * s_Cb
    p_kept += i_b * tl.cdiv(T, CHUNK) * N * D

    b_A = tl.load(p_A + o_h, mask=m_h, other=0.0)
    if RULE == "zoh":
        b_r = inverse(b_A)
    b_h = tl.zeros([BN, BD], dtype=tl.float32)
    if FIRST:
        b_h += tl.load(p_first + (i_b * G + i_g) * N * D + o_h, mask=m_h, other=0.0)
    for i in range(tl.cdiv(end - begin, CHUNK)):
        start = begin + i * CHUNK
        last = end - 1 - start
        first_t = start.to(tl.int64)
        if KEEP:
            tl.store(p_kept + first_t // CHUNK * (N * D) + o_h, b_h, mask=m_h)
        # All rows of a chunk are loaded before the first is used. Past the end Δ = u = 0, which
        # leaves the state unchanged. Pointers are advanced: as multiples of j, all offsets would be
        # kept in registers.
        us, deltas, ys = (), (), ()
        for j in tl.static_range(CHUNK):
            us += (load_row(p_u, m_d & (j <= last)),)
            deltas += (load_row(p_delta, m_d & (j <= last)),)
            p_u += s_ut
            p_delta += s_dt
        for j in tl.static_range(CHUNK):
            b_B = load_shared(p_B + first_t * s_Bt, j, last, s_Bt, o_n, N, BN)
            b_C = load_shared(p_C + first_t * s_Ct, j, last, s_Ct, o_n, N, BN)
            b_a = decay(deltas[j][None, :], b_A)
            if RULE == "zoh":
                b_delta = deltas[j][None, :]
                b_x = held(b_delta, b_delta * b_A, b_a, b_r) * us[j][None, :]
            else:
                b_x = (deltas[j] * us[j])[None, :]
            b_h = b_a * b_h + b_x * b_B[:, None]
            ys += (tl.sum(b_h * b_C[:, None], axis=0),)
        # Stored last: a load may not be moved before a store that could have the same address.
        for j in tl.static_range(CHUNK):
            tl.store(p_y, ys[j].to(p_y.dtype.element_ty), mask=m_d & (j <= last))
            p_y += D

    if i_g == G - 1:
        tl.store(p_last + i_b * N * D + o_h, b_h, mask=m_h)


@triton.jit(do_not_specialize=["T", "G", "L"])
def ends_kernel(
    p_x, p_delta, p_A, p_w, p_edges, p_sums, s_xb, s_xt, s_db, s_dt, s_wb, s_wt,
    T, D, G, L, N: tl.constexpr, RULE: tl.constexpr, REVERSE: tl.constexpr,
    CHUNK: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """Sums of a segment: its part of the state after it, and its ΣΔ, p_sums [B, G, D].

    x, w = u, B; the last segment is left out, and entry g of p_edges [B, G, N, D] is what segment
    g - 1 adds. REVERSE: the gradient of the state before it, from x, w = dy, C; the first segment
    is left out, and entry g is what segment g + 1 adds.
    """
    n_d = tl.cdiv(D, BD)
    pid = tl.program_id(0)
    i_d = pid % n_d
    i_g = pid // n_d % (G - 1)
    i_b = (pid // (n_d * (G - 1))).to(tl.int64)
    to_g = i_g + 1
    if REVERSE:
        to_g = i_g
        i_g += 1
    o_n, o_d = tl.arange(0, BN), i_d * BD + tl.arange(0, BD)
    m_n, m_d = o_n < N, o_d < D
    m_h = m_n[:, None] & m_d[None, :]
    # multiple_of(1) hides the alignment: vectorised loads would spread n
    # over lanes.
    o_h = tl.multiple_of(o_n[:, None] * D + o_d[None, :], (1, 1))
    begin = i_g * L
    end = tl.minimum(T, begin + L)
    n_c = tl.cdiv(end - begin, CHUNK)
    first_t = (begin + (n_c - 1 if REVERSE else 0) * CHUNK).to(tl.int64)
    p_x += i_b * s_xb + first_t * s_xt + o_d
    p_delta += i_b * s_db + first_t * s_dt + o_d
    p_w += i_b * s_wb

    b_A = tl.load(p_A + o_h, mask=m_h, other=0.0)
    if RULE == "zoh":
        b_r = inverse(b_A)
    b_h = tl.zeros([BN, BD], dtype=tl.float32)
    b_sum = tl.zeros([BD], dtype=tl.float32)
    for i in range(n_c):
        start = begin + (n_c - 1 - i if REVERSE else i) * CHUNK
        last = end - 1 - start
        first_t = start.to(tl.int64)
        xs, deltas = (), ()
        for j in tl.static_range(CHUNK):
            xs += (load_row(p_x, m_d & (j <= last)),)
            deltas += (load_row(p_delta, m_d & (j <= last)),)
            p_x += s_xt
            p_delta += s_dt
        if REVERSE:
            p_x -= 2 * CHUNK * s_xt
            p_delta -= 2 * CHUNK * s_dt
        b_chunk = tl.zeros([BD], dtype=tl.float32)  # long sums are sums of short ones, for accuracy
        for j in tl.static_range(CHUNK):
            if REVERSE:
                b_delta, b_x, k = deltas[CHUNK - 1 - j], xs[CHUNK - 1 - j], CHUNK - 1 - j
            else:
                b_delta, b_x, k = deltas[j], xs[j], j
            b_w = load_shared(p_w + first_t * s_wt, k, last, s_wt, o_n, N, BN)[:, None]
            b_a = decay(b_delta[None, :], b_A)
            if REVERSE:
                b_h = b_a * (b_h + b_x[None, :] * b_w)
            else:
                if RULE == "zoh":
                    b_x = held(b_delta[None, :], b_delta[None, :] * b_A, b_a, b_r) * b_x[None, :]
                else:
                    b_x = (b_delta * b_x)[None, :]
                b_h = b_a * b_h + b_x * b_w
            b_chunk += b_delta
        b_sum += b_chunk

    tl.store(p_edges + (i_b * G + to_g) * N * D + o_h, b_h, mask=m_h)
    tl.store(p_sums + (i_b * G + i_g) * D + o_d, b_sum, mask=m_d)


@triton.jit(do_not_specialize=["SIZE", "D", "G"])
def carry_kernel(
    p_edges, p_sums, p_A, p_first, SIZE, D, G, N: tl.constexpr,
    FIRST: tl.constexpr, REVERSE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The state before each of G segments, replacing what each adds; REVERSE: after each.

    A segment multiplies a number of the state by exp(A ΣΔ), for any tokens. p_first [B, N, D]: the
    state before the first segment, or the gradient of that after the last.
    """
    o = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = o < SIZE
    i_b, o_h = o // (N * D), o % (N * D)
    b_A = tl.load(p_A + o_h, mask=m, other=0.0)
    b_h = tl.zeros([BLOCK], dtype=tl.float32)
    if FIRST:
        b_h += tl.load(p_first + o, mask=m, other=0.0)
    p_edges += i_b * G * N * D + o_h
    p_sums += i_b * G * D + o_h % D
    i_g = tl.program_id(0) * 0
    if REVERSE:
        i_g += G - 1
    tl.store(p_edges + i_g.to(tl.int64) * N * D, b_h, mask=m)
    for _ in range(1, G):
        b_sum = tl.load(p_sums + i_g.to(tl.int64) * D, mask=m, other=0.0)
        i_g += -1 if REVERSE else 1
        p = p_edges + i_g.to(tl.int64) * N * D
        b_h = decay(b_sum, b_A) * b_h + tl.load(p, mask=m, other=0.0)
        tl.store(p, b_h, mask=m)
