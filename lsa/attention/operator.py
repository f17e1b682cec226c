"""Linear attention and its gradient as torch operators: eager, compiled, captured.

`torch.ops.lsa.linear_attention` and its backward each have a body (dispatch.py chooses it), shapes
for torch.compile, and a gradient. The gradient of the backward operator is taken through
`differentiable.gradient`, which writes the same gradient as linear attentions. torch's function
transforms and forward-mode derivatives do not know such operators. They get plain torch, and so do
calls with decay that no kernel takes.

torch's operators take flat arguments. Only this file sees them: `Call`, `Saved` and `Grads` are
flattened before the call and rebuilt after it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.utils.flop_counter import register_flop_formula

from ..checks import is_at_hand
from ..compat import below_autograd, is_batched, is_traced, is_transformed
from ..operators import gradients_where_needed, launching_on, operator
from . import differentiable, dispatch
from .call import CHUNK_SIZE, INPUTS, UPSTREAM, Call, Grads, Saved, signature

PLAIN = {Tensor, Parameter}
CALL, SAVED = len(Call._fields), len(Saved._fields)


def _forward(*flat: Any) -> Saved:
    call = Call(*flat)
    with launching_on(call.q.device):
        return dispatch.body(call).forward(call)


def _gradient(*flat: Any) -> Grads:
    call, saved = Call(*flat[:CALL]), Saved(*flat[CALL : CALL + SAVED])
    with launching_on(call.q.device):
        return dispatch.body(call).backward(call, saved, *flat[CALL + SAVED :])


def _is_plain(x: Any) -> bool:
    return type(x) in PLAIN or not isinstance(x, Tensor)


def _chosen(known: Any, body: Any, flat: tuple) -> Any:
    """The operator `known` to torch, or its body if no mode or tensor subclass intercepts calls.

    torch's dispatcher would take a third of a short call's time on a CPU.
    """
    return body if is_at_hand(flat[0]) and all(map(_is_plain, flat)) else known


def _save_forward(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    ctx.options = inputs[INPUTS:]
    ctx.save_for_backward(*inputs[:INPUTS], *output)


def _backward(ctx: Any, do: Tensor | None, dS: Tensor | None, dz: Tensor | None, *_: Any) -> tuple:
    tensors = ctx.saved_tensors
    call, saved = Call(*tensors[:INPUTS], *ctx.options), Saved(*tensors[INPUTS:])
    given = do if do is not None else dz if dS is None else dS  # all are batched, or none
    do = torch.zeros_like(saved.o) if do is None else do
    dz = None if dz is None or not dz.numel() else dz
    needs = ctx.needs_input_grad[:INPUTS]
    call = call._replace(with_z=dz is not None, with_dg=needs[-1])
    if torch.is_grad_enabled() or torch.compiler.is_compiling() or is_batched(given):
        found = gradient_operator(*call, *saved, do, dS, dz)
    else:
        flat = *call, *saved, do, dS, dz
        with below_autograd():
            found = _chosen(gradient_operator, _gradient, flat)(*flat)
    each = zip(found, tensors, needs, strict=False)
    grads = [d.to(x.dtype) if x is not None and need else None for d, x, need in each]
    return *grads, *(None for _ in ctx.options)


def _save_gradient(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    ctx.options = inputs[INPUTS:CALL]
    ctx.save_for_backward(*inputs[:INPUTS], *inputs[CALL + SAVED :])


def _double_backward(ctx: Any, *grads: Tensor | None) -> tuple:
    """Differentiates `differentiable.gradient`; o, den, states are functions of the inputs."""
    needed = ctx.needs_input_grad[:INPUTS] + ctx.needs_input_grad[CALL + SAVED :]
    with torch.enable_grad():
        inputs: list[Any] = [
            x.view_as(x) if x is not None and need else x
            for x, need in zip(ctx.saved_tensors, needed, strict=True)
        ]
        do, dS, dz = inputs[INPUTS:]
        call = Call(*inputs[:INPUTS], *ctx.options)
        outputs = differentiable.gradient(call, do, dS, dz, attend)
    each = gradients_where_needed(outputs, grads, inputs, needed)
    return *each[:INPUTS], *(None for _ in range(CALL - INPUTS + SAVED)), *each[INPUTS:]


attend_operator = operator(
    "linear_attention", signature(Call, results=Saved),
    _forward, lambda *flat: dispatch.saved_shapes(Call(*flat)), _backward, _save_forward,
)  # fmt: skip
gradient_operator = operator(
    "linear_attention_backward", signature(Call, Saved, UPSTREAM, results=Grads),
    _gradient, lambda *flat: dispatch.grads_shapes(Call(*flat[:CALL])),
    _double_backward, _save_gradient,
)  # fmt: skip


def _record(ctx: Any, *flat: Any) -> tuple[Tensor, ...]:
    with below_autograd():
        out = _chosen(attend_operator, _forward, flat)(*flat)
    _save_forward(ctx, flat, out)
    ctx.mark_non_differentiable(*out[3:])
    return out


# The operator with its gradient, recorded as one autograd node: less host time in eager calls.
# torch.compile uses the gradient that is registered with the operator. A class in the module would
# break IPython's %autoreload, which follows it to its backward class and back, without end.
_recorded = type(
    "_Recorded",
    (torch.autograd.Function,),
    {"forward": staticmethod(_record), "backward": staticmethod(_backward)},
).apply


def attend(call: Call) -> differentiable.Sums:
    """o, S_T and z_T of a call. z_T, or both states, are empty if they were not requested."""
    if call.g is not None and not dispatch.differentiates_decay(call):
        return differentiable.attend(call)
    inputs = [x for x in call[:INPUTS] if x is not None]
    if is_transformed(inputs):
        return differentiable.attend(call)
    if torch.compiler.is_compiling() or is_traced():
        o, S, z, *_ = attend_operator(*call)
    elif torch.is_grad_enabled() and any(x.requires_grad for x in inputs):
        o, S, z, *_ = _recorded(*call)
    elif is_at_hand(call.q) and {*map(type, inputs)} <= PLAIN:
        return dispatch.attend(call)
    else:
        with below_autograd():
            o, S, z, *_ = attend_operator(*call)
    return o, S, z


def _inside(T: int, mode: str, chunk_size: int) -> int:
    """Number of products q·k that plain torch forms for a head."""
    if mode == "recurrent":
        return 0
    C = T if mode == "attention" else chunk_size or CHUNK_SIZE
    return T // C * C * C + (T % C) ** 2 if T else 0


@register_flop_formula(torch.ops.lsa.linear_attention)
def _flops(*shapes: Any, **_: Any) -> int:
    """FLOPs of a call, for torch's counter, which cannot look inside an operator.

    They are its matrix products and the normaliser's sums. In recurrent mode torch counts neither
    the sums nor the outer products.
    """
    call: Any = Call(*shapes)
    (B, T, H, K), V, mode = call.q, call.v[-1], call.mode
    if mode == "recurrent":
        return B * H * 2 * T * K * V
    return B * H * (2 * _inside(T, mode, call.chunk_size) * (K + V) + 4 * T * K * V + 2 * T * K)


@register_flop_formula(torch.ops.lsa.linear_attention_backward)
def _gradient_flops(*shapes: Any, **_: Any) -> int:
    """FLOPs of the three gradients: each product has two, and q·k and S are formed again."""
    call: Any = Call(*shapes[:CALL])
    (B, T, H, K), V = call.q, call.v[-1]
    again = _inside(T, call.mode, call.chunk_size) * K + T * K * V
    return 2 * _flops(*shapes[:CALL]) + 2 * B * H * again
