"""What the kernels of all three modes share: one sum in four roles, and how it is set up.

Linear attention and its three gradients are the same causal sum,

    out_x = f_x [ sum_{y<=x} w_y (a_x·b_y + α_x + β_y) c_y  +  a_x M_0 + ... ]

read forwards in time, or backwards with y >= x:

    role  a    b    c    direction   w_y  α_x  β_y   f_x          state M
    o     q    k    v    forwards    1    0    0     scale / n_x  S   [K, V], z
    dq    do   v    k    forwards    1    δ_x  0     scale / n_x  S^T [V, K], z
    dk    v    do   q    backwards   r_y  0    δ_y   scale        R^T [V, K], m
    dv    k    q    do   backwards   r_y  0    0     scale        R   [K, V]

with n the normaliser plus eps, r = 1 / n and δ_x = -do_x·o_x (n = r = 1 and δ = 0 when nothing
is normalised). R = sum_y r_y q_y do_y^T and m = sum_y r_y δ_y q_y run backwards in time; they
start from the gradients of the returned state, divided by scale. So a mode needs one kernel, and
the gradient of the initial state is what is left in R and m after the first token.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

import torch
import triton
from torch import Tensor

INTERPRETING = triton.knobs.runtime.interpret


@dataclass(frozen=True)
class Precision:
    """How products are formed. The names are constexpr arguments of every kernel.

    OPERAND: the kind in which inputs enter a product with another input.
    WIDE: the kind for products with a sum: fp16 would overflow there, so it takes tf32,
        which rounds like fp16 but reaches as far as float32.

    Kinds are "fp32", "fp16", "bf16"; "tf32", which is rounded here, since tensor cores only cut
    off the bits that they do not read; and "bf16 in fp32", which rounds like bf16 where a tile
    of bf16 cannot be multiplied.
    """

    OPERAND: str
    WIDE: str
    PRECISION: str

    def arguments(self) -> dict[str, object]:
        return {"OPERAND": self.OPERAND, "WIDE": self.WIDE, "PRECISION": self.PRECISION}


def precision(dtype: torch.dtype, tf32: bool | None = None) -> Precision:
    """The precision for inputs of this dtype; tf32 defaults to torch's own switch."""
    if dtype == torch.float32:
        if tf32 is None:
            tf32 = torch.backends.cuda.matmul.fp32_precision == "tf32"
        return Precision("tf32", "tf32", "tf32") if tf32 else Precision("fp32", "fp32", "ieee")
    if dtype == torch.float16:
        return Precision("fp16", "tf32", "tf32")
    # The interpreter multiplies bf16 tiles wrongly, so there they are widened after the load.
    kind = "bf16 in fp32" if INTERPRETING else "bf16"
    return Precision(kind, kind, "ieee")


@dataclass(frozen=True)
class Problem:
    """One call: inputs in the public layout and what to do with them.

    q, k [B, T, H, K]; v [B, T, H, V]; S [B, H, K, V] and z [B, H, K] float32 or None.
    feature_map: one of ops.FUSED_MAPS, applied to q and k as they are loaded.
    tf32: whether float32 products may be rounded to it; None follows torch's switch.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    S: Tensor | None
    z: Tensor | None
    scale: float
    eps: float
    normalize: bool
    feature_map: str = "identity"
    with_z: bool = True
    tf32: bool | None = None

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """B, T, H, K, V."""
        return (*self.q.shape, self.v.shape[-1])

    def precision(self) -> Precision:
        return precision(self.q.dtype, self.tf32)


@dataclass(frozen=True)
class Role:
    """One of the four sums, ready to be launched; see the head of this file.

    raw: q in role dq, k in role dk: what the slope of the feature map is taken at, if any.
    first, first_z: the state before the first token in the role's direction, or None.
    last, last_z: where the state after the last token goes, or None.
    first_factor, last_factor: multiply them (R is kept divided by scale).
    with_z: whether the role needs, or has to return, z (or m).
    """

    name: str
    a: Tensor
    b: Tensor
    c: Tensor
    out: Tensor
    maps: tuple[str, str, str]
    slope: str = "identity"
    raw: Tensor | None = None
    first: Tensor | None = None
    first_z: Tensor | None = None
    last: Tensor | None = None
    last_z: Tensor | None = None
    first_factor: float = 1.0
    last_factor: float = 1.0
    with_z: bool = False

    def state_strides(self, V: int) -> tuple[int, int]:
        """Of the state's two axes: it is stored [K, V], and dq and dk use its transpose."""
        return (1, V) if self.name in ("dq", "dk") else (V, 1)


def arithmetic_fits(x: Tensor) -> Tensor:
    """x, or a contiguous copy when the strides of a tile would leave int32."""
    widest = 256 * max(abs(s) for s in x.stride()[1::2]) if x.numel() else 0
    return x.contiguous() if widest + 128 * abs(x.stride(1)) >= 2**31 else x


def prepare(problem: Problem) -> Problem:
    """The problem with inputs whose addresses the kernels can form, and contiguous states."""
    q, k, v = (arithmetic_fits(x) for x in (problem.q, problem.k, problem.v))
    S, z = (None if s is None else s.to(torch.float32).contiguous() for s in (problem.S, problem.z))
    return replace(problem, q=q, k=k, v=v, S=S, z=z)


def block(size: int, most: int = 256) -> int:
    """The smallest power of two that holds `size` features: 16 .. most."""
    return min(most, max(16, triton.next_power_of_2(size)))


def forward_role(problem: Problem, out: Outputs) -> Role:
    """o itself."""
    f = problem.feature_map
    return Role(
        "o", problem.q, problem.k, problem.v, out.o, (f, f, "identity"),
        first=problem.S, first_z=problem.z,
        last=out.S_T, last_z=out.z_T if problem.with_z else None, with_z=problem.with_z,
    )  # fmt: skip


def dq_role(problem: Problem, do: Tensor, grads: Gradients) -> Role:
    """The attention of (do, v, k)."""
    f = problem.feature_map
    return Role(
        "dq", do, problem.v, problem.k, grads.dq, ("identity", "identity", f), slope=f,
        raw=problem.q, first=problem.S, first_z=problem.z, with_z=problem.normalize,
    )  # fmt: skip


def dk_role(
    problem: Problem, do: Tensor, grads: Gradients, dS: Tensor | None, dz: Tensor | None
) -> Role:
    """The reversed attention of (v, do, q); it leaves dz."""
    f = problem.feature_map
    return Role(
        "dk", problem.v, do, problem.q, grads.dk, ("identity", "identity", f), slope=f,
        raw=problem.k, first=dS, first_z=dz, last_z=grads.dz,
        first_factor=1.0 / problem.scale, last_factor=problem.scale,
        with_z=problem.normalize or dz is not None,
    )  # fmt: skip


def dv_role(problem: Problem, do: Tensor, grads: Gradients, dS: Tensor | None) -> Role:
    """The reversed attention of (k, q, do); it leaves dS."""
    f = problem.feature_map
    return Role(
        "dv", problem.k, problem.q, do, grads.dv, (f, f, "identity"), first=dS, last=grads.dS,
        first_factor=1.0 / problem.scale, last_factor=problem.scale,
    )  # fmt: skip


def pointer(x: Tensor | None, like: Tensor) -> Tensor:
    """x, or any other tensor where a kernel takes a pointer that it will not follow."""
    return like if x is None else x


@dataclass(frozen=True)
class Machine:
    """What a launch is planned for: the compute capability, and how many multiprocessors."""

    capability: tuple[int, int]
    multiprocessors: int


AMPERE, HOPPER = Machine((8, 0), 108), Machine((9, 0), 132)  # an A100; an H100 or H200
_stand_in = ContextVar("stand_in", default=HOPPER)


@contextmanager
def planned_for(machine: Machine) -> Iterator[None]:
    """Inside, calls on tensors that are on no GPU are planned as they would be on `machine`."""
    token = _stand_in.set(machine)
    try:
        yield
    finally:
        _stand_in.reset(token)


def multiprocessors(device: torch.device) -> int:
    """How many programs run at once, at least."""
    if device.type != "cuda":
        return _stand_in.get().multiprocessors
    return torch.cuda.get_device_properties(device).multi_processor_count


def large(device: torch.device) -> bool:
    """Whether a program may use 227 KiB of shared memory and wgmma: Hopper, and its successor."""
    if device.type != "cuda":
        capability = _stand_in.get().capability
    else:
        capability = torch.cuda.get_device_capability(device)
    return capability[0] in (9, 10)


@dataclass(frozen=True)
class Outputs:
    """What the forward pass leaves. All but o and S_T are empty where they have no use.

    o [B, T, H, V]; den [B, T, H], the normaliser without eps; S_T [B, H, K, V]; z_T [B, H, K];
    states [G - 1, B H, K V + K], the states between segments; exact, o before it was rounded.
    All but o in float32.
    """

    o: Tensor
    den: Tensor
    S_T: Tensor
    z_T: Tensor
    states: Tensor
    exact: Tensor


def stored(dtype: torch.dtype) -> torch.dtype:
    """What kernels store for this dtype: the interpreter would cut bf16 off, not round it."""
    return torch.float32 if INTERPRETING and dtype == torch.bfloat16 else dtype


def empty_outputs(problem: Problem, exact: bool) -> Outputs:
    """Room for the results, uninitialised. exact: o shall be stored as float32 first."""
    B, T, H, K, V = problem.sizes
    device = problem.q.device

    def new(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=device)

    return Outputs(
        o=new(B, T, H, V, dtype=torch.float32 if exact else stored(problem.v.dtype)),
        den=new(*(B, T, H) if problem.normalize else (0,)),
        S_T=new(B, H, K, V),
        z_T=new(*(B, H, K) if problem.with_z else (0,)),
        states=new(0, B * H, K * V + K),
        exact=new(0),
    )


def rounded_outputs(problem: Problem, out: Outputs, exact: bool) -> Outputs:
    """out with o in v's dtype, and kept as it was where that is asked for."""
    kept = out.o if exact else out.exact
    return replace(out, o=out.o.to(problem.v.dtype), exact=kept)


@dataclass(frozen=True)
class Gradients:
    """dq, dk, dv in the inputs' dtypes; dS, dz of the initial state in float32."""

    dq: Tensor
    dk: Tensor
    dv: Tensor
    dS: Tensor
    dz: Tensor


def empty_gradients(problem: Problem) -> Gradients:
    """Room for the gradients, uninitialised and contiguous."""
    B, T, H, K, V = problem.sizes
    device = problem.q.device
    return Gradients(
        *(torch.empty(x.shape, dtype=stored(x.dtype), device=device)
          for x in (problem.q, problem.k, problem.v)),
        dS=torch.empty(B, H, K, V, dtype=torch.float32, device=device),
        dz=torch.empty(B, H, K, dtype=torch.float32, device=device),
    )  # fmt: skip


def rounded_gradients(problem: Problem, grads: Gradients) -> Gradients:
    """grads with dq, dk, dv in the inputs' dtypes."""
    dtype = problem.q.dtype
    return replace(
        grads, dq=grads.dq.to(dtype), dk=grads.dk.to(dtype), dv=grads.dv.to(dtype)
    )  # fmt: skip
