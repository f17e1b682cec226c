"""Linear attention and its gradient as operators that torch knows: eager, compiled, captured.

`torch.ops.lsa.linear_attention` and its backward each have a body in plain torch for every
device, Triton kernels for CUDA, shapes for the compiler, and a gradient. The gradient of the
backward operator is taken through `composed_gradient`, the same gradient written as linear
attentions, so that it can be differentiated again.

Shapes as in the public layout: q, k [B, T, H, K]; v, o [B, T, H, V]; S [B, H, K, V]; z [B, H, K].
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from . import cpu
from .feature_maps import FEATURE_MAPS

FUSED_MAPS = ("identity", "elu_plus_one", "relu", "softplus")
WIDEST = 256
HAS_TRITON = find_spec("triton") is not None


def accumulator_dtype(dtype: torch.dtype) -> torch.dtype:
    """States and sums are kept in float32, or in float64 when the inputs are."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def feature_slope(x: Tensor, feature_map: str) -> Tensor:
    """The derivative of a fused feature map, itself differentiable."""
    if feature_map == "elu_plus_one":
        return x.clamp(max=0).exp()
    if feature_map == "relu":
        return (x > 0).to(x.dtype)
    return torch.sigmoid(x) if feature_map == "softplus" else torch.ones_like(x)


def uses_kernels(q: Tensor, v: Tensor, scale: float) -> bool:
    """Whether the Triton kernels take this call; plain torch takes the others."""
    return (
        HAS_TRITON
        and q.device.type == "cuda"
        and q.dtype in (torch.float32, torch.float16, torch.bfloat16)
        and max(q.shape[-1], v.shape[-1]) <= WIDEST
        and min(q.shape[-1], v.shape[-1], *q.shape[:3]) > 0
        and scale != 0
    )


def _kernels(mode: str) -> ModuleType:
    return import_module(f".kernels.{mode}", __package__)


def _problem(
    q: Tensor, k: Tensor, v: Tensor, S: Tensor | None, z: Tensor | None, normalize: bool,
    scale: float, eps: float, feature_map: str, with_z: bool,
) -> Any:  # fmt: skip
    from .kernels.shared import Problem

    return Problem(q, k, v, S, z, scale, eps, normalize, feature_map, normalize or with_z)


def _heads(
    q: Tensor, k: Tensor, v: Tensor, S: Tensor | None, z: Tensor | None,
    scale: float, feature_map: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """The inputs as cpu.py wants them: mapped, scaled, heads before time, summed wide."""
    B, _, H, K = q.shape
    dtype = accumulator_dtype(q.dtype)
    q, k, v = (x.transpose(1, 2).to(dtype) for x in (q, k, v))
    phi = FEATURE_MAPS[feature_map]
    S = q.new_zeros(B, H, K, v.shape[-1]) if S is None else S.to(dtype)
    z = q.new_zeros(B, H, K) if z is None else z.to(dtype)
    return phi(q) * scale, phi(k), v, S, z


def _own(x: Tensor, *others: Tensor) -> Tensor:
    """x with memory of its own: an operator may not return what it was given."""
    x = x.contiguous()
    return x.clone() if any(x.data_ptr() == other.data_ptr() for other in others) else x


def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    S: Tensor | None,
    z: Tensor | None,
    mode: str,
    chunk_size: int,
    normalize: bool,
    scale: float,
    eps: float,
    feature_map: str,
    with_z: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """o and the state after it, then what the gradient needs: o, S, z, den, states, exact.

    chunk_size: 0 lets the implementation choose. with_z: z is wanted though nothing is
    normalised. z, den, states and exact are empty where they have no use; shared.py,
    Outputs, says what they are.
    """
    with torch.autocast(q.device.type, enabled=False):
        heads = _heads(q, k, v, S, z, scale, feature_map)
        o, den, S_T, z_T = cpu.forward(*heads, eps if normalize else None, mode, chunk_size)
        o = o.transpose(1, 2)
    return (
        _own(o.to(v.dtype), v),
        _own(S_T, heads[3]),
        _own(z_T, heads[4]) if normalize or with_z else S_T.new_empty(0),
        den.transpose(1, 2).contiguous() if normalize else S_T.new_empty(0),
        S_T.new_empty(0),
        o.contiguous() if _keeps_exact(q, normalize) else S_T.new_empty(0),
    )


def _keeps_exact(q: Tensor, normalize: bool) -> bool:
    """Whether plain torch keeps o unrounded: half of a gradient's error would come from o's."""
    return normalize and q.dtype in (torch.float16, torch.bfloat16)


def _attend_shapes(
    q: Tensor, k: Tensor, v: Tensor, S: Tensor | None, z: Tensor | None, mode: str,
    chunk_size: int, normalize: bool, scale: float, eps: float, feature_map: str, with_z: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    B, T, H, K = q.shape
    V = v.shape[-1]
    empty = q.new_empty(0, dtype=accumulator_dtype(q.dtype))
    states, keeps_exact = empty.new_empty(0), _keeps_exact(q, normalize)
    if uses_kernels(q, v, scale):
        kernels = _kernels(mode)
        problem = _problem(q, k, v, S, z, normalize, scale, eps, feature_map, with_z)
        if any(isinstance(size, torch.SymInt) for size in (B, T, H)):
            # Where a sequence is cut is no formula of its length that a compiler could follow.
            cuts = torch.library.get_ctx().new_dynamic_size()
        else:
            cuts = kernels.boundaries(problem)
        states = empty.new_empty(cuts, B * H, K * V + K)
        keeps_exact = kernels.keeps_exact(problem)
    return (
        q.new_empty(B, T, H, V),
        empty.new_empty(B, H, K, V),
        empty.new_empty((B, H, K) if normalize or with_z else (0,)),
        empty.new_empty((B, T, H) if normalize else (0,)),
        states,
        empty.new_empty((B, T, H, V) if keeps_exact else (0,)),
    )


def _attend_kernels(
    q: Tensor, k: Tensor, v: Tensor, S: Tensor | None, z: Tensor | None, mode: str,
    chunk_size: int, *rest: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    normalize, scale, eps, feature_map, with_z = rest
    if not uses_kernels(q, v, scale):
        return _attend(q, k, v, S, z, mode, chunk_size, *rest)
    problem = _problem(q, k, v, S, z, *rest)
    with torch.cuda.device(q.device):  # Triton launches on the current one
        out = _kernels(mode).forward(problem)
    return out.o, out.S_T, out.z_T, out.den, out.states, out.exact


def _gradient(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    S: Tensor | None,
    z: Tensor | None,
    o: Tensor,
    S_T: Tensor,
    z_T: Tensor,
    den: Tensor,
    states: Tensor,
    exact: Tensor,
    do: Tensor,
    dS: Tensor | None,
    dz: Tensor | None,
    mode: str,
    chunk_size: int,
    normalize: bool,
    scale: float,
    eps: float,
    feature_map: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """dq, dk, dv and the gradients of the state before, from those of o and the state after."""
    with torch.autocast(q.device.type, enabled=False):
        heads = _heads(q, k, v, S, z, scale, feature_map)
        dtype = heads[0].dtype
        grads = cpu.backward(
            *heads,
            eps if normalize else None,
            (exact if exact.numel() else o).transpose(1, 2).to(dtype),
            den.transpose(1, 2) if normalize else None,
            do.transpose(1, 2).to(dtype),
            torch.zeros_like(heads[3]) if dS is None else dS.to(dtype),
            torch.zeros_like(heads[4]) if dz is None else dz.to(dtype),
            mode,
            chunk_size,
        )
        dq, dk, dv = (x.transpose(1, 2) for x in grads[:3])
        dq = dq * scale
        if feature_map != "identity":
            dq = dq * feature_slope(q.to(dtype), feature_map)
            dk = dk * feature_slope(k.to(dtype), feature_map)
    dq, dk, dv = (x.to(q.dtype).contiguous() for x in (dq, dk, dv))
    return dq, dk, dv, grads[3].contiguous(), grads[4].contiguous()


def _gradient_shapes(q: Tensor, k: Tensor, v: Tensor, *rest: Any) -> tuple[Tensor, ...]:
    B, _, H, K = q.shape
    new = {"dtype": accumulator_dtype(q.dtype)}
    return (
        *(x.new_empty(x.shape) for x in (q, k, v)),
        q.new_empty(B, H, K, v.shape[-1], **new),
        q.new_empty(B, H, K, **new),
    )


def _gradient_kernels(
    q: Tensor, k: Tensor, v: Tensor, S: Tensor | None, z: Tensor | None, o: Tensor, *rest: Any
) -> tuple[Tensor, ...]:
    S_T, z_T, den, states, exact, do, dS, dz, mode, _, normalize, scale, eps, feature_map = rest
    if not uses_kernels(q, v, scale):
        return _gradient(q, k, v, S, z, o, *rest)
    from .kernels.shared import Outputs

    problem = _problem(q, k, v, S, z, normalize, scale, eps, feature_map, dz is not None)
    out = Outputs(o=o, den=den, S_T=S_T, z_T=z_T, states=states, exact=exact)
    with torch.cuda.device(q.device):
        grads = _kernels(mode).backward(problem, out, do, dS, dz)
    return grads.dq, grads.dk, grads.dv, grads.dS, grads.dz


def composed_gradient(
    q: Tensor, k: Tensor, v: Tensor, S: Tensor, z: Tensor,
    do: Tensor, dS: Tensor, dz: Tensor,
    mode: str, chunk_size: int, normalize: bool, scale: float, eps: float, feature_map: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradient as linear attentions, each of them differentiable, in float32 or float64.

    With [v 1] and [S z] in place of v and S the normaliser is one more column of the sum, so
    every gradient is the plain, unnormalised sum of other arguments.
    """
    dtype = accumulator_dtype(q.dtype)
    q, k, v, S, z, do, dS, dz = (x.to(dtype) for x in (q, k, v, S, z, do, dS, dz))

    def sums(a: Tensor, b: Tensor, c: Tensor, M: Tensor) -> tuple[Tensor, Tensor]:
        arguments = (a, b, c, M, None, mode, chunk_size, False, 1.0, 0.0, "identity", False)
        return attend(*arguments)[:2]

    slopes = [feature_slope(x, feature_map) for x in (q, k)]
    q, k = FEATURE_MAPS[feature_map](q) * scale, FEATURE_MAPS[feature_map](k)
    v_1 = F.pad(v, (0, 1), value=1.0)
    S_z, dS_z = (torch.cat((a, b.unsqueeze(-1)), -1) for a, b in ((S, z), (dS, dz)))
    dn = F.pad(do, (0, 1))
    if normalize:
        num, _ = sums(q, k, v_1, S_z)
        r = 1 / (num[..., -1:] + eps)
        o = num[..., :-1] * r
        dn = torch.cat((do * r, -(do * o).sum(-1, keepdim=True) * r), -1)
    dq, _ = sums(dn, v_1, k, S_z.transpose(-1, -2))
    q, k, v_1, dn = (x.flip(1) for x in (q, k, v_1, dn))
    dk, left = sums(v_1, dn, q, dS_z.transpose(-1, -2))
    dv, dS = sums(k, q, dn[..., :-1], dS)
    return dq * scale * slopes[0], dk.flip(1) * slopes[1], dv.flip(1), dS, left[:, :, -1]


def _save_forward(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs[:5], *output)
    ctx.options = inputs[5:]


def _backward(ctx: Any, do: Tensor | None, dS: Tensor | None, dz: Tensor | None, *_: Any) -> tuple:
    q, k, v, S, z, o, S_T, z_T, den, states, exact = ctx.saved_tensors
    if do is None:
        do = torch.zeros_like(o)
    dz = None if dz is None or not dz.numel() else dz
    dq, dk, dv, dS_0, dz_0 = gradient(
        q, k, v, S, z, o, S_T, z_T, den, states, exact, do, dS, dz, *ctx.options[:-1]
    )
    state = (None if S is None else dS_0.to(S.dtype), None if z is None else dz_0.to(z.dtype))
    return dq, dk, dv, *state, *(None for _ in ctx.options)


def _save_gradient(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*inputs[:5], *inputs[11:14])
    ctx.options = inputs[14:]


def _double_backward(ctx: Any, *grads: Tensor | None) -> tuple:
    """Differentiates composed_gradient; o, den and the states are functions of the inputs."""
    given = ctx.saved_tensors
    needed = [ctx.needs_input_grad[i] for i in (0, 1, 2, 3, 4, 11, 12, 13)]
    with torch.enable_grad():
        inputs = [
            x.view_as(x) if x is not None and need else x
            for x, need in zip(given, needed, strict=True)
        ]
        q, k, v, S, z, do, dS, dz = inputs
        B, _, H, K = q.shape
        state = q.new_zeros(B, H, K, v.shape[-1], dtype=accumulator_dtype(q.dtype))
        S, dS = (state if x is None else x for x in (S, dS))
        z, dz = (state[..., 0] if x is None else x for x in (z, dz))
        outputs = composed_gradient(q, k, v, S, z, do, dS, dz, *ctx.options)
        pairs = [
            (y, g.to(y.dtype))
            for y, g in zip(outputs, grads, strict=True)
            if g is not None and y.requires_grad
        ]
        wanted = [x for x, need in zip(inputs, needed, strict=True) if x is not None and need]
        found = iter(
            torch.autograd.grad(
                [y for y, _ in pairs], wanted, [g for _, g in pairs], allow_unused=True,
                create_graph=any(g.requires_grad for _, g in pairs),
            )
            if pairs and wanted
            else [None] * len(wanted)
        )  # fmt: skip
    each = [
        next(found) if x is not None and need else None
        for x, need in zip(inputs, needed, strict=True)
    ]
    return *each[:5], *[None] * 6, *each[5:], *[None] * len(ctx.options)


attend = torch.library.custom_op("lsa::linear_attention", _attend, mutates_args=())
attend.register_kernel("cuda", _attend_kernels)
attend.register_fake(_attend_shapes)
attend.register_autograd(_backward, setup_context=_save_forward)

gradient = torch.library.custom_op("lsa::linear_attention_backward", _gradient, mutates_args=())
gradient.register_kernel("cuda", _gradient_kernels)
gradient.register_fake(_gradient_shapes)
gradient.register_autograd(_double_backward, setup_context=_save_gradient)


def _inside(T: int, mode: str, chunk_size: int) -> int:
    """How many products q·k plain torch forms for a head."""
    C = T if mode == "attention" else chunk_size or cpu.CHUNK_SIZE
    return T // C * C * C + (T % C) ** 2 if T else 0


@register_flop_formula(torch.ops.lsa.linear_attention)
def _flops(
    q: Any, k: Any, v: Any, S: Any, z: Any, mode: str, chunk_size: int, *_: Any, **__: Any
) -> int:
    """What torch would count inside the operator: matrix products, not outer ones."""
    (B, T, H, K), V = q, v[-1]
    if mode == "recurrent":
        return B * H * 2 * T * K * V
    return B * H * (2 * _inside(T, mode, chunk_size) * (K + V) + 4 * T * K * V + 2 * T * K)


@register_flop_formula(torch.ops.lsa.linear_attention_backward)
def _gradient_flops(q: Any, k: Any, v: Any, *rest: Any, **__: Any) -> int:
    """The same for the three gradients."""
    (B, T, H, K), V = q, v[-1]
    mode, chunk_size = rest[11], rest[12]
    if mode == "recurrent":
        return B * H * 6 * T * K * V
    inside = _inside(T, mode, chunk_size)
    return B * H * (2 * inside * (3 * K + 2 * V) + 10 * T * K * V + 4 * T * K)
