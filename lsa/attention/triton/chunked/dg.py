"""Chunked mode's gradient of the decay: one program for every 64 tokens of a head.

exp(g_t) multiplies every term that goes from before token t to t or later. So its gradient sums
the terms of o, S_T and z_T whose pair of tokens lies on both sides of t. With S, z before the 64
tokens of a chunk and R, m after them (dkv.py), and w as in passes.py,

    dg_t = scale [ sum_{i>=t} w_i0 r_i φ(q_i)·(S do_i + δ_i z)          from before, to t and after
                 + sum_{j<t} w_Cj φ(k_j)·(R v_j + m)                   from before t, to after
                 + sum_{j<t<=i} w_ij r_i (φ(q_i)·φ(k_j)) (do_i·v_j + δ_i)        inside the chunk
                 + w_C0 (<R, S> + m·z) ]                                      past the chunk

No term is large where their sum is small. The well-known form dg_t = sum_{i>=t} (q_i·dq_i -
k_i·dk_i) is less exact: its terms cancel up to the end of the text, and their rounding errors stay.

Per token and head, K = V = D, in bf16: 8 D + D^2 / 8 bytes and 4 C D + 8 D^2 FLOPs, C = 64.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ...call import Call, Saved
from ..arguments import block, precision_of
from ..tiles import between, enter, in_two, load_decay, load_tile, load_tokens
from ..tuning.plan import KEPT
from .sums import scan_sums, segment_sums


@triton.jit(do_not_specialize=["T", "N", "H", "s_Gb"])
def decay_gradient_kernel(
    p_q, p_k, p_v, p_do, p_den, p_delta, p_S, p_R, p_dg, p_G,
    s_qb, s_qt, s_qh, s_kb, s_kt, s_kh, s_vb, s_vt, s_vh, s_db, s_dt, s_dh, s_Gb,
    T, N, H, scale, eps, K: tl.constexpr, V: tl.constexpr,
    NORMALIZE: tl.constexpr, WITH_Z: tl.constexpr, MAP: tl.constexpr,
    C: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
    OPERAND: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dg of C tokens of one head. S, R: [T / C, B H, K V + K], S with z, R with m."""
    n_c = tl.cdiv(T, C)
    pid = tl.program_id(0)
    i_c = pid % n_c
    i_bh = (pid // n_c).to(tl.int64)
    i_b, i_h = i_bh // H, i_bh % H
    p_q += i_b * s_qb + i_h * s_qh
    p_k += i_b * s_kb + i_h * s_kh
    p_v += i_b * s_vb + i_h * s_vh
    p_do += i_b * s_db + i_h * s_dh
    p_den += i_b * T * H + i_h
    p_delta += i_b * T * H + i_h
    p_dg += i_b * T * H + i_h
    p_G += i_b * s_Gb + i_h * 2
    at = (i_c.to(tl.int64) * N + i_bh) * (K * V + K)
    start = i_c * C
    b_G, b_g, since, until, left = load_decay(p_G, start, T, H, C)

    # Rounding S and R makes the same error for all tokens that read them, up to 3.4e-3 of dg, so
    # they enter in two tiles. Inside the chunk, δ removes most of what φ adds to the products, but
    # not the rounding error of φ.
    ROUNDS: tl.constexpr = (MAP != "identity") and (MAP != "relu")
    BF16: tl.constexpr = (WIDE == "bf16") or (WIDE == "bf16 in fp32")
    SPLIT: tl.constexpr = NORMALIZE and ROUNDS and BF16

    # 1. The products with the states, and those inside the chunk: q·k, and do·v.
    b_A = tl.zeros([C, C], dtype=tl.float32)
    b_P = tl.zeros([C, C], dtype=tl.float32)
    b_from = tl.zeros([C], dtype=tl.float32)
    b_to = tl.zeros([C], dtype=tl.float32)
    b_past = tl.zeros([BK], dtype=tl.float32)
    if NORMALIZE:
        b_delta = load_tokens(p_delta, start, T, H, 0.0, C)
    for i_k in range(tl.cdiv(K, BK)):
        o_k = i_k * BK + tl.arange(0, BK)
        b_q = load_tile(p_q, start, T, s_qt, i_k * BK, K, MAP, C, BK)
        b_k = load_tile(p_k, start, T, s_kt, i_k * BK, K, MAP, C, BK)
        b_q1, b_k1 = enter(b_q, OPERAND), enter(b_k, OPERAND)
        b_A += tl.dot(b_q1, tl.trans(b_k1), input_precision=PRECISION)
        if SPLIT:
            b_q2 = enter(b_q - b_q1.to(tl.float32), OPERAND)
            b_k2 = enter(b_k - b_k1.to(tl.float32), OPERAND)
            b_A += tl.dot(b_q2, tl.trans(b_k1), input_precision=PRECISION)
            b_A += tl.dot(b_q1, tl.trans(b_k2), input_precision=PRECISION)
        b_u = tl.zeros([C, BK], dtype=tl.float32)
        b_x = tl.zeros([C, BK], dtype=tl.float32)
        for i_v in range(tl.cdiv(V, BV)):
            o_v = i_v * BV + tl.arange(0, BV)
            b_v = enter(load_tile(p_v, start, T, s_vt, i_v * BV, V, "identity", C, BV), OPERAND)
            b_do = enter(load_tile(p_do, start, T, s_dt, i_v * BV, V, "identity", C, BV), OPERAND)
            o_S = o_k[None, :] * V + o_v[:, None]
            m_S = (o_k < K)[None, :] & (o_v < V)[:, None]
            b_S = tl.load(p_S + at + o_S, mask=m_S, other=0.0)
            b_R = tl.load(p_R + at + o_S, mask=m_S, other=0.0)
            b_past += tl.sum(b_S * b_R, axis=0)
            if BF16:
                b_S1, b_S2 = in_two(b_S, WIDE)
                b_R1, b_R2 = in_two(b_R, WIDE)
                b_u += tl.dot(b_do, b_S2, input_precision=PRECISION)
                b_x += tl.dot(b_v, b_R2, input_precision=PRECISION)
            else:
                b_S1, b_R1 = enter(b_S, WIDE), enter(b_R, WIDE)
            b_u += tl.dot(enter(b_do, WIDE), b_S1, input_precision=PRECISION)
            b_x += tl.dot(enter(b_v, WIDE), b_R1, input_precision=PRECISION)
            if i_k == 0:
                b_P += tl.dot(b_do, tl.trans(b_v), input_precision=PRECISION)
        if WITH_Z:
            b_z = tl.load(p_S + at + K * V + o_k, mask=o_k < K, other=0.0)
            b_m = tl.load(p_R + at + K * V + o_k, mask=o_k < K, other=0.0)
            b_past += b_z * b_m
            b_x += b_m[None, :]
            if NORMALIZE:
                b_u += b_delta[:, None] * b_z[None, :]
        b_from += tl.sum(b_q.to(tl.float32) * b_u, axis=1)
        b_to += tl.sum(b_k.to(tl.float32) * b_x, axis=1)

    # 2. Terms that pass token t: from the state, to the state, both, or from token to token.
    o_t = tl.arange(0, C)
    m_t = o_t[:, None] > o_t[None, :]
    b_from *= since
    if NORMALIZE:
        b_r = 1.0 / (load_tokens(p_den, start, T, H, 1.0, C) + eps)
        b_from *= b_r
        b_P = (b_P + b_delta[:, None]) * b_r[:, None]
    b_M = b_A * b_P * between(b_G, b_g, m_t, False, OPERAND)
    # Terms that end at i minus those that begin there. Pairs that are both past t cancel, in
    # float32.
    b_from += tl.sum(b_M, axis=1) - tl.sum(b_M, axis=0)
    b_to *= until
    b_dg = tl.sum(tl.where(m_t, b_to[None, :], 0.0), axis=1)
    b_dg += tl.sum(tl.where(m_t, 0.0, b_from[None, :]), axis=1)
    b_dg += left * tl.sum(b_past, axis=0)
    p_dg += start.to(tl.int64) * H
    tl.store(p_dg + o_t * H, b_dg * scale, mask=o_t < T - start)


def empty_kept(call: Call) -> Tensor:
    """Memory for S and z, or R and m, around every KEPT tokens, in float32."""
    B, T, H, K, V = call.sizes
    shape = -(-T // KEPT), B * H, K * V + K
    return torch.empty(shape, dtype=torch.float32, device=call.q.device)


def kept_states(
    call: Call, G: Tensor, first: Tensor | None, first_z: Tensor | None,
    factor: float = 1.0, *, do: Tensor | None = None,
    den: Tensor | None = None, delta: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """S and z before every KEPT tokens; given do, R and m after them. For modes without states.

    first, first_z: the first of these states, before it is multiplied by factor; zeros by default.
    """
    (B, T, H, K, V), reverse = call.sizes, do is not None
    n = -(-T // KEPT)
    kept = torch.zeros(n, B * H, K * V + K, dtype=torch.float32, device=call.q.device)
    edge = kept[-1 if reverse else 0]
    for x, part in ((first, edge[:, : K * V]), (first_z, edge[:, K * V :])):
        if x is not None:
            torch.mul(x.reshape(part.shape), factor, out=part)
    if n == 1:
        return kept
    sums = segment_sums(call, KEPT, n, do=do, den=den, delta=delta, prefixes=G, scanned=False)
    # The state at the edge is one more term of its neighbour.
    begin, end = ((n - 1) * KEPT, T) if reverse else (0, KEPT)
    left = (G[:, end] - G[:, begin]).sum(-1).exp2().expand(B, H).reshape(-1, 1)
    sums[-1 if reverse else 0] += left * edge
    scan_sums(call, sums, KEPT, G, reverse)
    kept[slice(None, -1) if reverse else slice(1, None)] = sums
    return kept


def run_dg(
    call: Call, out: Saved, do: Tensor, delta: Tensor | None, G: Tensor,
    kept_S: Tensor, kept_R: Tensor,
) -> Tensor:  # fmt: skip
    """dg [B, T, H] in float32. G: arguments.prefixes; kept_S, kept_R: from the other passes."""
    B, T, H, K, V = call.sizes
    q, k, v = call.q, call.k, call.v
    dg = torch.empty(B, T, H, dtype=torch.float32, device=q.device)
    kinds = precision_of(call)
    # Products in float32 take their operands from registers; 32 features fill these.
    widest = 16 if q.dtype == torch.float32 else 32
    decay_gradient_kernel[(-(-T // KEPT) * B * H,)](
        q, k, v, do, out.den, dg if delta is None else delta, kept_S, kept_R, dg, G,
        *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *do.stride()[:3],
        0 if G.shape[0] == 1 else G.stride(0),
        T, B * H, H, call.scale, call.eps, K, V,
        call.normalize, call.keeps_z, call.feature_map,
        KEPT, block(K, widest), block(V, widest),
        kinds.OPERAND, kinds.WIDE, kinds.PRECISION,
        num_warps=8, num_stages=1,
    )  # fmt: skip
    return dg
