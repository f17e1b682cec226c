"""Linear attention and its gradient as operators that torch knows: eager, compiled, captured.

`torch.ops.lsa.linear_attention` and its backward each have Triton kernels for CUDA, a body in
plain torch for all else, shapes for the compiler, and a gradient. The gradient of the backward
operator is taken through `composed_gradient`, the same gradient written as linear attentions, so
that it can be differentiated again. torch's function transforms and forward-mode derivatives
know no such operator; for them the same sum runs as plain torch throughout.

An operator's arguments are flat. What they are, and in which order, is said once, by the five
named tuples below; bodies take them apart with `_taken_apart`.

Shapes as in the public layout: q, k [B, T, H, K]; v, o [B, T, H, V]; S [B, H, K, V]; z [B, H, K].
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from types import ModuleType
from typing import Any, NamedTuple, get_type_hints

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils.flop_counter import register_flop_formula

from . import cpu, reference
from .feature_maps import FEATURE_MAPS

FUSED_MAPS = ("identity", "elu_plus_one", "relu", "softplus")
WIDEST = 256
HAS_TRITON = find_spec("triton") is not None


class Inputs(NamedTuple):
    """q, k, v and the state before them, if any."""

    q: Tensor
    k: Tensor
    v: Tensor
    S: Tensor | None
    z: Tensor | None


class Options(NamedTuple):
    """chunk_size: 0 leaves it to the implementation. with_z: z is wanted though not divided by."""

    mode: str
    chunk_size: int
    normalize: bool
    scale: float
    eps: float
    feature_map: str
    with_z: bool


class Results(NamedTuple):
    """o and the state after it, then what the gradient needs; kernels/problem.py, Outputs."""

    o: Tensor
    S_T: Tensor
    z_T: Tensor
    den: Tensor
    states: Tensor
    exact: Tensor


class Given(NamedTuple):
    """The gradients of o and of the state after it."""

    do: Tensor
    dS: Tensor | None
    dz: Tensor | None


class Gradients(NamedTuple):
    """The gradients of the inputs."""

    dq: Tensor
    dk: Tensor
    dv: Tensor
    dS: Tensor
    dz: Tensor


def _schema(arguments: tuple[type, ...], results: type) -> str:
    """An operator's signature in torch's words: the fields of named tuples, one after the other."""
    words = {Tensor: "Tensor", Tensor | None: "Tensor?", str: "str", int: "SymInt",
             bool: "bool", float: "float"}  # fmt: skip
    # A name may come twice: dS is a gradient that is given, and one that is found.
    fields = [f"{words[kind]} {name}" for group in arguments
              for name, kind in get_type_hints(group).items()]  # fmt: skip
    return f"({', '.join(fields)}) -> ({', '.join(['Tensor'] * len(results._fields))})"


def _taken_apart(flat: tuple, *groups: type) -> list[Any]:
    """The flat arguments of an operator as the named tuples that they came from."""
    rest = iter(flat)
    return [group._make(islice(rest, len(group._fields))) for group in groups]


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


@cache
def _kernels(mode: str) -> ModuleType:
    """The kernels of a mode, or what they share: imported when first needed."""
    return import_module(f".kernels.{mode}", __package__)


def _problem(x: Inputs, options: Options, with_z: bool) -> Any:
    return _kernels("problem").Problem(
        *x, options.scale, options.eps, options.normalize, options.feature_map,
        options.normalize or with_z,
    )  # fmt: skip


def _on(device: torch.device) -> AbstractContextManager:
    """Triton launches on the current device."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(device)


def _heads(x: Inputs, options: Options) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The inputs as cpu.py wants them: mapped, scaled, heads before time, summed wide."""
    B, _, H, K = x.q.shape
    dtype = accumulator_dtype(x.q.dtype)
    q, k, v = (y.transpose(1, 2).to(dtype) for y in x[:3])
    phi = FEATURE_MAPS[options.feature_map]
    S = q.new_zeros(B, H, K, v.shape[-1]) if x.S is None else x.S.to(dtype)
    z = q.new_zeros(B, H, K) if x.z is None else x.z.to(dtype)
    return phi(q) * options.scale, phi(k), v, S, z


def _own(x: Tensor, *others: Tensor) -> Tensor:
    """x with memory of its own: an operator may not return what it was given."""
    x = x.contiguous()
    return x.clone() if any(x.data_ptr() == other.data_ptr() for other in others) else x


def _keeps_exact(q: Tensor, normalize: bool) -> bool:
    """Whether plain torch keeps o unrounded: half of a gradient's error would come from o's."""
    return normalize and q.dtype in (torch.float16, torch.bfloat16)


def _attend(*flat: Any) -> tuple[Tensor, ...]:
    """Results from Inputs and Options; all but o and S_T are empty where they have no use."""
    x, options = _taken_apart(flat, Inputs, Options)
    normalize = options.normalize
    if uses_kernels(x.q, x.v, options.scale):
        with _on(x.q.device):
            out = _kernels(options.mode).forward(_problem(x, options, options.with_z))
        return out.o, out.S_T, out.z_T, out.den, out.states, out.exact
    with torch.autocast(x.q.device.type, enabled=False):
        heads = _heads(x, options)
        eps = options.eps if normalize else None
        o, den, S_T, z_T = cpu.forward(*heads, eps, options.mode, options.chunk_size)
        o = o.transpose(1, 2)
    empty = S_T.new_empty
    return (
        _own(o.to(x.v.dtype), x.v),
        _own(S_T, heads[3]),
        _own(z_T, heads[4]) if normalize or options.with_z else empty(0),
        den.transpose(1, 2).contiguous() if normalize else empty(0),
        empty(0),
        o.contiguous() if _keeps_exact(x.q, normalize) else empty(0),
    )


def _attend_shapes(*flat: Any) -> tuple[Tensor, ...]:
    x, options = _taken_apart(flat, Inputs, Options)
    normalize = options.normalize
    B, T, H, K = x.q.shape
    V = x.v.shape[-1]
    empty = x.q.new_empty(0, dtype=accumulator_dtype(x.q.dtype))
    states, keeps_exact = empty.new_empty(0), _keeps_exact(x.q, normalize)
    if uses_kernels(x.q, x.v, options.scale):
        kernels, problem = _kernels(options.mode), _problem(x, options, options.with_z)
        keeps_exact = kernels.keeps_exact(problem)
        if any(isinstance(size, torch.SymInt) for size in (B, T, H)):
            # Where a sequence is cut is no formula of its length that a compiler could follow.
            cuts = torch.library.get_ctx().new_dynamic_size()
        else:
            cuts = kernels.sums_kept(problem)
        states = empty.new_empty(cuts, B * H, K * V + K)
    return (
        x.q.new_empty(B, T, H, V),
        empty.new_empty(B, H, K, V),
        empty.new_empty((B, H, K) if normalize or options.with_z else (0,)),
        empty.new_empty((B, T, H) if normalize else (0,)),
        states,
        empty.new_empty((B, T, H, V) if keeps_exact else (0,)),
    )


def _gradient(*flat: Any) -> tuple[Tensor, ...]:
    """Gradients from Inputs, Results, what is Given, and Options."""
    x, out, given, options = _taken_apart(flat, Inputs, Results, Given, Options)
    if uses_kernels(x.q, x.v, options.scale):
        problem = _problem(x, options, given.dz is not None)
        with _on(x.q.device):
            kept = _kernels("problem").Outputs(*out)
            grads = _kernels(options.mode).backward(problem, kept, *given)
        return grads.dq, grads.dk, grads.dv, grads.dS, grads.dz
    with torch.autocast(x.q.device.type, enabled=False):
        heads = _heads(x, options)
        dtype = heads[0].dtype
        grads = cpu.backward(
            *heads,
            options.eps if options.normalize else None,
            (out.exact if out.exact.numel() else out.o).transpose(1, 2).to(dtype),
            out.den.transpose(1, 2) if options.normalize else None,
            given.do.transpose(1, 2).to(dtype),
            torch.zeros_like(heads[3]) if given.dS is None else given.dS.to(dtype),
            torch.zeros_like(heads[4]) if given.dz is None else given.dz.to(dtype),
            options.mode,
            options.chunk_size,
        )
        dq, dk, dv = (y.transpose(1, 2) for y in grads[:3])
        dq = dq * options.scale
        if options.feature_map != "identity":
            dq = dq * feature_slope(x.q.to(dtype), options.feature_map)
            dk = dk * feature_slope(x.k.to(dtype), options.feature_map)
    dq, dk, dv = (y.to(x.q.dtype).contiguous() for y in (dq, dk, dv))
    return dq, dk, dv, grads[3].contiguous(), grads[4].contiguous()


def _gradient_shapes(*flat: Any) -> tuple[Tensor, ...]:
    (x,) = _taken_apart(flat, Inputs)
    B, _, H, K = x.q.shape
    new = {"dtype": accumulator_dtype(x.q.dtype)}
    return (
        *(y.new_empty(y.shape) for y in x[:3]),
        x.q.new_empty(B, H, K, x.v.shape[-1], **new),
        x.q.new_empty(B, H, K, **new),
    )


def composed_gradient(x: Inputs, given: Given, options: Options) -> Gradients:
    """The gradient as linear attentions, each of them differentiable, in float32 or float64.

    With [v 1] and [S z] in place of v and S the normaliser is one more column of the sum, so
    every gradient is the plain, unnormalised sum of other arguments.
    """
    dtype, scale, feature_map = accumulator_dtype(x.q.dtype), options.scale, options.feature_map
    q, k, v, S, z, do, dS, dz = (y.to(dtype) for y in (*x, *given))
    # The plain sum of inputs that are mapped already.
    plain = options._replace(
        normalize=False, scale=1.0, eps=0.0, feature_map="identity", with_z=False
    )

    def sums(a: Tensor, b: Tensor, c: Tensor, M: Tensor) -> tuple[Tensor, Tensor]:
        return attend(a, b, c, M, None, *plain)[:2]

    slopes = [feature_slope(x, feature_map) for x in (q, k)]
    q, k = FEATURE_MAPS[feature_map](q) * scale, FEATURE_MAPS[feature_map](k)
    v_1 = F.pad(v, (0, 1), value=1.0)
    S_z, dS_z = (torch.cat((a, b.unsqueeze(-1)), -1) for a, b in ((S, z), (dS, dz)))
    dn = F.pad(do, (0, 1))
    if options.normalize:
        num, _ = sums(q, k, v_1, S_z)
        r = 1 / (num[..., -1:] + options.eps)
        o = num[..., :-1] * r
        dn = torch.cat((do * r, -(do * o).sum(-1, keepdim=True) * r), -1)
    dq, _ = sums(dn, v_1, k, S_z.transpose(-1, -2))
    q, k, v_1, dn = (x.flip(1) for x in (q, k, v_1, dn))
    dk, left = sums(v_1, dn, q, dS_z.transpose(-1, -2))
    dv, dS = sums(k, q, dn[..., :-1], dS)
    dq, dk, dv = dq * scale * slopes[0], dk.flip(1) * slopes[1], dv.flip(1)
    return Gradients(dq, dk, dv, dS, left[:, :, -1])


def _save_forward(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    x, ctx.options = _taken_apart(inputs, Inputs, Options)
    ctx.save_for_backward(*x, *output)


def _backward(ctx: Any, do: Tensor | None, dS: Tensor | None, dz: Tensor | None, *_: Any) -> tuple:
    x, out = _taken_apart(ctx.saved_tensors, Inputs, Results)
    if do is None:
        do = torch.zeros_like(out.o)
    dz = None if dz is None or not dz.numel() else dz
    found = Gradients(*gradient(*x, *out, do, dS, dz, *ctx.options))
    state = [None if s is None else d.to(s.dtype) for s, d in ((x.S, found.dS), (x.z, found.dz))]
    return *found[:3], *state, *(None for _ in ctx.options)


def _save_gradient(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.set_materialize_grads(False)
    x, _, given, ctx.options = _taken_apart(inputs, Inputs, Results, Given, Options)
    ctx.save_for_backward(*x, *given)


def _double_backward(ctx: Any, *grads: Tensor | None) -> tuple:
    """Differentiates composed_gradient; o, den and the states are functions of the inputs."""
    flags = _taken_apart(ctx.needs_input_grad, Inputs, Results, Given, Options)
    needed = [*flags[0], *flags[2]]
    with torch.enable_grad():
        inputs = [
            x.view_as(x) if x is not None and need else x
            for x, need in zip(ctx.saved_tensors, needed, strict=True)
        ]
        x, given = _taken_apart(inputs, Inputs, Given)
        B, _, H, K = x.q.shape
        S = x.q.new_zeros(B, H, K, x.v.shape[-1], dtype=accumulator_dtype(x.q.dtype))
        x = x._replace(S=S if x.S is None else x.S, z=S[..., 0] if x.z is None else x.z)
        given = given._replace(
            dS=S if given.dS is None else given.dS, dz=S[..., 0] if given.dz is None else given.dz
        )
        outputs = composed_gradient(x, given, ctx.options)
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
    n = len(Inputs._fields)
    return *each[:n], *(None for _ in Results._fields), *each[n:], *(None for _ in Options._fields)


FORWARD, BACKWARD = (Inputs, Options), (Inputs, Results, Given, Options)
attend_operator = torch.library.custom_op(
    "lsa::linear_attention", _attend, mutates_args=(), schema=_schema(FORWARD, Results)
)
attend_operator.register_fake(_attend_shapes)
attend_operator.register_autograd(_backward, setup_context=_save_forward)

gradient = torch.library.custom_op(
    "lsa::linear_attention_backward", _gradient, mutates_args=(),
    schema=_schema(BACKWARD, Gradients),
)  # fmt: skip
gradient.register_fake(_gradient_shapes)
gradient.register_autograd(_double_backward, setup_context=_save_gradient)


def _is_transformed(x: Inputs) -> bool:
    """Whether torch.func or forward-mode AD is at work, neither of which knows the operator."""
    if torch.compiler.is_compiling():
        return False
    if torch._C._are_functorch_transforms_active():
        return True
    return forward_ad._current_level >= 0 and any(
        y is not None and forward_ad.unpack_dual(y).tangent is not None for y in x
    )


def _composed(x: Inputs, options: Options) -> tuple[Tensor, Tensor, Tensor]:
    """o, S_T, z_T as reference.py says, which torch can differentiate in every way it knows."""
    eps = options.eps if options.normalize else None
    with torch.autocast(x.q.device.type, enabled=False):
        heads = _heads(x, options)
        if options.mode == "chunked":
            C = options.chunk_size or cpu.CHUNK_SIZE
            o, S, z = reference.chunked_mode(*heads, eps, C)
        elif options.mode == "attention":
            o, S, z = reference.attention_mode(*heads, eps)
        else:
            o, S, z = reference.recurrent_mode(*heads, eps)
    return o.transpose(1, 2).to(x.v.dtype), S, z


def attend(*flat: Any) -> tuple[Tensor, ...]:
    """Results from Inputs and Options, flat; under a function transform o, S_T and z_T alone."""
    x, options = _taken_apart(flat, Inputs, Options)
    return _composed(x, options) if _is_transformed(x) else attend_operator(*flat)


def _inside(T: int, mode: str, chunk_size: int) -> int:
    """How many products q·k plain torch forms for a head."""
    C = T if mode == "attention" else chunk_size or cpu.CHUNK_SIZE
    return T // C * C * C + (T % C) ** 2 if T else 0


@register_flop_formula(torch.ops.lsa.linear_attention)
def _flops(*shapes: Any, **_: Any) -> int:
    """What torch would count inside the operator: matrix products, not outer ones."""
    x, options = _taken_apart(shapes, *FORWARD)
    (B, T, H, K), V, mode, chunk_size = x.q, x.v[-1], options.mode, options.chunk_size
    if mode == "recurrent":
        return B * H * 2 * T * K * V
    return B * H * (2 * _inside(T, mode, chunk_size) * (K + V) + 4 * T * K * V + 2 * T * K)


@register_flop_formula(torch.ops.lsa.linear_attention_backward)
def _gradient_flops(*shapes: Any, **_: Any) -> int:
    """The same for the three gradients."""
    x, _, _, options = _taken_apart(shapes, *BACKWARD)
    (B, T, H, K), V, mode, chunk_size = x.q, x.v[-1], options.mode, options.chunk_size
    if mode == "recurrent":
        return B * H * 6 * T * K * V
    inside = _inside(T, mode, chunk_size)
    return B * H * (2 * inside * (3 * K + 2 * V) + 10 * T * K * V + 4 * T * K)
