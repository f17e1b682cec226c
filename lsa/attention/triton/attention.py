"""Attention mode: every product q_i·k_j in tiles, none of them stored.

    o_i = scale / n_i [ sum_{j<=i} (φ(q_i)·φ(k_j)) v_j + φ(q_i) S_0 ]
    n_i = scale [ sum_{j<=i} φ(q_i)·φ(k_j) + φ(q_i)·z_0 ] + eps       (or 1 for the sum alone)

Per token and head, with tiles of C tokens: T (K + V) FLOPs forwards and 5 T (K + V) / 2 backwards,
where chunked mode has a constant. Bytes: 8 D forwards as long as k and v of a head stay in the L2
cache (0.25 D T / C more from there). A program owns one tile of rows, keeps its sum on chip and
walks over the columns, so T / C · B H programs run at once. This is the mode for short sequences on
an idle GPU. The chunked kernel is checked against it.

The gradients are the same sum in three more roles (causal_sums.py), each a launch of its own, with
tiles from tuning/plan.py. Decay multiplies every product. Its gradient is computed as in chunked
mode (chunked/dg.py), from states formed for it alone.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..call import Call, Grads, Saved
from .arguments import (
    addressable,
    as_state,
    block,
    empty_grads,
    empty_saved,
    faded,
    pointer,
    precision_of,
    prefixes,
    prepare,
    rounded_grads,
    rounded_saved,
)
from .causal_sums import Role, dk_role, dq_role, dv_role, forward_role
from .chunked.dg import kept_states, run_dg
from .chunked.sums import segment_sums
from .tiles import (
    enter,
    in_two,
    left_between,
    load_tile,
    load_tokens,
    slope,
    store_tile,
    store_tokens,
)
from .tuning.plan import Tiles, tiles_of


@triton.jit(do_not_specialize=["T", "H", "s_Gb"])
def tile_kernel(
    p_a, p_b, p_c, p_raw, p_out, p_den, p_delta, p_first, p_first_z,
    s_ab, s_at, s_ah, s_bb, s_bt, s_bh, s_cb, s_ct, s_ch, s_rb, s_rt, s_rh,
    s_ob, s_ot, s_oh,
    s_ma, s_mc, first_factor,
    T, H, scale, eps, p_G, s_Gb, A: tl.constexpr, D: tl.constexpr,
    ROLE: tl.constexpr, NORMALIZE: tl.constexpr,
    MAP_A: tl.constexpr, MAP_B: tl.constexpr, MAP_C: tl.constexpr, SLOPE: tl.constexpr,
    FIRST: tl.constexpr, FIRST_Z: tl.constexpr, FOLD: tl.constexpr, DECAY: tl.constexpr,
    C: tl.constexpr, BA: tl.constexpr, BD: tl.constexpr,
    OPERAND: tl.constexpr, WIDE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """C rows of one head and BD features of the output, over all columns that they may see."""
    REVERSE: tl.constexpr = (ROLE == "dk") or (ROLE == "dv")
    n_d, n_t = tl.cdiv(D, BD), tl.cdiv(T, C)
    pid = tl.program_id(0)
    i_d = pid % n_d
    i_t = pid // n_d % n_t
    i_bh = (pid // (n_d * n_t)).to(tl.int64)
    i_b, i_h = i_bh // H, i_bh % H
    p_a += i_b * s_ab + i_h * s_ah
    p_b += i_b * s_bb + i_h * s_bh
    p_c += i_b * s_cb + i_h * s_ch
    p_raw += i_b * s_rb + i_h * s_rh
    p_out += i_b * s_ob + i_h * s_oh
    p_den += i_b * T * H + i_h
    p_delta += i_b * T * H + i_h
    x = i_t * C
    o_x = tl.arange(0, C)
    o_a = tl.arange(0, BA)
    o_d = i_d * BD + tl.arange(0, BD)
    m_a, m_d = o_a < A, o_d < D
    if REVERSE:
        m_A = o_x[:, None] <= o_x[None, :]
        n_y = n_t - i_t
    else:
        m_A = o_x[:, None] >= o_x[None, :]
        n_y = i_t + 1
    if DECAY:
        p_G += i_b * s_Gb + i_h * 2
        # Prefix sums at each row's own token, and the decay between the row and the state.
        o_G = tl.minimum(x + 1 + o_x, T)
        b_G1 = tl.load(p_G + o_G.to(tl.int64) * 2 * H)
        b_G2 = tl.load(p_G + o_G.to(tl.int64) * 2 * H + 1)
        if REVERSE:
            b_left = left_between(p_G, o_G, o_G * 0 + T, H)
        else:
            b_left = left_between(p_G, o_G * 0, o_G, H)
            before = left_between(p_G, x * 0, x, H)

    # 1. The rows, and the part that they read from the state before the first token.
    b_a = enter(load_tile(p_a, x, T, s_at, 0, A, MAP_A, C, BA), OPERAND)
    b_o = tl.zeros([C, BD], dtype=tl.float32)
    b_n = tl.zeros([C], dtype=tl.float32)
    b_m = tl.zeros([BD], dtype=tl.float32)
    # SPLIT_FIRST: φ(k) as in dkv_kernel, and S where δ is formed, as in dq_kernel.
    MAPPED_A: tl.constexpr = (MAP_A != "identity") and (MAP_A != "relu")
    SPLIT_FIRST: tl.constexpr = FOLD and (MAPPED_A or ((ROLE == "dq") and NORMALIZE))
    if FIRST:
        # In slices: a wide state would not fit into shared memory.
        BS: tl.constexpr = 64 if BA > 64 else BA
        for j in tl.static_range(0, BA, BS):
            o_s = j + tl.arange(0, BS)
            o_M = o_s[:, None] * s_ma + o_d[None, :] * s_mc
            m_M = (o_s < A)[:, None] & m_d[None, :]
            b_M = tl.load(p_first + i_bh * A * D + o_M, mask=m_M, other=0.0) * first_factor
            b_f = load_tile(p_a, x, T, s_at, j, A, MAP_A, C, BS)
            b_s = enter(b_f, OPERAND)
            b_o += tl.dot(enter(b_s, WIDE), enter(b_M, WIDE), input_precision=PRECISION)
            if ROLE == "dv" and SPLIT_FIRST:
                b_f = enter(b_f - b_s.to(tl.float32), WIDE)
                b_o += tl.dot(b_f, enter(b_M, WIDE), input_precision=PRECISION)
            if ROLE == "dq" and SPLIT_FIRST:
                b_M = enter(b_M - enter(b_M, WIDE).to(tl.float32), WIDE)
                b_o += tl.dot(enter(b_s, WIDE), b_M, input_precision=PRECISION)
        if DECAY:
            b_o *= b_left[:, None]
    if FIRST_Z and ROLE == "o":
        b_z = tl.load(p_first_z + i_bh * A + o_a, mask=m_a, other=0.0) * first_factor
        b_n += tl.sum(b_a.to(tl.float32) * b_z[None, :], axis=1)
        if DECAY:
            b_n *= b_left
    if FIRST_Z and (ROLE == "dq" or ROLE == "dk"):
        b_m += tl.load(p_first_z + i_bh * D + o_d, mask=m_d, other=0.0) * first_factor
        if DECAY and ROLE == "dq":
            b_m *= before

    # 2. The columns, the rows' own tile last. SPLIT: as in dq_kernel and dkv_kernel.
    ROUNDS: tl.constexpr = (MAP_C != "identity") and (MAP_C != "relu")
    SPLIT: tl.constexpr = ((ROLE == "dq") or (ROLE == "dk")) and FOLD and ROUNDS
    # SPLIT_A: δ is formed from dq's products; dq_kernel says why these enter in two tiles.
    SPLIT_A: tl.constexpr = (ROLE == "dq") and NORMALIZE and FOLD
    for i in range(n_y):
        if REVERSE:
            y = (n_t - 1 - i) * C
        else:
            y = i * C
        b_b = enter(load_tile(p_b, y, T, s_bt, 0, A, MAP_B, C, BA), OPERAND)
        b_c = load_tile(p_c, y, T, s_ct, i_d * BD, D, MAP_C, C, BD)
        b_A = tl.dot(b_a, tl.trans(b_b), input_precision=PRECISION)
        if REVERSE and NORMALIZE:
            b_w = 1.0 / (load_tokens(p_den, y, T, H, 1.0, C) + eps)
            if ROLE == "dk":
                b_e = load_tokens(p_delta, y, T, H, 0.0, C)
                b_A += b_e[None, :]
            b_A *= b_w[None, :]
        m_xy = m_A | (i < n_y - 1)
        if DECAY:
            o_y = tl.minimum(y + 1 + o_x, T)
            b_y1 = tl.load(p_G + o_y.to(tl.int64) * 2 * H)
            b_y2 = tl.load(p_G + o_y.to(tl.int64) * 2 * H + 1)
            gap = (b_G1[:, None] - b_y1[None, :]) + (b_G2[:, None] - b_y2[None, :])
            # Outside the mask an exponential could overflow.
            b_A *= tl.exp2(tl.where(m_xy, -gap if REVERSE else gap, float("-inf")))
        b_A = tl.where(m_xy, b_A, 0.0)
        if ROLE == "o" and NORMALIZE:
            b_n += tl.sum(b_A, axis=1)
        if ROLE == "dq" and NORMALIZE:
            b_1 = b_c.to(tl.float32)
            if DECAY:
                b_1 *= left_between(p_G, tl.minimum(o_y, x), o_y * 0 + x, H)[:, None]
            b_m += tl.where(i < n_y - 1, tl.sum(b_1, axis=0), 0.0)
        if ROLE == "dv" and MAP_A != "identity":
            # Past D there are zeros already. We mask for the reason given in sums_kernel.
            b_d = tl.dot(enter(b_A, WIDE), enter(b_c, WIDE), input_precision=PRECISION)
            b_o += tl.where(m_d[None, :], b_d, 0.0)
        else:
            b_o = tl.dot(enter(b_A, WIDE), enter(b_c, WIDE), b_o, input_precision=PRECISION)
        if SPLIT:
            b_l = enter(b_c - enter(b_c, WIDE).to(tl.float32), WIDE)
            b_o = tl.dot(enter(b_A, WIDE), b_l, b_o, input_precision=PRECISION)
        if SPLIT_A:
            b_a2 = enter(b_A - enter(b_A, WIDE).to(tl.float32), WIDE)
            b_o = tl.dot(b_a2, enter(b_c, WIDE), b_o, input_precision=PRECISION)

    # 3. The normaliser.
    if ROLE == "o" and NORMALIZE:
        b_n *= scale
        if i_d == 0:
            store_tokens(b_n, p_den, x, T, H, C)
        b_o *= (scale / (b_n + eps))[:, None]
    else:
        if ROLE == "dq" and NORMALIZE:
            # δ, and n again, as in dq_kernel.
            b_k = load_tile(p_c, x, T, s_ct, 0, D, MAP_C, C, BD)
            b_1 = enter(b_k, OPERAND)
            if DECAY:
                gap = (b_G1[:, None] - b_G1[None, :]) + (b_G2[:, None] - b_G2[None, :])
                b_w = tl.exp2(tl.where(m_A, gap, float("-inf")))
                b_past = left_between(p_G, o_x * 0 + x, tl.minimum(x + 1 + o_x, T), H)[:, None]
                b_past = b_past * b_m[None, :]
            else:
                b_w = m_A
                b_past = tl.zeros([C, BD], dtype=tl.float32) + b_m[None, :]
            if DECAY and FOLD:
                b_w1, b_w2 = in_two(b_w, OPERAND)
            else:
                b_w1 = enter(b_w, OPERAND)
            b_past += tl.dot(b_w1, b_1, input_precision=PRECISION)
            if SPLIT:
                b_l = enter(b_k - b_1.to(tl.float32), OPERAND)
                b_past = tl.dot(b_w1, b_l, b_past, input_precision=PRECISION)
            if DECAY and FOLD:
                # Without decay the weights are 1, which needs no second tile.
                b_past = tl.dot(b_w2, b_1, b_past, input_precision=PRECISION)
            b_q = load_tile(p_raw, x, T, s_rt, 0, D, MAP_C, C, BD)
            b_r = 1.0 / (scale * tl.sum(b_q.to(tl.float32) * b_past, axis=1) + eps)
            b_delta = -scale * b_r * tl.sum(b_q.to(tl.float32) * b_o, axis=1)
            store_tokens(b_delta, p_delta, x, T, H, C)
            b_o = (b_o + b_delta[:, None] * b_past) * b_r[:, None]
        if ROLE == "dk" and FIRST_Z:
            b_o += b_m[None, :] * b_left[:, None] if DECAY else b_m[None, :]
        b_o *= scale
    if SLOPE != "identity":
        b_raw = load_tile(p_raw, x, T, s_rt, i_d * BD, D, "identity", C, BD)
        b_o *= slope(b_raw.to(tl.float32), SLOPE)
    store_tile(b_o, p_out, x, T, s_ot, i_d * BD, D, C, BD)


def run_tiles(
    call: Call, role: Role, tiles: Tiles, den: Tensor, delta: Tensor, G: Tensor | None
) -> None:
    """Launch tile_kernel for one role. G: arguments.prefixes."""
    B, T, H, _, V = call.sizes
    A, D = role.a.shape[-1], role.c.shape[-1]
    wide = call.q.dtype == torch.bfloat16
    C, BD, num_warps = tiles
    raw = pointer(role.raw, role.out)
    P, s_Gb, decay = faded(G, role.out)
    tile_kernel[(-(-D // BD) * -(-T // C) * B * H,)](
        role.a, role.b, role.c, raw, role.out, den, delta,
        pointer(role.first, role.out), pointer(role.first_z, role.out),
        *role.a.stride()[:3], *role.b.stride()[:3], *role.c.stride()[:3], *raw.stride()[:3],
        *role.out.stride()[:3],
        *role.state_strides(V), role.first_factor,
        T, H, call.scale, call.eps, P, s_Gb, A=A, D=D,
        ROLE=role.name, NORMALIZE=call.normalize,
        MAP_A=role.maps[0], MAP_B=role.maps[1], MAP_C=role.maps[2], SLOPE=role.slope,
        FIRST=role.first is not None, FIRST_Z=role.with_z and role.first_z is not None, FOLD=wide,
        DECAY=decay, C=C, BA=block(A), BD=BD, **precision_of(call).arguments(),
        num_warps=num_warps, num_stages=2 if wide else 1,
    )  # fmt: skip


SUMMED = 1024  # tokens a program sums where only the last state is needed


def sums_kept(call: Call) -> int:
    """How many sums between segments forward() returns: none."""
    return 0


def keeps_exact(call: Call) -> bool:
    """Whether forward() keeps o unrounded: every program forms δ by itself."""
    return False


def _totals(
    call: Call,
    sums: Tensor,
    factor: float,
    S: Tensor | None,
    z: Tensor | None,
    G: Tensor | None,
    reverse: bool,
) -> tuple[Tensor, Tensor]:
    """S and z after the text (in reverse R and m before it), from the segments' own sums.

    sums: as segment_sums gives them with between=False; they are multiplied by factor.
    S, z: the state at the other end, added as it is. G: arguments.prefixes.
    """
    B, T, H, K, V = call.sizes
    left = sums.new_ones(1, 1, 1)
    if G is not None:
        # Decay of a segment's sum, and of the state at the other end.
        cuts = torch.arange(sums.shape[0] + reverse, device=G.device)
        cuts = ((cuts + (not reverse)) * SUMMED).clamp(max=T)
        at = G[:, cuts]  # [B or 1, segments, H, 2]
        gap = at[:, :-1] - G[:, :1] if reverse else G[:, -1:] - at
        weights = gap.sum(-1).exp2().expand(B, -1, -1).transpose(0, 1).reshape(-1, B * H, 1)
        sums = sums * weights
        left = (G[:, -1] - G[:, 0]).sum(-1).exp2().expand(B, H).unsqueeze(-1)
    total = sums.sum(0) * factor
    S_end, z_end = total[:, : K * V].view(B, H, K, V), total[:, K * V :].view(B, H, K)
    if S is not None:
        S_end = S_end + left[..., None] * S
    return S_end, z_end if z is None else z_end + left * z


def forward(call: Call) -> Saved:
    """o and what the backward pass needs."""
    call = prepare(call)
    T = call.q.shape[1]
    out, G = empty_saved(call, exact=False), prefixes(call.g, T)
    run_tiles(call, forward_role(call, out), tiles_of(call)["o"], out.den, out.den, G)
    sums = segment_sums(call, SUMMED, -(-T // SUMMED), between=False, prefixes=G)
    S_T, z_T = _totals(call, sums, 1.0, call.S, call.z, G, reverse=False)
    out = out._replace(S_T=S_T, z_T=z_T if call.keeps_z else out.z_T)
    return rounded_saved(call, out, exact=False)


def backward(call: Call, out: Saved, do: Tensor, dS: Tensor | None, dz: Tensor | None) -> Grads:
    """The gradients, from those of o and of the returned state (None where there is none)."""
    call, do = prepare(call), addressable(do)
    dS, dz = as_state(dS), as_state(dz)
    T = call.q.shape[1]
    grads, G = empty_grads(call), prefixes(call.g, T)
    delta, tiles = torch.empty_like(out.den), tiles_of(call)
    for role in (
        dq_role(call, do, grads),
        dk_role(call, do, grads, dS, dz),
        dv_role(call, do, grads, dS),
    ):
        run_tiles(call, role, tiles[role.name], out.den, delta, G)
    reads = {"do": do, "den": out.den, "delta": delta}
    sums = segment_sums(call, SUMMED, -(-T // SUMMED), **reads, between=False, prefixes=G)
    dS_0, dz_0 = _totals(call, sums, call.scale, dS, dz, G, reverse=True)
    grads = grads._replace(dS=dS_0, dz=dz_0)
    if call.with_dg:
        kept_S = kept_states(call, G, call.S, call.z)
        kept_R = kept_states(call, G, dS, dz, 1.0 / call.scale, **reads)
        grads = grads._replace(dg=run_dg(call, out, do, delta, G, kept_S, kept_R))
    return rounded_grads(call, grads)
