"""Recurrent mode: the state, token by token, in one fused pass.

    S_i = S_{i-1} + φ(k_i) v_i^T      z_i = z_{i-1} + φ(k_i)
    o_i = scale φ(q_i) S_i / (scale φ(q_i)·z_i + eps)               (or the numerator alone)

Per token and head: 4 K V FLOPs and 8 D bytes forwards, 12 K V FLOPs and 24 D + 16 bytes backwards.
The backward pass is three passes, and reads o in float32 once more if it is normalised. Tokens
share only the state, so there is no work for tensor cores, and T steps follow each other. Latency
is the limit: a token takes about the same time at any size. For a single token (T = 1) this is the
best mode: the state is read and written once, 8 K V bytes, by B H V / 16 programs.

The gradients are the same sum in three more roles (causal_sums.py), two of them backwards in time.
Decay multiplies S and z by exp(g_i) before token i enters, and R and m by exp(g_{i+1}). The
gradient of g is computed as in chunked mode (chunked/dg.py). It needs S and R around every KEPT
tokens, which the passes for dq and dk store.
"""

from __future__ import annotations

from dataclasses import replace

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
    pointer,
    prefixes,
    prepare,
    rounded_grads,
    rounded_saved,
)
from .causal_sums import Role, dk_role, dq_role, dv_role, forward_role
from .chunked.dg import empty_kept, run_dg
from .chunked.sums import output_delta
from .tiles import feature, slope
from .tuning.plan import KEPT


@triton.jit
def load_row(p, t, s_t, o_d, m_d, m_t, MAP: tl.constexpr):
    """The features of one token in float32, mapped; zeros where m_t or m_d is false."""
    m = m_d & m_t
    x = tl.load(p + t.to(tl.int64) * s_t + o_d, mask=m, other=0.0).to(tl.float32)
    if MAP != "identity":
        x = tl.where(m, feature(x, MAP), 0.0)
    return x


@triton.jit(do_not_specialize=["T", "H", "A", "D", "s_gb", "s_gt", "step"])
def step_kernel(
    p_a, p_b, p_c, p_raw, p_out, p_den, p_delta, p_first, p_first_z, p_last, p_last_z,
    s_ab, s_at, s_ah, s_bb, s_bt, s_bh, s_cb, s_ct, s_ch, s_rb, s_rt, s_rh,
    s_ob, s_ot, s_oh,
    s_ma, s_mc, first_factor, last_factor,
    T, H, A, D, scale, eps, p_g, s_gb, s_gt, p_kept, step,
    ROLE: tl.constexpr, NORMALIZE: tl.constexpr, WITH_Z: tl.constexpr,
    MAP_A: tl.constexpr, MAP_B: tl.constexpr, MAP_C: tl.constexpr, SLOPE: tl.constexpr,
    FIRST: tl.constexpr, FIRST_Z: tl.constexpr, LAST: tl.constexpr, LAST_Z: tl.constexpr,
    DECAY: tl.constexpr, KEEP: tl.constexpr, KEPT: tl.constexpr,
    BA: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """One head, BD features of the output, from the first token to the last (or back).

    KEEP: store the state before every KEPT tokens, `step` numbers apart; in REVERSE after them.
    """
    REVERSE: tl.constexpr = (ROLE == "dk") or (ROLE == "dv")
    KEEP_BEFORE: tl.constexpr = KEEP and (ROLE == "dq")
    KEEP_AFTER: tl.constexpr = KEEP and (ROLE == "dk")
    n_d = tl.cdiv(D, BD)
    pid = tl.program_id(0)
    i_d = pid % n_d
    i_bh = (pid // n_d).to(tl.int64)
    i_b, i_h = i_bh // H, i_bh % H
    p_a += i_b * s_ab + i_h * s_ah
    p_b += i_b * s_bb + i_h * s_bh
    p_c += i_b * s_cb + i_h * s_ch
    p_raw += i_b * s_rb + i_h * s_rh
    p_out += i_b * s_ob + i_h * s_oh
    p_den += i_b * T * H + i_h
    p_delta += i_b * T * H + i_h
    if DECAY:
        p_g += i_b * s_gb + i_h
    if KEEP:
        p_kept += i_bh * (A * D + D)
    o_a = tl.arange(0, BA)
    o_d = i_d * BD + tl.arange(0, BD)
    m_a, m_d = o_a < A, o_d < D
    m_M = m_a[:, None] & m_d[None, :]
    o_M = o_a[:, None] * s_ma + o_d[None, :] * s_mc

    b_M = tl.zeros([BA, BD], dtype=tl.float32)
    b_z = tl.zeros([BA], dtype=tl.float32)
    b_m = tl.zeros([BD], dtype=tl.float32)
    if FIRST:
        b_M += tl.load(p_first + i_bh * A * D + o_M, mask=m_M, other=0.0) * first_factor
    if FIRST_Z and ROLE == "o":
        b_z += tl.load(p_first_z + i_bh * A + o_a, mask=m_a, other=0.0) * first_factor
    if FIRST_Z and (ROLE == "dq" or ROLE == "dk"):
        b_m += tl.load(p_first_z + i_bh * D + o_d, mask=m_d, other=0.0) * first_factor

    # Load the next token while this one is computed.
    if REVERSE:
        t = T - 1 + i_d * 0
        ahead = -1
    else:
        t = i_d * 0
        ahead = 1
    b_a = load_row(p_a, t, s_at, o_a, m_a, T > 0, MAP_A)
    b_b = load_row(p_b, t, s_bt, o_a, m_a, T > 0, MAP_B)
    b_c = load_row(p_c, t, s_ct, o_d, m_d, T > 0, MAP_C)
    for i in range(T):
        more = i + 1 < T
        n_a = load_row(p_a, t + ahead, s_at, o_a, m_a, more, MAP_A)
        n_b = load_row(p_b, t + ahead, s_bt, o_a, m_a, more, MAP_B)
        n_c = load_row(p_c, t + ahead, s_ct, o_d, m_d, more, MAP_C)
        p_t = t.to(tl.int64) * H
        if NORMALIZE and ROLE != "o":
            r = 1.0 / (tl.load(p_den + p_t) + eps)
        if NORMALIZE and (ROLE == "dq" or ROLE == "dk"):
            delta = tl.load(p_delta + p_t)
        # 1. The state decays, and the token enters it.
        if KEEP_BEFORE and t % KEPT == 0:
            p_n = p_kept + (t // KEPT).to(tl.int64) * step
            tl.store(p_n + o_M, b_M, mask=m_M)
            if WITH_Z:
                tl.store(p_n + A * D + o_d, b_m, mask=m_d)
        if DECAY:
            if REVERSE:
                # After the last token nothing decays.
                b_g = tl.load(p_g + (t + 1).to(tl.int64) * s_gt, mask=i > 0, other=0.0)
            else:
                b_g = tl.load(p_g + t.to(tl.int64) * s_gt)
            left = tl.exp(b_g)
            b_M *= left
            b_z *= left
            b_m *= left
        if KEEP_AFTER and ((i == 0) | ((t + 1) % KEPT == 0)):
            p_n = p_kept + (t // KEPT).to(tl.int64) * step
            tl.store(p_n + o_M, b_M, mask=m_M)
            if WITH_Z:
                tl.store(p_n + A * D + o_d, b_m, mask=m_d)
        if REVERSE and NORMALIZE:
            b_c *= r
        b_M += b_b[:, None] * b_c[None, :]
        if ROLE == "o" and WITH_Z:
            b_z += b_b
        if ROLE == "dq" and WITH_Z:
            b_m += b_c
        if ROLE == "dk" and NORMALIZE:
            b_m += b_c * delta
        # 2. The row reads it.
        b_o = tl.sum(b_a[:, None] * b_M, axis=0)
        if ROLE == "o" and NORMALIZE:
            n = scale * tl.sum(b_a * b_z, axis=0)
            if i_d == 0:
                tl.store(p_den + p_t, n)
            b_o *= scale / (n + eps)
        else:
            if ROLE == "dq" and NORMALIZE:
                b_o = (b_o + delta * b_m) * r
            if ROLE == "dk" and WITH_Z:
                b_o += b_m
            b_o *= scale
        if SLOPE != "identity":
            b_raw = load_row(p_raw, t, s_rt, o_d, m_d, True, "identity")
            b_o *= slope(b_raw, SLOPE)
        p_o = p_out + t.to(tl.int64) * s_ot + o_d
        tl.store(p_o, b_o.to(p_out.dtype.element_ty), mask=m_d)
        b_a, b_b, b_c = n_a, n_b, n_c
        t += ahead

    if DECAY and REVERSE:
        left = tl.exp(tl.load(p_g, mask=T > 0, other=0.0))
        b_M *= left
        b_m *= left
    if LAST:
        tl.store(p_last + i_bh * A * D + o_M, b_M * last_factor, mask=m_M)
    if LAST_Z and ROLE == "o":
        tl.store(p_last_z + i_bh * A + o_a, b_z * last_factor, mask=m_a & (i_d == 0))
    if LAST_Z and ROLE == "dk":
        tl.store(p_last_z + i_bh * D + o_d, b_m * last_factor, mask=m_d)


def run_steps(
    call: Call, role: Role, den: Tensor, delta: Tensor | None, kept: Tensor | None = None
) -> None:
    """Launch step_kernel for one role. kept: memory from dg.empty_kept, which dq and dk write."""
    B, T, H, _, V = call.sizes
    A, D = role.a.shape[-1], role.c.shape[-1]
    like = role.out
    raw = pointer(role.raw, like)
    BA, BD = block(A), 16
    # With decay and a normaliser, the gradients of 64 features need more registers than a warp has.
    widest = 32 if call.g is not None and call.normalize else 64
    warps = 1 if widest >= BA else 2 if BA <= 128 else 4
    g, s_gb, s_gt = like, 0, 0
    if call.g is not None:
        g = call.g.detach().to(torch.float32).contiguous()
        s_gb, s_gt = (0 if n == 1 else s for n, s in zip(g.shape[:2], g.stride()[:2], strict=True))
    step_kernel[(-(-D // BD) * B * H,)](
        role.a, role.b, role.c, raw, role.out, den, pointer(delta, den),
        pointer(role.first, like), pointer(role.first_z, like),
        pointer(role.last, like), pointer(role.last_z, like),
        *role.a.stride()[:3], *role.b.stride()[:3], *role.c.stride()[:3], *raw.stride()[:3],
        *role.out.stride()[:3],
        *role.state_strides(V), role.first_factor, role.last_factor,
        T, H, A, D, call.scale, call.eps,
        g, s_gb, s_gt, pointer(kept, like), 0 if kept is None else kept.stride(0),
        ROLE=role.name, NORMALIZE=call.normalize, WITH_Z=role.with_z,
        MAP_A=role.maps[0], MAP_B=role.maps[1], MAP_C=role.maps[2], SLOPE=role.slope,
        FIRST=role.first is not None, FIRST_Z=role.with_z and role.first_z is not None,
        LAST=role.last is not None, LAST_Z=role.last_z is not None,
        DECAY=call.g is not None, KEEP=kept is not None, KEPT=KEPT,
        BA=BA, BD=BD, num_warps=warps,
    )  # fmt: skip


def sums_kept(call: Call) -> int:
    """How many sums between segments forward() returns: none."""
    return 0


def keeps_exact(call: Call) -> bool:
    """Whether forward() keeps o unrounded, for the gradient of the normaliser."""
    return call.normalize and call.q.dtype in (torch.float16, torch.bfloat16)


def forward(call: Call) -> Saved:
    """o and what the backward pass needs."""
    call = prepare(call)
    exact = keeps_exact(call)
    out = empty_saved(call, exact)
    run_steps(call, forward_role(call, out), out.den, None)
    return rounded_saved(call, out, exact)


def backward(call: Call, out: Saved, do: Tensor, dS: Tensor | None, dz: Tensor | None) -> Grads:
    """The gradients, from those of o and of the returned state (None where there is none)."""
    call, do = prepare(call), addressable(do)
    dS, dz = as_state(dS), as_state(dz)
    grads = empty_grads(call)
    delta = output_delta(call, out.exact if keeps_exact(call) else out.o, do)
    kept_S, kept_R = (empty_kept(call) if call.with_dg else None for _ in range(2))
    dq, dk = dq_role(call, do, grads), dk_role(call, do, grads, dS, dz)
    if call.with_dg:
        dq = replace(dq, with_z=dk.with_z)  # dg asks for z where it asks for m
    run_steps(call, dq, out.den, delta, kept_S)
    run_steps(call, dk, out.den, delta, kept_R)
    run_steps(call, dv_role(call, do, grads, dS), out.den, delta)
    G = prefixes(call.g, call.q.shape[1]) if call.with_dg else None
    if G is not None and kept_S is not None and kept_R is not None:
        grads = grads._replace(dg=run_dg(call, out, do, delta, G, kept_S, kept_R))
    return rounded_grads(call, grads)
