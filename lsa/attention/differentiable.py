"""Linear attention and its gradient in operations that torch can differentiate by itself.

`attend` computes reference.py's sums, for function transforms and for decay without a kernel.
`gradient` writes the gradient as linear attentions, which can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from . import reference
from .call import CHUNK_SIZE, Call, Grads, Saved, accumulator_dtype, without_autocast
from .eager import heads_of, own
from .feature_maps import FEATURE_MAPS, feature_slope

Sums = tuple[Tensor, Tensor, Tensor]  # o, S_T, z_T


def attend(call: Call) -> Sums:
    """o, S_T and z_T of a call, by reference.py."""
    eps = call.eps if call.normalize else None
    with without_autocast(call.q):
        heads = heads_of(call)
        g = None if call.g is None else call.g.transpose(1, 2).to(heads[0].dtype)
        if call.mode == "chunked":
            o, S, z = reference.chunked_mode(*heads, eps, call.chunk_size or CHUNK_SIZE, g)
        elif call.mode == "attention":
            o, S, z = reference.attention_mode(*heads, eps, g)
        else:
            o, S, z = reference.recurrent_mode(*heads, eps, g)
    return o.transpose(1, 2).to(call.v.dtype), S, z


def forward(call: Call) -> Saved:
    """The forward pass of a call with decay. It saves nothing for the gradient."""
    o, S_T, z_T = attend(call)
    S, z = (S_T if s is None else s for s in (call.S, call.z))
    empty = S_T.new_empty
    z_T = own(z_T, z) if call.keeps_z else empty(0)
    return Saved(own(o, call.v), own(S_T, S), z_T, empty(0), empty(0), empty(0))


def backward(call: Call, _: Saved, do: Tensor, dS: Tensor | None, dz: Tensor | None) -> Grads:
    """The gradients of a call with decay."""
    found = gradient(call, do, dS, dz, attend)
    dq, dk, dv = (y.to(call.q.dtype) for y in found[:3])
    dg = found.dg if call.with_dg else found.dg.new_empty(0)
    return Grads(*(y.contiguous() for y in (dq, dk, dv, found.dS, found.dz, dg)))


def gradient(
    call: Call, do: Tensor, dS: Tensor | None, dz: Tensor | None, attend: Callable[[Call], Sums]
) -> Grads:
    """The gradient as linear attentions, each computed by `attend`, in float32 or float64.

    With [v 1] and [S z] in place of v and S, the normaliser is one more column of the sum. So every
    gradient is an unnormalised sum of other arguments. Backwards in time a token decays by the g of
    the token after it. A state, or a gradient of one, that is None is zero.
    """
    B, _, H, K, V = call.sizes
    dtype, scale = accumulator_dtype(call.q.dtype), call.scale
    zero = call.q.new_zeros(B, H, K, V, dtype=dtype)
    S, dS = (zero if x is None else x.to(dtype) for x in (call.S, dS))
    z, dz = (zero[..., 0] if x is None else x.to(dtype) for x in (call.z, dz))
    q, k, v, do = (x.to(dtype) for x in (call.q, call.k, call.v, do))
    # An unnormalised call, whose inputs are mapped already.
    plain = call._replace(
        z=None, normalize=False, scale=1.0, eps=0.0, feature_map="identity",
        with_z=True, with_dg=False,  # else no state comes where no gradient is recorded
    )  # fmt: skip
    g = later = None
    if call.g is not None:
        g = call.g.to(dtype).expand(q.shape[:3])
        later = F.pad(g.flip(1), (0, 0, 1, 0))[:, :-1]

    def sums(a: Tensor, b: Tensor, c: Tensor, M: Tensor, g: Tensor | None) -> tuple[Tensor, Tensor]:
        return attend(plain._replace(q=a, k=b, v=c, S=M, g=g))[:2]

    slopes = [feature_slope(x, call.feature_map) for x in (q, k)]
    phi = FEATURE_MAPS[call.feature_map]
    q, k = phi(q) * scale, phi(k)
    v_1 = F.pad(v, (0, 1), value=1.0)
    S_z, dS_z = (torch.cat((a, b.unsqueeze(-1)), -1) for a, b in ((S, z), (dS, dz)))
    dn = F.pad(do, (0, 1))
    if call.normalize or g is not None:
        num, S_T = sums(q, k, v_1, S_z, g)
    if call.normalize:
        r = 1 / (num[..., -1:] + call.eps)
        o = num[..., :-1] * r
        dn = torch.cat((do * r, -(do * o).sum(-1, keepdim=True) * r), -1)
    dq, _ = sums(dn, v_1, k, S_z.transpose(-1, -2), g)
    reversed_q, reversed_k, v_1, dn = (x.flip(1) for x in (q, k, v_1, dn))
    dk, left = sums(v_1, dn, reversed_q, dS_z.transpose(-1, -2), later)
    dv, dS = sums(reversed_k, reversed_q, dn[..., :-1], dS, later)
    dk, dv, dz = dk.flip(1), dv.flip(1), left[:, :, -1]
    dg = q.new_empty(0)
    if g is not None:
        # exp(g_t) scales what entered before t, in every output from t on and in the final state.
        each = (q * dq).sum(-1) - (k * dk).sum(-1)
        end = (dS_z * S_T).sum((-1, -2)).unsqueeze(1)
        dg = (each.flip(1).cumsum(1).flip(1) + end).sum_to_size(cast("Tensor", call.g).shape)
        first = g[:, :1].sum(1).exp().unsqueeze(-1)
        dS, dz = dS * first.unsqueeze(-1), dz * first
    return Grads(dq * scale * slopes[0], dk * slopes[1], dv, dS, dz, dg)
