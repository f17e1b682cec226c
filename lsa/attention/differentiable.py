"""Linear attention and its gradient in operations that torch can differentiate by itself.

`attend` is what reference.py says, for function transforms and wherever there is no kernel that
knows decay. `gradient` is the gradient written as linear attentions, to be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from . import eager, reference
from .call import Given, Gradients, Inputs, Options, taken_apart
from .feature_maps import FEATURE_MAPS, feature_slope


def accumulator_dtype(dtype: torch.dtype) -> torch.dtype:
    """States and sums are kept in float32, or in float64 when the inputs are."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def heads_of(x: Inputs, options: Options) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The inputs as eager.py wants them: mapped, scaled, heads before time, summed wide."""
    B, _, H, K = x.q.shape
    for name, y in zip("qkv", x[:3], strict=True):  # here, where it costs a GPU's calls nothing
        if y.layout is not torch.strided:
            raise ValueError(f"{name}: expected a strided tensor, got {y.layout}")
    dtype = accumulator_dtype(x.q.dtype)
    q, k, v = (y.transpose(1, 2).to(dtype) for y in x[:3])
    phi = FEATURE_MAPS[options.feature_map]
    S = q.new_zeros(B, H, K, v.shape[-1]) if x.S is None else x.S.to(dtype)
    z = q.new_zeros(B, H, K) if x.z is None else x.z.to(dtype)
    return phi(q) * options.scale, phi(k), v, S, z


def attend(*flat: Any) -> tuple[Tensor, Tensor, Tensor]:
    """o, S_T, z_T from Inputs and Options, as reference.py says."""
    x, options = taken_apart(flat, Inputs, Options)
    eps = options.eps if options.normalize else None
    with torch.autocast(x.q.device.type, enabled=False):
        heads = heads_of(x, options)
        g = None if x.g is None else x.g.transpose(1, 2).to(heads[0].dtype)
        if options.mode == "chunked":
            C = options.chunk_size or eager.CHUNK_SIZE
            o, S, z = reference.chunked_mode(*heads, eps, C, g)
        elif options.mode == "attention":
            o, S, z = reference.attention_mode(*heads, eps, g)
        else:
            o, S, z = reference.recurrent_mode(*heads, eps, g)
    return o.transpose(1, 2).to(x.v.dtype), S, z


def gradient(
    x: Inputs, given: Given, options: Options, attend: Callable[..., tuple[Tensor, ...]]
) -> Gradients:
    """The gradient as linear attentions, each of them by `attend`, in float32 or float64.

    With [v 1] and [S z] in place of v and S the normaliser is one more column of the sum, so
    every gradient is the plain, unnormalised sum of other arguments. Backwards in time a token
    fades by the g of the token after it. What x and given lack, g aside, counts as zero.
    """
    x, given = _filled(x, given)
    dtype, scale, feature_map = accumulator_dtype(x.q.dtype), options.scale, options.feature_map
    every = cast("tuple[Tensor, ...]", (*x[:5], *given))
    q, k, v, S, z, do, dS, dz = (y.to(dtype) for y in every)
    # The plain sum of inputs that are mapped already.
    plain = options._replace(
        normalize=False, scale=1.0, eps=0.0, feature_map="identity", with_z=False
    )
    g = later = None
    if x.g is not None:
        g = x.g.to(dtype).expand(q.shape[:3])
        later = F.pad(g.flip(1), (0, 0, 1, 0))[:, :-1]

    def sums(a: Tensor, b: Tensor, c: Tensor, M: Tensor, g: Tensor | None) -> tuple[Tensor, Tensor]:
        out = attend(a, b, c, M, None, g, *plain)
        return out[0], out[1]

    slopes = [feature_slope(x, feature_map) for x in (q, k)]
    q, k = FEATURE_MAPS[feature_map](q) * scale, FEATURE_MAPS[feature_map](k)
    v_1 = F.pad(v, (0, 1), value=1.0)
    S_z, dS_z = (torch.cat((a, b.unsqueeze(-1)), -1) for a, b in ((S, z), (dS, dz)))
    dn = F.pad(do, (0, 1))
    if options.normalize or g is not None:
        num, S_T = sums(q, k, v_1, S_z, g)
    if options.normalize:
        r = 1 / (num[..., -1:] + options.eps)
        o = num[..., :-1] * r
        dn = torch.cat((do * r, -(do * o).sum(-1, keepdim=True) * r), -1)
    dq, _ = sums(dn, v_1, k, S_z.transpose(-1, -2), g)
    reversed_q, reversed_k, v_1, dn = (x.flip(1) for x in (q, k, v_1, dn))
    dk, left = sums(v_1, dn, reversed_q, dS_z.transpose(-1, -2), later)
    dv, dS = sums(reversed_k, reversed_q, dn[..., :-1], dS, later)
    dk, dv, dz = dk.flip(1), dv.flip(1), left[:, :, -1]
    dg = q.new_empty(0)
    if g is not None and x.g is not None:
        # Whatever token i is multiplied by, exp(g_t) is in it for each t up to i; what enters the
        # state at i has it for each t after i, and what leaves at the end for all.
        each = (q * dq).sum(-1) - (k * dk).sum(-1)
        end = (dS_z * S_T).sum((-1, -2)).unsqueeze(1)
        dg = (each.flip(1).cumsum(1).flip(1) + end).sum_to_size(x.g.shape)
        first = g[:, :1].sum(1).exp().unsqueeze(-1)
        dS, dz = dS * first.unsqueeze(-1), dz * first
    return Gradients(dq * scale * slopes[0], dk * slopes[1], dv, dS, dz, dg)


def _filled(x: Inputs, given: Given) -> tuple[Inputs, Given]:
    """x and given with zeros for the states, and gradients of states, that they lack."""
    B, _, H, K = x.q.shape
    S = x.q.new_zeros(B, H, K, x.v.shape[-1], dtype=accumulator_dtype(x.q.dtype))
    x = x._replace(S=S if x.S is None else x.S, z=S[..., 0] if x.z is None else x.z)
    given = given._replace(
        dS=S if given.dS is None else given.dS, dz=S[..., 0] if given.dz is None else given.dz
    )
    return x, given
