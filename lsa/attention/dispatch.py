"""What the operators compute: Triton kernels, the compiled body on CPUs, else plain torch; shapes.

Of the forward sum (`attend`, `attend_shapes`) and of its gradient (`gradient`,
`gradient_shapes`). All take an operator's flat arguments; call.py names them.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from ..operators import HAS_TRITON, launching_on, triton_module
from . import compiled, differentiable, eager
from .call import Given, Gradients, Inputs, Options, Results, taken_apart
from .differentiable import accumulator_dtype as accumulator_dtype
from .differentiable import heads_of
from .feature_maps import feature_slope

FUSED_MAPS = ("identity", "elu_plus_one", "relu", "softplus")
WIDEST = 256


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


def differentiates_decay(q: Tensor, v: Tensor, scale: float) -> bool:
    """Whether what takes this call has a gradient of its own where it fades, as kernels have."""
    return uses_kernels(q, v, scale) or compiled.takes(q)


def _kernels(mode: str) -> ModuleType:
    """The kernels of a mode."""
    return triton_module(f"{__package__}.triton", "chunked.passes" if mode == "chunked" else mode)


def _calls() -> ModuleType:
    """What the kernels of all modes are called with."""
    return triton_module(f"{__package__}.triton", "call")


def _problem(x: Inputs, options: Options, with_z: bool) -> Any:
    return _calls().Problem(
        q=x.q, k=x.k, v=x.v, S=x.S, z=x.z, scale=options.scale, eps=options.eps,
        normalize=options.normalize, feature_map=options.feature_map,
        with_z=options.normalize or with_z, g=x.g, with_dg=options.with_dg,
    )  # fmt: skip


def _own(x: Tensor, *others: Tensor) -> Tensor:
    """x with memory of its own: an operator may not return what it was given."""
    x = x.contiguous()
    return x.clone() if any(x.data_ptr() == other.data_ptr() for other in others) else x


def _keeps_exact(q: Tensor, normalize: bool) -> bool:
    """Whether plain torch keeps o unrounded: half of a gradient's error would come from o's."""
    return normalize and q.dtype in (torch.float16, torch.bfloat16)


def attend(*flat: Any) -> tuple[Tensor, ...]:
    """Results from Inputs and Options; all but o and S_T are empty where they have no use."""
    x, options = taken_apart(flat, Inputs, Options)
    normalize = options.normalize
    if uses_kernels(x.q, x.v, options.scale):
        with launching_on(x.q.device):
            out = _kernels(options.mode).forward(_problem(x, options, options.with_z))
        return Results(**vars(out))
    if compiled.takes(x.q):
        return compiled.attend(x, options)
    if x.g is not None:
        return _with_decay(x, options)
    with torch.autocast(x.q.device.type, enabled=False):
        heads = *_, S, z = heads_of(x, options)
        eps = options.eps if normalize else None
        o, den, S_T, z_T = eager.forward(*heads, eps, options.mode, options.chunk_size)
        o = o.transpose(1, 2)
    empty = S_T.new_empty
    return (
        _own(o.to(x.v.dtype), x.v),
        _own(S_T, S),
        _own(z_T, z) if normalize or options.with_z else empty(0),
        empty(0) if den is None else den.transpose(1, 2).contiguous(),
        empty(0),
        o.contiguous() if _keeps_exact(x.q, normalize) else empty(0),
    )


def _with_decay(x: Inputs, options: Options) -> tuple[Tensor, ...]:
    """Results in plain torch; the gradient forms again whatever it needs of them."""
    o, S_T, z_T = differentiable.attend(*x, *options)
    S, z = (S_T if s is None else s for s in (x.S, x.z))
    empty = S_T.new_empty
    z_T = _own(z_T, z) if options.normalize or options.with_z else empty(0)
    return _own(o, x.v), _own(S_T, S), z_T, empty(0), empty(0), empty(0)


def attend_shapes(*flat: Any) -> tuple[Tensor, ...]:
    """Empty tensors like those that attend returns, for a compiler."""
    x, options = taken_apart(flat, Inputs, Options)
    normalize = options.normalize
    B, T, H, K = x.q.shape
    V = x.v.shape[-1]
    empty = x.q.new_empty(0, dtype=accumulator_dtype(x.q.dtype))
    states, keeps_exact = empty.new_empty(0), _keeps_exact(x.q, normalize)
    keeps_den = normalize
    if not differentiates_decay(x.q, x.v, options.scale):
        # With decay plain torch keeps nothing for its gradient.
        keeps_den, keeps_exact = (keeps and x.g is None for keeps in (keeps_den, keeps_exact))
    if uses_kernels(x.q, x.v, options.scale):
        kernels, problem = _kernels(options.mode), _problem(x, options, options.with_z)
        keeps_exact = kernels.keeps_exact(problem)
        if any(isinstance(size, torch.SymInt) for size in (B, T, H)):
            # A compiler cannot follow how the number of cuts comes from the length.
            cuts = torch.library.get_ctx().new_dynamic_size()
        else:
            cuts = kernels.sums_kept(problem)
        states = empty.new_empty(cuts, B * H, K * V + K)
    return (
        x.q.new_empty(B, T, H, V),
        empty.new_empty(B, H, K, V),
        empty.new_empty((B, H, K) if normalize or options.with_z else (0,)),
        empty.new_empty((B, T, H) if keeps_den else (0,)),
        states,
        empty.new_empty((B, T, H, V) if keeps_exact else (0,)),
    )


def gradient(*flat: Any) -> tuple[Tensor, ...]:
    """Gradients from Inputs, Results, what is Given, and Options."""
    x, out, given, options = taken_apart(flat, Inputs, Results, Given, Options)
    if uses_kernels(x.q, x.v, options.scale):
        problem = _problem(x, options, given.dz is not None)
        with launching_on(x.q.device):
            kept = _calls().Outputs(*out)
            grads = _kernels(options.mode).backward(problem, kept, *given)
        dg = grads.dS.new_empty(0) if grads.dg is None else grads.dg.sum_to_size(x.g.shape)
        return Gradients(**{**vars(grads), "dg": dg})
    if compiled.takes(x.q):
        return compiled.gradient(x, out, given, options)
    if x.g is not None:
        found = differentiable.gradient(x, given, options, differentiable.attend)
        found = found._replace(
            dq=found.dq.to(x.q.dtype),
            dk=found.dk.to(x.k.dtype),
            dv=found.dv.to(x.v.dtype),
            dg=found.dg if options.with_dg else found.dg.new_empty(0),
        )
        return tuple(y.contiguous() for y in found)
    with torch.autocast(x.q.device.type, enabled=False):
        heads = q, _, _, S, z = heads_of(x, options)
        dtype = q.dtype
        dq, dk, dv, dS, dz = eager.backward(
            *heads,
            options.eps if options.normalize else None,
            (out.exact if out.exact.numel() else out.o).transpose(1, 2).to(dtype),
            out.den.transpose(1, 2) if options.normalize else None,
            given.do.transpose(1, 2).to(dtype),
            torch.zeros_like(S) if given.dS is None else given.dS.to(dtype),
            torch.zeros_like(z) if given.dz is None else given.dz.to(dtype),
            options.mode,
            options.chunk_size,
        )
        dq, dk, dv = (y.transpose(1, 2) for y in (dq, dk, dv))
        dq = dq * options.scale
        if options.feature_map != "identity":
            dq = dq * feature_slope(x.q.to(dtype), options.feature_map)
            dk = dk * feature_slope(x.k.to(dtype), options.feature_map)
    dq, dk, dv = (y.to(x.q.dtype).contiguous() for y in (dq, dk, dv))
    return dq, dk, dv, dS.contiguous(), dz.contiguous(), dS.new_empty(0)


def gradient_shapes(*flat: Any) -> tuple[Tensor, ...]:
    """Empty tensors like those that gradient returns, for a compiler."""
    x, _, _, options = taken_apart(flat, Inputs, Results, Given, Options)
    B, _, H, K = x.q.shape
    new = {"dtype": accumulator_dtype(x.q.dtype)}
    return (
        *(y.new_empty(y.shape) for y in (x.q, x.k, x.v)),
        x.q.new_empty(B, H, K, x.v.shape[-1], **new),
        x.q.new_empty(B, H, K, **new),
        x.q.new_empty(x.g.shape if options.with_dg else (0,), **new),
    )
