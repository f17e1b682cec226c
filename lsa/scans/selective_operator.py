"""The selective scan on CUDA as a torch operator, and its gradient as another.

`torch.ops.lsa.selective_scan` and its backward run the Triton kernels, and plain torch for other
calls, so that both can be checked on any machine. The gradient of the backward operator is that of
`selective_plain.gradient`, which can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from ..compat import HAS_TRITON
from ..operators import gradients_where_needed, launching_on, operator, triton_module
from . import selective_plain

MOST_STATE = 64
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
NAMES = ("u", "delta", "A", "B", "C", "initial_state")
INPUTS = "Tensor u, Tensor delta, Tensor A, Tensor B, Tensor C, Tensor? h"


def _kernels() -> ModuleType:
    return triton_module(f"{__package__}.kernels", "selective")


def on_gpu(u: Tensor) -> bool:
    """Whether u is on a GPU and Triton is installed."""
    return HAS_TRITON and u.device.type == "cuda"


def wrong_shape(
    u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, h: Tensor | None
) -> str:  # fmt: skip
    """An error message for an argument whose shape does not fit the others'; empty if all do."""
    if u.dim() != 3:
        return f"u: expected [B, T, D], got {list(u.shape)}"
    if A.dim() != 2:
        return f"A: expected [D, N], got {list(A.shape)}"
    (batch, T, D), N = u.shape, A.shape[-1]
    wanted = [(batch, T, D), (batch, T, D), (D, N), (batch, T, N), (batch, T, N), (batch, D, N)]
    for name, y, shape in zip(NAMES, (u, delta, A, B, C, h), wanted, strict=True):
        if y is not None and tuple(y.shape) != shape:
            return f"{name}: expected {list(shape)}, got {list(y.shape)}"
    return ""


def why_not(
    u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, h: Tensor | None
) -> str:  # fmt: skip
    """The reason why the kernels do not take this call; empty if they take it."""
    if not on_gpu(u):
        return f"u: expected a tensor on CUDA, and Triton, for the kernels, got one on {u.device}"
    if wrong := wrong_shape(u, delta, A, B, C, h):
        return wrong
    for name, y in zip(NAMES, (u, delta, A, B, C, h), strict=True):
        if y is None:
            continue
        if y.dtype not in DTYPES:
            return f"{name}: expected float32, float16 or bfloat16 for the kernels, got {y.dtype}"
        if y.device != u.device:
            return f"{name}: expected u's device {u.device}, got {y.device}"
    (batch, T, D), N = u.shape, A.shape[-1]
    if min(batch, T, D, N) == 0:
        return f"u: expected at least one token of one channel for the kernels, got {list(u.shape)}"
    if N > MOST_STATE:
        return f"A: expected at most {MOST_STATE} numbers a channel for the kernels, got {N}"
    return ""


def _runs_kernels(x: Sequence[Any]) -> bool:
    return not why_not(*x)


def selective_scan(
    u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, h: Tensor | None, input_rule: str
) -> tuple[Tensor, Tensor]:
    """y and h_T by the operator. States are stored only if a gradient will be needed."""
    x = (u, delta, A, B, C, h)
    keep = torch.is_grad_enabled() and any(y is not None and y.requires_grad for y in x)
    y, last, _ = scan_operator(*x, input_rule, keep)
    return y, last


def _wide(*x: Tensor) -> list[Tensor]:
    """The tensors in float32, or in float64 if one of them is."""
    dtype = selective_plain.state_dtype(*x)
    return [y.to(dtype) for y in x]


def _start(x: Sequence[Any]) -> Tensor:
    """The state before the first token."""
    (batch, _, D), N = x[0].shape, x[2].shape[-1]
    return x[2].new_zeros(batch, D, N) if x[5] is None else x[5]


def _scan(*flat: Any) -> tuple[Tensor, Tensor, Tensor]:
    """y in u's dtype, h_T, and the states that the gradient needs, empty if not `keep`."""
    *x, input_rule, keep = flat
    if _runs_kernels(x):
        with launching_on(x[0].device):
            return _kernels().forward(_kernels().Problem(*x, input_rule), keep=keep)
    wide = _wide(*x[:5], _start(x))
    y, h = selective_plain.in_chunks(*wide, input_rule=input_rule, mode="steps", chunk_size=64)
    return y.to(x[0].dtype), h.clone(), h.new_empty(0)


def _shapes(*flat: Any) -> tuple[Tensor, Tensor, Tensor]:
    *x, _, keep = flat
    (batch, T, D), N = x[0].shape, x[2].shape[1]
    empty = x[0].new_empty(0, dtype=selective_plain.state_dtype(*x[:5]))
    kept = _kernels().kept_shape(batch, T, D, N) if keep and _runs_kernels(x) else (0,)
    return x[0].new_empty(batch, T, D), empty.new_empty(batch, D, N), empty.new_empty(kept)


def _gradient(*flat: Any) -> tuple[Tensor, ...]:
    """du, dΔ, dA, dB, dC in their inputs' dtypes, and dh_0; `kept` may be empty."""
    *x, kept, dy, dh, input_rule = flat
    if _runs_kernels(x):
        with launching_on(x[0].device):
            problem = _kernels().Problem(*x, input_rule)
            if not kept.numel():
                kept = _kernels().forward(problem, keep=True)[2]
            found = _kernels().backward(problem, kept, dy, dh)
    else:
        h = _start(x)
        wide = _wide(*x[:5], h, dy, torch.zeros_like(h) if dh is None else dh)
        found = selective_plain.gradient(*wide, input_rule=input_rule, mode="steps")
    return *(y.to(z.dtype) for y, z in zip(found[:5], x[:5], strict=True)), found[5]


def _gradient_shapes(*flat: Any) -> tuple[Tensor, ...]:
    x = flat[:6]
    h = x[2].new_empty(x[0].shape[0], *x[2].shape, dtype=selective_plain.state_dtype(*x[:5]))
    return *(y.new_empty(y.shape) for y in x[:5]), h


def _save(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    ctx.input_rule = inputs[6]
    ctx.save_for_backward(*inputs[:6], output[2])


def _backward(ctx: Any, dy: Tensor | None, dh: Tensor | None, _: Tensor | None) -> tuple:
    *x, kept = ctx.saved_tensors
    dy = torch.zeros_like(x[0]) if dy is None else dy
    found = gradient_operator(*x, kept, dy, dh, ctx.input_rule)
    each = [
        g.to(y.dtype) if y is not None and need else None
        for g, y, need in zip(found, x, ctx.needs_input_grad, strict=False)
    ]
    return *each, None, None


def _save_gradient(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    ctx.input_rule = inputs[9]
    ctx.save_for_backward(*inputs[:6], *inputs[7:9])


def _double_backward(ctx: Any, *grads: Tensor | None) -> tuple:
    """Differentiates selective_plain.gradient; the stored states are functions of the inputs."""
    flags = [*ctx.needs_input_grad[:6], *ctx.needs_input_grad[7:9]]
    with torch.enable_grad():
        inputs: list[Any] = [
            x.view_as(x) if x is not None and need else x
            for x, need in zip(ctx.saved_tensors, flags, strict=True)
        ]
        *x, h, dy, dh = inputs
        h = _start((*x, h))
        wide = _wide(*x, h, dy, torch.zeros_like(h) if dh is None else dh)
        found = selective_plain.gradient(*wide, input_rule=ctx.input_rule, mode="tree")
    each = gradients_where_needed(found, grads, inputs, flags)
    return *each[:6], None, *each[6:], None


scan_operator = operator(
    "selective_scan",
    f"({INPUTS}, str input_rule, bool keep) -> (Tensor, Tensor, Tensor)",
    _scan, _shapes, _backward, _save,
)  # fmt: skip
gradient_operator = operator(
    "selective_scan_backward",
    f"({INPUTS}, Tensor kept, Tensor dy, Tensor? dh, str input_rule)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    _gradient, _gradient_shapes, _double_backward, _save_gradient,
)  # fmt: skip
