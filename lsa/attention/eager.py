"""The three modes and their gradients in plain torch, for calls that no faster body takes.

Attention and recurrent mode go forwards as in reference.py. Chunked mode is written for speed: no
padding, products written in place, and the running sum over chunks taken in place. Gradients are
explicit, so that nothing of size T x K x V or more is kept for them:

    dq = attention of (dn, [v 1], k)      dk, dv = reversed attentions of ([v 1], dn, q), (k, q, dn)

with dn = (do, -do·o) / n, the gradients of numerator and denominator.

Shapes below `forward` and `backward`: q, k [B, H, T, K], mapped, q already scaled; v, o
[B, H, T, V]; den [B, H, T].
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor

from . import reference
from .call import CHUNK_SIZE, Call, Grads, Saved, accumulator_dtype
from .feature_maps import FEATURE_MAPS, feature_slope

Five = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


def heads_of(call: Call) -> Five:
    """q, k, v, S, z of a call: mapped, scaled, heads before time, in `accumulator_dtype`."""
    B, _, H, K, V = call.sizes
    for name, x in zip("qkv", call[:3], strict=True):  # not in api.py: calls on a GPU skip it
        if x.layout is not torch.strided:
            raise ValueError(f"{name}: expected a strided tensor, got {x.layout}")
    dtype = accumulator_dtype(call.q.dtype)
    q, k, v = (x.transpose(1, 2).to(dtype) for x in (call.q, call.k, call.v))
    phi = FEATURE_MAPS[call.feature_map]
    S = q.new_zeros(B, H, K, V) if call.S is None else call.S.to(dtype)
    z = q.new_zeros(B, H, K) if call.z is None else call.z.to(dtype)
    return phi(q) * call.scale, phi(k), v, S, z


def own(x: Tensor, *others: Tensor) -> Tensor:
    """x, copied if it shares memory with others: an operator must not return its input."""
    x = x.contiguous()
    return x.clone() if any(x.data_ptr() == other.data_ptr() for other in others) else x


def keeps_exact(call: Call) -> bool:
    """Whether o is saved unrounded. Rounding it would cause half of a gradient's error."""
    return call.normalize and call.q.dtype in (torch.float16, torch.bfloat16)


def forward(call: Call) -> Saved:
    """The forward pass of a call without decay."""
    with torch.autocast(call.q.device.type, enabled=False):
        heads = *_, S, z = heads_of(call)
        o, den, S_T, z_T = _forward(*heads, call)
        o = o.transpose(1, 2)
    empty = S_T.new_empty
    return Saved(
        o=own(o.to(call.v.dtype), call.v),
        S_T=own(S_T, S),
        z_T=own(z_T, z) if call.keeps_z else empty(0),
        den=empty(0) if den is None else den.transpose(1, 2).contiguous(),
        states=empty(0),
        exact=o.contiguous() if keeps_exact(call) else empty(0),
    )


def backward(call: Call, saved: Saved, do: Tensor, dS: Tensor | None, dz: Tensor | None) -> Grads:
    """The gradients of a call without decay."""
    with torch.autocast(call.q.device.type, enabled=False):
        heads = q, _, _, S, z = heads_of(call)
        dtype = q.dtype
        o = (saved.exact if saved.exact.numel() else saved.o).transpose(1, 2).to(dtype)
        do = do.transpose(1, 2).to(dtype)
        den = saved.den.transpose(1, 2) if call.normalize else None
        dS = torch.zeros_like(S) if dS is None else dS.to(dtype)
        dz = torch.zeros_like(z) if dz is None else dz.to(dtype)
        dq, dk, dv, dS, dz = _backward(*heads, o, den, do, dS, dz, call)
        dq, dk, dv = dq.transpose(1, 2) * call.scale, dk.transpose(1, 2), dv.transpose(1, 2)
        if call.feature_map != "identity":
            dq = dq * feature_slope(call.q.to(dtype), call.feature_map)
            dk = dk * feature_slope(call.k.to(dtype), call.feature_map)
    dq, dk, dv = (x.to(call.q.dtype).contiguous() for x in (dq, dk, dv))
    return Grads(dq, dk, dv, dS.contiguous(), dz.contiguous(), dS.new_empty(0))


def chunk_major(x: Tensor, C: int) -> Tensor:
    """x [B, H, N C, D] to [N, B H, C, D], contiguous; a view when there is one head."""
    B, H, T, D = x.shape
    return x.reshape(B * H, T // C, C, D).transpose(0, 1).contiguous()


def from_chunks(x: Tensor, B: int, H: int) -> Tensor:
    """The inverse of chunk_major."""
    N, M, C, D = x.shape
    return x.transpose(0, 1).reshape(B, H, N * C, D)


def tokens(q: Tensor, k: Tensor, v: Tensor, cut: slice) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v of the tokens in `cut`."""
    return q[:, :, cut], k[:, :, cut], v[:, :, cut]


def running(first: Tensor, added: Callable[[Tensor], object], N: int, reverse: bool) -> Tensor:
    """The states around N chunks, [N + 1, ...]: entry n is before chunk n, N after the last.

    added: writes what the chunks add into a tensor [N, ...]. In reverse, the sums run from the last
    chunk, and chunk n reads entry n + 1.
    """
    states = first.new_empty(N + 1, *first.shape)
    states[-1 if reverse else 0] = first
    added(states[:N] if reverse else states[1:])
    each = states.unbind(0)
    if reverse:
        each = each[::-1]
    for before, after in pairwise(each):
        after.add_(before)
    return states


def chunked_forward(
    q: Tensor, k: Tensor, v: Tensor, S: Tensor, z: Tensor, eps: float | None, C: int
) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """o, den (None when eps is), S, z: attention inside chunks, a state between them."""
    B, H, T, K = q.shape
    whole = T // C * C
    if whole == 0:
        return _one_chunk(q, k, v, S, z, eps)
    if whole < T:
        # The tail is a shorter chunk of its own: padding would copy all tensors.
        head, tail = tokens(q, k, v, slice(whole)), tokens(q, k, v, slice(whole, T))
        o, den, S, z = chunked_forward(*head, S, z, eps, C)
        last_o, last_den, S, z = _one_chunk(*tail, S, z, eps)
        if den is not None and last_den is not None:
            den = torch.cat((den, last_den), 2)
        return torch.cat((o, last_o), 2), den, S, z
    N, M, V = T // C, B * H, v.shape[-1]
    q, k, v = (chunk_major(x, C) for x in (q, k, v))
    states = chunk_states(k, v, S.reshape(M, K, V))
    q, k, v = (x.flatten(0, 1) for x in (q, k, v))
    A = torch.bmm(q, k.transpose(1, 2)).tril_()  # [N M, C, C]
    o = torch.bmm(q, states[:N].flatten(0, 1)).baddbmm_(A, v)
    zs = torch.cat((z.reshape(1, M, K), k.view(N, M, C, K).sum(2))).cumsum(0)
    den = None
    if eps is not None:
        den = A.sum(-1, keepdim=True).baddbmm_(q, zs[:N].reshape(N * M, K, 1))
        o /= den + eps
        den = from_chunks(den.view(N, M, C, 1), B, H).squeeze(-1)
    return (
        from_chunks(o.view(N, M, C, V), B, H),
        den,
        states[N].clone().view(B, H, K, V),
        zs[N].clone().view(B, H, K),
    )


def _one_chunk(
    q: Tensor, k: Tensor, v: Tensor, S: Tensor, z: Tensor, eps: float | None
) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    A = (q @ k.transpose(-1, -2)).tril()
    o = q @ S + A @ v
    den = None
    if eps is not None:
        den = A.sum(-1) + (q @ z.unsqueeze(-1)).squeeze(-1)
        o = o / (den + eps).unsqueeze(-1)
    return o, den, S + k.transpose(-1, -2) @ v, z + k.sum(-2)


def one_token(
    q: Tensor, k: Tensor, v: Tensor, S: Tensor, z: Tensor, eps: float | None
) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """One token, as in sampling, in as few operations as possible."""
    S, z = torch.addcmul(S, k.transpose(-1, -2), v), z + k.squeeze(2)
    o, den = q @ S, None
    if eps is not None:
        den = (q.squeeze(2) * z).sum(-1, keepdim=True)
        o = o / (den + eps).unsqueeze(-1)
    return o, den, S, z


def chunk_states(k: Tensor, v: Tensor, first: Tensor, reverse: bool = False) -> Tensor:
    """The running sum of k^T v over chunks: k [N, M, C, K], v [N, M, C, V], first [M, K, V]."""

    def products(out: Tensor) -> None:
        torch.bmm(k.flatten(0, 1).transpose(1, 2), v.flatten(0, 1), out=out.flatten(0, 1))

    return running(first, products, k.shape[0], reverse)


def chunked_backward(
    q: Tensor, k: Tensor, v: Tensor, S: Tensor, z: Tensor,
    dnum: Tensor, dden: Tensor | None, dS: Tensor, dz: Tensor, C: int,
) -> Five:  # fmt: skip
    """dq, dk, dv, dS, dz from the gradients of numerator, denominator and returned state."""
    B, H, T, K = q.shape
    C = min(C, T)
    whole = T // C * C
    if whole < T:
        # Time runs backwards for dk and dv: the tail comes first and passes on its dS, dz. The
        # tail's dq needs the state before it.
        head, tail = tokens(q, k, v, slice(whole)), tokens(q, k, v, slice(whole, T))
        dn, dn_tail = dnum[:, :, :whole], dnum[:, :, whole:]
        dd, dd_tail = (None, None) if dden is None else (dden[:, :, :whole], dden[:, :, whole:])
        S_cut, z_cut = S + head[1].transpose(-1, -2) @ head[2], z + head[1].sum(-2)
        dq2, dk2, dv2, dS, dz = chunked_backward(*tail, S_cut, z_cut, dn_tail, dd_tail, dS, dz, C)
        dq, dk, dv, dS, dz = chunked_backward(*head, S, z, dn, dd, dS, dz, C)
        return torch.cat((dq, dq2), 2), torch.cat((dk, dk2), 2), torch.cat((dv, dv2), 2), dS, dz
    N, M, V = T // C, B * H, v.shape[-1]
    q, k, v, dnum = (chunk_major(x, C) for x in (q, k, v, dnum))
    states = chunk_states(k, v, S.reshape(M, K, V))[:N].flatten(0, 1)
    R = chunk_states(q, dnum, dS.reshape(M, K, V), reverse=True)
    dS, R = R[0].clone().view(B, H, K, V), R[1:].flatten(0, 1)
    q3, k3, v3, dnum3 = (x.flatten(0, 1) for x in (q, k, v, dnum))
    P = torch.bmm(dnum3, v3.transpose(1, 2))
    m = dz.reshape(1, M, K)
    if dden is not None:
        dden = chunk_major(dden.unsqueeze(-1), C)  # [N, M, C, 1]
        P += dden.flatten(0, 1)
        added = torch.bmm(dden.flatten(0, 1).transpose(1, 2), q3).view(N, M, K)
        m = torch.cat((added, m)).flip(0).cumsum(0).flip(0)
    P.tril_()
    dq = torch.bmm(dnum3, states.transpose(1, 2)).baddbmm_(P, k3)
    dk = torch.bmm(v3, R.transpose(1, 2)).baddbmm_(P.transpose(1, 2), q3)
    if dden is not None:
        zs = torch.cat((z.reshape(1, M, K), k[: N - 1].sum(2))).cumsum(0)
        dq.baddbmm_(dden.flatten(0, 1), zs.view(N * M, 1, K))
        dk += m[1:].reshape(N * M, 1, K)
    else:
        dk.view(N, M, C, K).add_(m.unsqueeze(2))
    A = torch.bmm(q3, k3.transpose(1, 2)).tril_()
    dv = torch.bmm(k3, R).baddbmm_(A.transpose(1, 2), dnum3)
    dq, dk, dv = (from_chunks(x.view(N, M, C, x.shape[-1]), B, H) for x in (dq, dk, dv))
    return dq, dk, dv, dS, m[0].clone().view(B, H, K)


def recurrent_backward(
    q: Tensor, k: Tensor, v: Tensor, S: Tensor, z: Tensor,
    dnum: Tensor, dden: Tensor | None, dS: Tensor, dz: Tensor,
) -> Five:  # fmt: skip
    """The same gradients token by token: forwards in time for dq, then backwards for dk and dv."""
    dq, dk, dv = (torch.empty_like(x, memory_format=torch.contiguous_format) for x in (q, k, v))
    T = q.shape[2]
    for t in range(T):
        S = S + k[:, :, t, :, None] * v[:, :, t, None, :]
        dq[:, :, t] = (S @ dnum[:, :, t, :, None]).squeeze(-1)
        if dden is not None:
            z = z + k[:, :, t]
            dq[:, :, t] += z * dden[:, :, t, None]
    for t in range(T - 1, -1, -1):
        dS = dS + q[:, :, t, :, None] * dnum[:, :, t, None, :]
        if dden is not None:
            dz = dz + q[:, :, t] * dden[:, :, t, None]
        dk[:, :, t] = (dS @ v[:, :, t, :, None]).squeeze(-1) + dz
        dv[:, :, t] = (k[:, :, t, None, :] @ dS).squeeze(-2)
    return dq, dk, dv, dS.clone(), dz.clone()


def _forward(
    q: Tensor, k: Tensor, v: Tensor, S: Tensor, z: Tensor, call: Call
) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """o, den (None when nothing is normalised), S, z."""
    eps = call.eps if call.normalize else None
    if call.mode == "chunked":
        return chunked_forward(q, k, v, S, z, eps, call.chunk_size or CHUNK_SIZE)
    if call.mode == "recurrent" and q.shape[2] == 1:
        return one_token(q, k, v, S, z, eps)
    run = reference.attention_mode if call.mode == "attention" else reference.recurrent_mode
    if eps is None:
        o, S, z = run(q, k, v, S, z, None)
        return o, None, S, z
    # The denominator is one more column of the values: a sum over the constant value 1.
    v_1, S_z = F.pad(v, (0, 1), value=1.0), torch.cat((S, z.unsqueeze(-1)), -1)
    num, S_z, z = run(q, k, v_1, S_z, z, None)
    den = num[..., -1]
    return num[..., :-1] / (den + eps).unsqueeze(-1), den, S_z[..., :-1].contiguous(), z


def _backward(
    q: Tensor, k: Tensor, v: Tensor, S: Tensor, z: Tensor,
    o: Tensor, den: Tensor | None, do: Tensor, dS: Tensor, dz: Tensor, call: Call,
) -> Five:  # fmt: skip
    """dq (of the scaled q), dk, dv, dS, dz."""
    dden = None
    if den is not None:
        r = 1 / (den + call.eps)
        dden = -(do * o).sum(-1) * r
        do = do * r.unsqueeze(-1)
    if call.mode == "recurrent" or q.shape[2] == 0:
        return recurrent_backward(q, k, v, S, z, do, dden, dS, dz)
    C = q.shape[2] if call.mode == "attention" else call.chunk_size or CHUNK_SIZE
    return chunked_backward(q, k, v, S, z, do, dden, dS, dz, C)
