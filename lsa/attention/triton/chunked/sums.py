"""Sums that segments add to the states, and δ from a stored output."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ...call import Call
from ..arguments import block, faded, pointer, precision_of
from ..tiles import enter, in_two, left_between, load_tile, load_tokens
from ..tuning.segments import MOST_ADDED, stages_of_sums, warps_of_sums


@triton.jit(do_not_specialize=["T", "N", "H", "L", "G", "first_segment", "s_Gb"])
def sums_kernel(
    p_b, p_c, p_den, p_delta, p_sums,
    s_bb, s_bt, s_bh, s_cb, s_ct, s_ch,
    T, N, H, L, G, first_segment, eps, p_G, s_Gb, K: tl.constexpr, V: tl.constexpr,
    REVERSE: tl.constexpr, NORMALIZE: tl.constexpr, WITH_Z: tl.constexpr,
    MAP: tl.constexpr, DECAY: tl.constexpr,
    C: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
    OPERAND: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Sums that a segment adds to a state: sum w b c^T and sum w β b. G sums for each of N heads.

    Forwards b, c = k, v and w = β = 1. Backwards b, c = q, do, w = r and β = δ. With decay, w is
    multiplied by the decay from the token to the segment's end, backwards to its first token.
    """
    n_k, n_v = tl.cdiv(K, BK), tl.cdiv(V, BV)
    pid = tl.program_id(0)
    i_v = pid % n_v
    i_k = pid // n_v % n_k
    i_g = pid // (n_v * n_k) % G
    i_bh = (pid // (n_v * n_k * G)).to(tl.int64)
    i_b, i_h = i_bh // H, i_bh % H
    p_b += i_b * s_bb + i_h * s_bh
    p_c += i_b * s_cb + i_h * s_ch
    p_den += i_b * T * H + i_h
    p_delta += i_b * T * H + i_h
    begin = (i_g + first_segment) * L
    end = tl.minimum(T, begin + L)
    if DECAY:
        p_G += i_b * s_Gb + i_h * 2

    # FOLD: z as the first of 16 columns (m as the sum of two), so that tensor cores form its sums.
    FOLD: tl.constexpr = WITH_Z and ((OPERAND == "bf16") or (OPERAND == "bf16 in fp32"))
    o_n = tl.arange(0, 16)[None, :]
    b_ones = enter(tl.full([C, 16], 1.0, dtype=tl.float32), OPERAND)
    b_S = tl.zeros([BK, BV], dtype=tl.float32)
    b_z = tl.zeros([BK], dtype=tl.float32)
    b_Z = tl.zeros([BK, 16], dtype=tl.float32)
    for i in range(tl.cdiv(end - begin, C)):
        start = begin + i * C
        b_b = load_tile(p_b, start, end, s_bt, i_k * BK, K, MAP, C, BK)
        b_c = load_tile(p_c, start, end, s_ct, i_v * BV, V, "identity", C, BV)
        if DECAY:
            o_t = tl.minimum(start + 1 + tl.arange(0, C), end)
            if REVERSE:
                left = left_between(p_G, o_t * 0 + begin, o_t, H)
            else:
                left = left_between(p_G, o_t, o_t * 0 + end, H)
            b_b = b_b.to(tl.float32) * left[:, None]
        if REVERSE and NORMALIZE:
            b_b = b_b.to(tl.float32) / (load_tokens(p_den, start, end, H, 1.0, C) + eps)[:, None]
            b_e = enter(b_b, WIDE)
            b_t = tl.trans(b_e)
            b_S += tl.dot(b_t, enter(b_c, WIDE), input_precision=PRECISION)
            if WITH_Z:
                b_delta = load_tokens(p_delta, start, end, H, 0.0, C)
                if FOLD:
                    b_1, b_2 = in_two(b_delta, WIDE)
                    b_d = tl.where(o_n == 0, b_1[:, None], b_2[:, None])
                    b_Z += tl.dot(b_t, b_d, input_precision=PRECISION)
                    if DECAY:
                        # Most of a sum with decay comes from a few tokens, whose rounding errors do
                        # not average out: m would be off by up to 4e-3.
                        b_l = tl.trans(enter(b_b - b_e.to(tl.float32), WIDE))
                        b_Z += tl.dot(b_l, b_d, input_precision=PRECISION)
                else:
                    b_z += tl.sum(b_b * b_delta[:, None], axis=0)
        else:
            b_t = tl.trans(enter(b_b, OPERAND))
            if FOLD:
                b_Z += tl.dot(b_t, b_ones, input_precision=PRECISION)
            b_d = tl.dot(b_t, enter(b_c, OPERAND), input_precision=PRECISION)
            if (MAP != "identity") or DECAY:
                # Past K there are zeros already. Masking, and only after the sum for z, keeps the
                # sum for S out of the product: inside it, each wgmma would wait for the one before
                # (C7515).
                b_d = tl.where((tl.arange(0, BK) < K - i_k * BK)[:, None], b_d, 0.0)
            b_S += b_d
            if WITH_Z and not FOLD and not REVERSE:
                b_z += tl.sum(b_b.to(tl.float32), axis=0)
    if FOLD:
        b_z = tl.sum(tl.where(o_n < (2 if REVERSE else 1), b_Z, 0.0), axis=1)

    o_k = i_k * BK + tl.arange(0, BK)
    o_v = i_v * BV + tl.arange(0, BV)
    m_k, m_v = o_k < K, o_v < V
    p_sums += (i_g.to(tl.int64) * N + i_bh) * (K * V + K)
    tl.store(p_sums + o_k[:, None] * V + o_v[None, :], b_S, mask=m_k[:, None] & m_v[None, :])
    tl.store(p_sums + K * V + o_k, b_z, mask=m_k & (i_v == 0))


@triton.jit(do_not_specialize=["SIZE", "G", "s_Gb", "T", "H", "L", "EACH"])
def scan_kernel(
    p_sums, SIZE, G, p_G, s_Gb, T, H, L, EACH,
    REVERSE: tl.constexpr, DECAY: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Running sums over G times SIZE numbers, in place; each of the SIZE is a scan of its own.

    DECAY: earlier terms decay through the L tokens of a segment. EACH: numbers a head.
    """
    o = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = o < SIZE
    b = tl.zeros([BLOCK], dtype=tl.float32)
    if DECAY:
        i_bh = tl.where(m, o // EACH, 0)
        p_G += i_bh // H * s_Gb + i_bh % H * 2
    for j in range(G):
        i_g = (G - 1 - j) if REVERSE else j
        if DECAY:
            begin = (i_g + 1 if REVERSE else i_g) * L
            b *= left_between(p_G, begin, tl.minimum(T, begin + L), H)
        p = p_sums + i_g.to(tl.int64) * SIZE + o
        b += tl.load(p, mask=m, other=0.0)
        tl.store(p, b, mask=m)


@triton.jit(do_not_specialize=["T", "H"])
def delta_kernel(
    p_o, p_do, p_delta, s_ob, s_ot, s_oh, s_db, s_dt, s_dh, T, H,
    V: tl.constexpr, C: tl.constexpr, BV: tl.constexpr,
):  # fmt: skip
    """δ_x = -do_x·o_x, which the normaliser's gradient needs of each token. 4 V bytes in bf16."""
    n_t = tl.cdiv(T, C)
    pid = tl.program_id(0)
    i_bh = (pid // n_t).to(tl.int64)
    i_b, i_h = i_bh // H, i_bh % H
    start = (pid % n_t) * C
    b_o = load_tile(p_o + i_b * s_ob + i_h * s_oh, start, T, s_ot, 0, V, "identity", C, BV).to(
        tl.float32
    )
    b_do = load_tile(p_do + i_b * s_db + i_h * s_dh, start, T, s_dt, 0, V, "identity", C, BV).to(
        tl.float32
    )
    o_t = start + tl.arange(0, C)
    p_delta += i_b * T * H + i_h + o_t.to(tl.int64) * H
    tl.store(p_delta, -tl.sum(b_o * b_do, axis=1), mask=o_t < T)


def segment_sums(
    call: Call, L: int, G: int, *, do: Tensor | None = None,
    den: Tensor | None = None, delta: Tensor | None = None, between: bool = True,
    prefixes: Tensor | None = None, scanned: bool = True,
) -> Tensor:  # fmt: skip
    """Sums of G segments of L tokens, [G - 1, B H, K V + K]: what they add to S, then to z.

    Forwards (do is None) entry j is what segment j adds. Backwards it is what segment j + 1 adds to
    R and m. Past MOST_ADDED segments, if scanned, the entries are running sums: over the segments
    up to j, or after j. With between=False all G segments are summed, each on its own, and
    returned.
    prefixes: arguments.prefixes; with them an entry has decayed to the edge of the segment that
        reads it.
    """
    B, T, H, K, V = call.sizes
    reverse = do is not None
    n = G - 1 if between else G
    sums = torch.empty(n, B * H, K * V + K, dtype=torch.float32, device=call.q.device)
    if not n:
        return sums
    b, c = (call.q, do) if reverse else (call.k, call.v)
    wide = call.q.dtype == torch.bfloat16
    BK, BV = block(K, 64), block(V, 128 if wide else 64)
    kinds = precision_of(call)
    P, s_Gb, decay = faded(prefixes, sums)
    weighted, stages, warps = reverse and call.normalize, 2, 4
    if wide:
        stages = stages_of_sums(sums.device, weighted)
        warps = warps_of_sums(sums.device, weighted, decay, max(K, V))
    sums_kernel[(-(-K // BK) * -(-V // BV) * n * B * H,)](
        b, c, pointer(den, sums), pointer(delta, sums), sums, *b.stride()[:3], *c.stride()[:3],
        T, B * H, H, L, n, 1 if reverse and between else 0, call.eps, P, s_Gb, K, V,
        reverse, call.normalize, call.normalize if reverse else call.keeps_z,
        call.feature_map, decay, 64 if wide else 32, BK, BV,
        kinds.OPERAND, kinds.WIDE, kinds.PRECISION, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    if scanned and between and G > MOST_ADDED:
        scan_sums(call, sums, L, prefixes, reverse)
    return sums


def scan_sums(call: Call, sums: Tensor, L: int, prefixes: Tensor | None, reverse: bool) -> None:
    """Turn the sums of segments of L tokens into running sums, in place."""
    n, size = sums.shape[0], sums[0].numel()
    P, s_Gb, decay = faded(prefixes, sums)
    _, T, H, _, _ = call.sizes
    scan_kernel[(-(-size // 1024),)](
        sums, size, n, P, s_Gb, T, H, L, sums.shape[-1], reverse, decay, 1024, num_warps=4
    )


def output_delta(call: Call, o: Tensor, do: Tensor) -> Tensor | None:
    """δ [B, T, H], or None when nothing is normalised."""
    if not call.normalize:
        return None
    B, T, H, _, V = call.sizes
    delta = torch.empty(B, T, H, dtype=torch.float32, device=o.device)
    C = 32
    delta_kernel[(-(-T // C) * B * H,)](
        o, do, delta, *o.stride()[:3], *do.stride()[:3], T, H, V, C, block(V), num_warps=4
    )
    return delta
