"""Linear attention and its gradient as operators that torch knows: eager, compiled, captured.

`torch.ops.lsa.linear_attention` and its backward each have Triton kernels for CUDA, a body in
plain torch for all else, shapes for the compiler (dispatch.py), and a gradient. The gradient of the
backward operator is taken through `differentiable.gradient`, the same gradient written as linear
attentions, so that it can be differentiated again. torch's function transforms and forward-mode
derivatives know no such operator; for them, and for decay where no kernel takes the call, the same
sum runs as plain torch throughout.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from ..operators import gradients_where_needed, is_transformed, operator
from . import differentiable, dispatch, eager
from .call import Given, Gradients, Inputs, Options, Results, schema, taken_apart


def _unrecorded(called: torch._ops.OpOverload, *flat: Any) -> tuple[Tensor, ...]:
    """Bypass autograd dispatch when gradients are disabled."""
    if torch.is_grad_enabled():
        return called(*flat)
    with torch._C._AutoDispatchBelowAutograd():
        return called(*flat)


def _save_forward(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    x, ctx.options = taken_apart(inputs, Inputs, Options)
    ctx.save_for_backward(*x, *output)


def _backward(ctx: Any, do: Tensor | None, dS: Tensor | None, dz: Tensor | None, *_: Any) -> tuple:
    x, out = taken_apart(ctx.saved_tensors, Inputs, Results)
    if do is None:
        do = torch.zeros_like(out.o)
    dz = None if dz is None or not dz.numel() else dz
    needed = taken_apart(ctx.needs_input_grad, Inputs)[0]
    options = ctx.options._replace(with_dg=needed.g)
    found = Gradients(*_unrecorded(gradient, *x, *out, do, dS, dz, *options))
    wide = (x.S, found.dS, needed.S), (x.z, found.dz, needed.z), (x.g, found.dg, needed.g)
    narrowed = [d.to(y.dtype) if y is not None and need else None for y, d, need in wide]
    return found.dq, found.dk, found.dv, *narrowed, *(None for _ in ctx.options)


def _save_gradient(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    x, _, given, ctx.options = taken_apart(inputs, Inputs, Results, Given, Options)
    ctx.save_for_backward(*x, *given)


def _double_backward(ctx: Any, *grads: Tensor | None) -> tuple:
    """Differentiates differentiable.gradient; o, den and the states are functions of the inputs."""
    flags = taken_apart(ctx.needs_input_grad, Inputs, Results, Given, Options)
    needed = [*flags[0], *flags[2]]
    with torch.enable_grad():
        inputs = [
            x.view_as(x) if x is not None and need else x
            for x, need in zip(ctx.saved_tensors, needed, strict=True)
        ]
        x, given = taken_apart(inputs, Inputs, Given)
        outputs = differentiable.gradient(x, given, ctx.options, attend)
    each = gradients_where_needed(outputs, grads, inputs, needed)
    n = len(Inputs._fields)
    return *each[:n], *(None for _ in Results._fields), *each[n:], *(None for _ in Options._fields)


FORWARD, BACKWARD = (Inputs, Options), (Inputs, Results, Given, Options)


attend_operator = operator(
    "linear_attention", schema(FORWARD, Results), dispatch.attend, dispatch.attend_shapes,
    _backward, _save_forward,
)  # fmt: skip
gradient = operator(
    "linear_attention_backward", schema(BACKWARD, Gradients),
    dispatch.gradient, dispatch.gradient_shapes, _double_backward, _save_gradient,
)  # fmt: skip


class _Recorded(torch.autograd.Function):
    """The operator with its gradient as an eager call records it: one node, for less host time.

    For a compiler the gradient is registered with the operator, and found there. What either
    costs on the host is measured by experiments/host_time.py.
    """

    @staticmethod
    def forward(ctx: Any, *flat: Any) -> tuple[Tensor, ...]:
        out = _unrecorded(attend_operator, *flat)
        _save_forward(ctx, flat, out)
        kept = Results(*out)
        ctx.mark_non_differentiable(kept.den, kept.states, kept.exact)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple:
        return _backward(ctx, *grads)


def attend(*flat: Any) -> tuple[Tensor, ...]:
    """Results from Inputs and Options, flat; o, S_T and z_T alone where no operator is used."""
    x, options = taken_apart(flat, Inputs, Options)
    if x.g is not None and not dispatch.differentiates_decay(x.q, x.v, options.scale):
        return differentiable.attend(*flat)
    if is_transformed(x):
        return differentiable.attend(*flat)
    if torch.compiler.is_compiling():
        return attend_operator(*flat)
    if torch.is_grad_enabled() and any(y is not None and y.requires_grad for y in x):
        return _Recorded.apply(*flat)
    return _unrecorded(attend_operator, *flat)


def _inside(T: int, mode: str, chunk_size: int) -> int:
    """How many products q·k plain torch forms for a head."""
    C = T if mode == "attention" else chunk_size or eager.CHUNK_SIZE
    return T // C * C * C + (T % C) ** 2 if T else 0


@register_flop_formula(torch.ops.lsa.linear_attention)
def _flops(*shapes: Any, **_: Any) -> int:
    """Operations of a call for torch's counter, which does not look inside.

    Its matrix products, with a normaliser's sums; token by token, neither these nor outer products.
    """
    x, options = taken_apart(shapes, *FORWARD)
    (B, T, H, K), V, mode, chunk_size = x.q, x.v[-1], options.mode, options.chunk_size
    if mode == "recurrent":
        return B * H * 2 * T * K * V
    return B * H * (2 * _inside(T, mode, chunk_size) * (K + V) + 4 * T * K * V + 2 * T * K)


@register_flop_formula(torch.ops.lsa.linear_attention_backward)
def _gradient_flops(*shapes: Any, **_: Any) -> int:
    """The same for the three gradients."""
    x, _, _, options = taken_apart(shapes, *BACKWARD)
    (B, T, H, K), V, mode, chunk_size = x.q, x.v[-1], options.mode, options.chunk_size
    if mode == "recurrent":
        return B * H * 6 * T * K * V
    inside = _inside(T, mode, chunk_size)
    return B * H * (2 * inside * (3 * K + 2 * V) + 10 * T * K * V + 4 * T * K)
