"""The three modes and their gradients in plain torch: what runs where no faster body does.

Recurrent mode goes forwards as reference.py says. Attention mode is chunked mode with one chunk.
That is written for speed: no padding, no product with a state that is zero, each tensor is copied
once at most, into chunks, and a CPU takes a long text in pieces. Gradients are explicit, so that
nothing of size T x K x V or more is kept for them:

    dq = attention of (dn, [v 1], k)      dk, dv = reversed attentions of ([v 1], dn, q), (k, q, dn)

with dn = (do, -do·o) / n, the gradients of numerator and denominator.

Shapes: of a call in the public layout, q, k [B, T, H, K], mapped, q already scaled; v, o
[B, T, H, V]; den [B, T, H]. In chunks [N M, C, ...]: N chunks of C tokens, and in each the M = B H
heads, whose states are [M, K, V] and [M, K, 1].
"""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from . import reference
from .call import (
    CHUNK_SIZE,
    Call,
    Grads,
    Saved,
    accumulator_dtype,
    check_layouts,
    without_autocast,
)
from .feature_maps import FEATURE_MAPS, feature_slope

CACHED = 2**17  # numbers of a piece's largest tensor; it is faster to cut than to leave the cache

Five = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


def tokens_of(call: Call) -> tuple[Tensor, Tensor, Tensor]:
    """q, k, v of a call: mapped, scaled, in the dtype of sums."""
    check_layouts(call)  # here, where it costs a GPU's calls nothing
    q, k, v = (x.to(accumulator_dtype(x.dtype)) for x in call[:3])
    phi = FEATURE_MAPS[call.feature_map]
    return phi(q) * call.scale, phi(k), v


def states_of(call: Call) -> tuple[Tensor, Tensor]:
    """S and z of a call in the dtype of sums, zeros where it has none."""
    B, _, H, K, V = call.sizes
    dtype = accumulator_dtype(call.q.dtype)
    S = call.q.new_zeros(B, H, K, V, dtype=dtype) if call.S is None else call.S.to(dtype)
    return S, S.new_zeros(B, H, K) if call.z is None else call.z.to(dtype)


def heads_of(call: Call) -> Five:
    """q, k, v, S, z of a call, as the definition takes them: heads before time."""
    q, k, v = (x.transpose(1, 2) for x in tokens_of(call))
    return q, k, v, *states_of(call)


def own(x: Tensor, *others: Tensor) -> Tensor:
    """x with memory of its own: an operator may not return what it was given."""
    x = x.contiguous()
    return x.clone() if any(x.data_ptr() == other.data_ptr() for other in others) else x


def keeps_exact(call: Call) -> bool:
    """Whether o is saved unrounded. Rounding it would cause half of a gradient's error."""
    return call.normalize and call.q.dtype in (torch.float16, torch.bfloat16)


def forward(call: Call) -> Saved:
    """The forward pass of a call without decay."""
    with without_autocast(call.q):
        o, den, S_T, z_T = (_recurrent if _is_recurrent(call) else _chunked)(call)
    empty = S_T.new_empty
    return Saved(
        o=o.to(call.v.dtype),
        S_T=S_T,
        z_T=z_T if call.keeps_z else empty(0),
        den=empty(0) if den is None else den,
        states=empty(0),
        exact=o if keeps_exact(call) else empty(0),
    )


def backward(call: Call, saved: Saved, do: Tensor, dS: Tensor | None, dz: Tensor | None) -> Grads:
    """The gradients of a call without decay."""
    dtype = accumulator_dtype(call.q.dtype)
    with without_autocast(call.q):
        do, dd = do.to(dtype), None
        dS, dz = (None if x is None else x.to(dtype) for x in (dS, dz))
        if call.normalize:
            do = do / (saved.den + call.eps).unsqueeze(-1)
            o = saved.exact if saved.exact.numel() else saved.o.to(dtype)
            dd = (do * o).sum(-1, keepdim=True).neg_()
        gradient = _recurrent_backward if _is_recurrent(call) else _chunked_backward
        dq, dk, dv, dS, dz = gradient(call, do, dd, dS, dz)
        dq *= call.scale
        if call.feature_map != "identity":
            dq *= feature_slope(call.q.to(dtype), call.feature_map)
            dk *= feature_slope(call.k.to(dtype), call.feature_map)
    dq, dk, dv = (x.to(call.q.dtype) for x in (dq, dk, dv))
    return Grads(dq, dk, dv, dS, dz, dS.new_empty(0))


def _is_recurrent(call: Call) -> bool:
    """Whether tokens run one by one, as no tokens do, too: of them there is no chunk."""
    return call.mode == "recurrent" or call.q.shape[1] == 0


def pieces(call: Call) -> list[tuple[slice, int]]:
    """Chunks of C tokens in pieces that fit a CPU's cache, and the rest as one shorter chunk.

    Padding would copy everything for the rest.
    """
    B, T, H, K, V = call.sizes
    C = T if call.mode == "attention" else call.chunk_size or CHUNK_SIZE
    whole = step = T // C * C
    if call.q.is_cpu:
        step = CACHED * torch.get_num_threads() // max(1, B * H * C * max(C, K, V)) * C
    cuts = sorted({*range(0, whole, max(step, C)), whole, T})
    return [(slice(begin, end), min(C, end - begin)) for begin, end in pairwise(cuts)]


def chunks(x: Tensor, C: int) -> Tensor:
    """x [B, N C, H, D] as [N B H, C, D]: a view where strides can say it."""
    return x.unflatten(1, (-1, C)).permute(1, 0, 3, 2, 4).flatten(0, 2)


def write(out: Tensor, x: Tensor, C: int) -> None:
    """The inverse of `chunks`: x [N B H, C, D] into out [B, N C, H, D]."""
    to = out.unflatten(1, (-1, C)).permute(1, 0, 3, 2, 4)
    to.copy_(x.view(to.shape))


def running(added: Tensor, first: Tensor | None, M: int, *, reverse: bool = False) -> Tensor:
    """Sums over chunks: of `first` and of what all chunks add, up to each one's own.

    added [N M, ...], which is written to; first [M, ...], None where it is zero. In reverse they
    run from the last chunk.
    """
    each = added.split(max(M, 1))
    if reverse:
        each = each[::-1]
    if first is not None and len(added):
        each[0].add_(first)
    if added.shape[-1] == 1 and len(each) > 1:  # so few numbers are fastest in one call
        sums = torch.stack(each).cumsum(0)
        return (sums.flip(0) if reverse else sums).flatten(0, 1)
    for before, after in pairwise(each):
        after.add_(before)
    return added


def add_products(
    out: Tensor, x: Tensor, first: Tensor | None, sums: Tensor, M: int, *,
    reverse: bool = False, across: bool = False,
) -> None:  # fmt: skip
    """Add x times the sum that each chunk meets: at the beginning `first`, then one of `sums`.

    across: times its transpose.
    """
    size = len(x) - M
    begin, later, met = slice(M), slice(M, None), slice(size)
    if reverse:
        begin, later, met = slice(size, None), slice(size), slice(M, None)
    if first is not None:
        out[begin].baddbmm_(x[begin], first.mT if across else first)
    if size:
        sums = sums[met]
        out[later].baddbmm_(x[later], sums.mT if across else sums)


def _flat(S: Tensor | None, z: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """A state as [M, K, V] and [M, K, 1]."""
    return (
        None if S is None else S.flatten(0, 1),
        None if z is None else z.flatten(0, 1).unsqueeze(-1),
    )


def _chunked(call: Call) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """o, den (None where nothing is divided), S, z: attention inside chunks, a state between."""
    q, k, v = tokens_of(call)
    S, z = (None, None) if call.S is None else _flat(*states_of(call))
    B, T, H, K, V = call.sizes
    M, o = B * H, q.new_empty(B, T, H, V)
    den = q.new_empty(B, T, H) if call.normalize else None
    for cut, C in pieces(call):
        a, b, y = (chunks(x[:, cut], C) for x in (q, k, v))
        A = torch.bmm(a, b.mT).tril_()  # [N M, C, C]
        out = torch.bmm(A, y)
        S_sums = running(torch.bmm(b.mT, y), S, M)
        z_sums = running(b.sum(1).unsqueeze(-1), z, M)
        add_products(out, a, S, S_sums, M)
        if den is not None:
            total = A.sum(-1, keepdim=True)
            add_products(total, a, z, z_sums, M)
            write(den[:, cut].unsqueeze(-1), total, C)
            out /= total.add_(call.eps)
        write(o[:, cut], out, C)
        S, z = (x if len(x) == M else x[-M:].clone() for x in (S_sums, z_sums))
    return o, den, cast("Tensor", S).view(B, H, K, V), cast("Tensor", z).view(B, H, K)


def _recurrent(call: Call) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """The same as reference.py says; a single token takes fewer calls."""
    heads = q, k, v, S_0, z_0 = heads_of(call)
    den = None
    if q.shape[2] == 1:
        o, den, S, z = one_token(*heads, call.eps if call.normalize else None)
    elif call.normalize:
        # The denominator is one more column of the values: a sum over the constant value 1.
        v_1, S_z = F.pad(v, (0, 1), value=1.0), torch.cat((S_0, z_0.unsqueeze(-1)), -1)
        num, S_z, z = reference.recurrent_mode(q, k, v_1, S_z, z_0, None)
        den, S = num[..., -1], S_z[..., :-1]
        o = num[..., :-1] / (den + call.eps).unsqueeze(-1)
    else:
        o, S, z = reference.recurrent_mode(*heads, None)
    den = None if den is None else den.transpose(1, 2).contiguous()
    return o.transpose(1, 2).contiguous(), den, own(S, S_0), own(z, z_0)


def one_token(
    q: Tensor, k: Tensor, v: Tensor, S: Tensor, z: Tensor, eps: float | None
) -> tuple[Tensor, Tensor | None, Tensor, Tensor]:
    """A single tick: what sampling does, in as few operations as it takes."""
    S, z = torch.addcmul(S, k.transpose(-1, -2), v), z + k.squeeze(2)
    o, den = q @ S, None
    if eps is not None:
        den = (q.squeeze(2) * z).sum(-1, keepdim=True)
        o = o / (den + eps).unsqueeze(-1)
    return o, den, S, z


def _chunked_backward(
    call: Call, dn: Tensor, dd: Tensor | None, dS: Tensor | None, dz: Tensor | None
) -> Five:
    """dq (of the scaled q), dk, dv, dS, dz.

    dn [B, T, H, V], dd [B, T, H, 1] or None: the gradients of numerator and denominator.
    """
    q, k, v = tokens_of(call)
    S, z = (None, None) if call.S is None else _flat(*states_of(call))
    B, T, H, K, V = call.sizes
    if dd is None and dz is not None:
        dd = torch.zeros_like(dn[..., :1])
    dS, dz = _flat(dS, dz)
    M, met = B * H, []
    for cut, C in pieces(call):
        a, b, y, d = (chunks(x[:, cut], C) for x in (q, k, v, dn))
        kept = len(b) - M if cut.stop == T else len(b)  # no chunk meets what the last one adds
        S_sums = running(torch.bmm(b[:kept].mT, y[:kept]), S, M)
        z_sums = running(b[:kept].sum(1).unsqueeze(-1), z, M)
        met.append((cut, C, a, b, y, d, S, z, S_sums, z_sums))
        S, z = S_sums[-M:], z_sums[-M:]
    dq, dk, dv = (x.new_empty(x.shape) for x in (q, k, v))
    # Time runs backwards for dk and dv: the last piece comes first, and hands on its dS and dz.
    for cut, C, a, b, y, d, S, z, S_sums, z_sums in reversed(met):
        P = torch.bmm(d, y.mT)
        e = None if dd is None else chunks(dd[:, cut], C)
        P = (P if e is None else P.add_(e)).tril_()
        out_q, out_k = torch.bmm(P, b), torch.bmm(P.mT, a)
        out_v = torch.bmm(torch.bmm(a, b.mT).tril_().mT, d)
        add_products(out_q, d, S, S_sums, M, across=True)
        dS_sums = running(torch.bmm(a.mT, d), dS, M, reverse=True)
        add_products(out_k, y, dS, dS_sums, M, reverse=True, across=True)
        add_products(out_v, b, dS, dS_sums, M, reverse=True)
        if e is not None:
            add_products(out_q, e, z, z_sums, M, across=True)
            dz_sums = running(torch.bmm(a.mT, e), dz, M, reverse=True)
            if dz is not None:
                out_k[len(a) - M :].add_(dz.mT)
            out_k[: len(a) - M].add_(dz_sums[M:].mT)
            dz = dz_sums[:M]
        dS = dS_sums[:M]
        for out, x in ((dq, out_q), (dk, out_k), (dv, out_v)):
            write(out[:, cut], x, C)
    dS = cast("Tensor", dS).clone().view(B, H, K, V)
    return dq, dk, dv, dS, dS.new_zeros(B, H, K) if dz is None else dz.clone().view(B, H, K)


def _recurrent_backward(
    call: Call, dn: Tensor, dd: Tensor | None, dS: Tensor | None, dz: Tensor | None
) -> Five:
    """The same, token by token: forwards for dq, back again for dk and dv."""
    q, k, v = tokens_of(call)
    S, z = states_of(call)
    dS = torch.zeros_like(S) if dS is None else dS.clone()
    dz = torch.zeros_like(z) if dz is None else dz.clone()
    dq, dk, dv = (x.new_empty(x.shape) for x in (q, k, v))
    T = q.shape[1]
    for t in range(T):
        S = torch.addcmul(S, k[:, t, :, :, None], v[:, t, :, None, :])
        dq[:, t] = (S @ dn[:, t, :, :, None]).squeeze(-1)
        if dd is not None:
            z = z + k[:, t]
            dq[:, t].addcmul_(z, dd[:, t])
    for t in range(T - 1, -1, -1):
        dS.addcmul_(q[:, t, :, :, None], dn[:, t, :, None, :])
        if dd is not None:
            dz.addcmul_(q[:, t], dd[:, t])
        dk[:, t] = (dS @ v[:, t, :, :, None]).squeeze(-1) + dz
        dv[:, t] = (k[:, t, :, None, :] @ dS).squeeze(-2)
    return dq, dk, dv, dS, dz
