"""The choice of body for a call: Triton kernels, the compiled body on CPUs, else plain torch.

Also the shapes of their results, for torch.compile.
"""

from __future__ import annotations

from typing import Protocol, cast

import torch
from torch import Tensor

from ..compat import HAS_TRITON
from ..operators import triton_module
from . import compiled, differentiable, eager
from .call import Call, Grads, Saved, accumulator_dtype

FUSED_MAPS = ("identity", "elu_plus_one", "relu", "softplus")
WIDEST = 256


def backends() -> dict[str, str]:
    """The body that runs on tensors of the CPU and of CUDA, and what faster ones lack.

    It does not look for a GPU.
    """
    cpu, gpu = compiled.BODY, "plain torch: Triton is not installed"
    return {
        "cpu": f"plain torch: {cpu}" if isinstance(cpu, str) else f"compiled for {cpu.name}",
        "cuda": "Triton kernels" if HAS_TRITON else gpu,
    }


class Body(Protocol):
    """A forward sum, and its gradients."""

    def forward(self, call: Call) -> Saved: ...

    def backward(
        self, call: Call, saved: Saved, do: Tensor, dS: Tensor | None, dz: Tensor | None, /
    ) -> Grads:
        """The gradients, from those of o and of the returned state (None: no gradient)."""
        ...


class Kernels(Body, Protocol):
    """A mode's Triton kernels; they also say what they save. B, T and H may be symbols there."""

    def sums_kept(self, call: Call) -> int:
        """How many sums between segments are saved."""
        ...

    def keeps_exact(self, call: Call) -> bool:
        """Whether o is saved unrounded."""
        ...


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


def differentiates_decay(call: Call) -> bool:
    """Whether the call's body computes the gradient of decay itself, as the kernels do."""
    return compiled.takes(call.q) or uses_kernels(call.q, call.v, call.scale)


def body(call: Call) -> Body:
    """The body that computes a call."""
    if uses_kernels(call.q, call.v, call.scale):
        return _kernels(call)
    if compiled.takes(call.q):
        return compiled
    return eager if call.g is None else differentiable


def attend(call: Call) -> differentiable.Sums:
    """o, S_T and z_T on a CPU, without saving anything for a gradient."""
    if compiled.takes(call.q):
        return compiled.forward(call, saves=False)[:3]
    return body(call).forward(call)[:3]


def _kernels(call: Call) -> Kernels:
    name = "chunked.passes" if call.mode == "chunked" else call.mode
    return cast("Kernels", triton_module(f"{__package__}.triton", name))


def saved_shapes(call: Call) -> Saved:
    """Empty tensors with the shapes of forward's results."""
    B, T, H, K, V = call.sizes
    empty = call.q.new_empty(0, dtype=accumulator_dtype(call.q.dtype))
    states, keeps_exact = empty.new_empty(0), eager.keeps_exact(call)
    keeps_den = call.normalize
    if call.g is not None and not differentiates_decay(call):
        keeps_den = keeps_exact = False
    if uses_kernels(call.q, call.v, call.scale):
        kernels = _kernels(call)
        keeps_exact = kernels.keeps_exact(call)
        if any(isinstance(size, torch.SymInt) for size in (B, T, H)):
            # torch.compile cannot follow how the number of segments depends on the length.
            cuts = torch.library.get_ctx().new_dynamic_size()
        else:
            cuts = kernels.sums_kept(call)
        states = empty.new_empty(cuts, B * H, K * V + K)
    return Saved(
        o=call.q.new_empty(B, T, H, V),
        S_T=empty.new_empty(B, H, K, V),
        z_T=empty.new_empty((B, H, K) if call.keeps_z else (0,)),
        den=empty.new_empty((B, T, H) if keeps_den else (0,)),
        states=states,
        exact=empty.new_empty((B, T, H, V) if keeps_exact else (0,)),
    )


def grads_shapes(call: Call) -> Grads:
    """Empty tensors with the shapes of backward's results."""
    B, _, H, K, V = call.sizes
    wide = call.q.new_empty(0, dtype=accumulator_dtype(call.q.dtype))
    dg = call.g.shape if call.g is not None and call.with_dg else (0,)
    dq, dk, dv = (x.new_empty(x.shape) for x in (call.q, call.k, call.v))
    dS, dz = wide.new_empty(B, H, K, V), wide.new_empty(B, H, K)
    return Grads(dq, dk, dv, dS, dz, wide.new_empty(dg))
