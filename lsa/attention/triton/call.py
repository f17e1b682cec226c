"""One call: its inputs, its results, its gradients, and how its products are formed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor
from triton import knobs

LN_2 = math.log(2)
INTERPRETING = knobs.runtime.interpret


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


@lru_cache(maxsize=16)
def precision(dtype: torch.dtype, tf32: bool = False) -> Precision:
    """The precision for inputs of this dtype. tf32: whether float32 products may be rounded so."""
    if dtype == torch.float32:
        return Precision("tf32", "tf32", "tf32") if tf32 else Precision("fp32", "fp32", "ieee")
    if dtype == torch.float16:
        return Precision("fp16", "tf32", "tf32")
    # The interpreter multiplies bf16 tiles wrongly, so there they are widened after the load.
    kind = "bf16 in fp32" if INTERPRETING else "bf16"
    return Precision(kind, kind, "ieee")


def follows_tf32(dtype: torch.dtype) -> bool:
    """Whether torch's own switch allows tf32 for products of this dtype."""
    return dtype == torch.float32 and torch.backends.cuda.matmul.fp32_precision == "tf32"


@dataclass(frozen=True)
class Problem:
    """One call: inputs in the public layout and what to do with them.

    q, k [B, T, H, K]; v [B, T, H, V]; S [B, H, K, V] and z [B, H, K] float32 or None.
    feature_map: one of bodies.FUSED_MAPS, applied to q and k as they are loaded.
    with_z: whether the normaliser's state is wanted.
    g: the logarithm of the decay, [B, T, H] or [1, 1, H], or None.
    with_dg: whether its gradient is wanted.
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
    g: Tensor | None = None
    with_dg: bool = False

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """B, T, H, K, V."""
        B, T, H, K = self.q.shape
        return B, T, H, K, self.v.shape[-1]

    def precision(self) -> Precision:
        return precision(self.q.dtype, follows_tf32(self.q.dtype))


def addressable(x: Tensor) -> Tensor:
    """x, or a contiguous copy when features are not adjacent or a tile's strides leave int32."""
    s_b, s_t, s_h, s_d = x.stride()
    return x if s_d == 1 and 256 + 128 * s_t < 2**31 else x.contiguous()


def as_state(s: Tensor | None) -> Tensor | None:
    """A state, or a gradient of one, in float32 and contiguous."""
    return None if s is None else s.to(torch.float32).contiguous()


def prefixes(g: Tensor | None, T: int) -> Tensor | None:
    """G [B or 1, T + 1, H, 2], float32: the sum of g before token t, as two numbers to be added.

    Kernels need the difference of two of them, which may be small where both are large: after
    131,072 tokens a sum in float32 knows no gap to better than 1e-3 times the mean of -g. A sum
    of two has 48 bits. Its exponential is never taken, only that of a difference: as a power of
    two, and so G is the sum of g / ln 2.
    """
    if g is None:
        return None
    # double() first: on a GPU cumsum(dtype=) of an expanded tensor would copy it as well.
    G = F.pad((g.detach().double() / LN_2).expand(-1, T, -1).cumsum(1), (0, 0, 1, 0))
    high = G.to(torch.float32)
    return torch.stack((high, (G - high).to(torch.float32)), -1)


def prepare(problem: Problem) -> Problem:
    """The problem with inputs whose addresses the kernels can form, and contiguous states."""
    q, k, v = addressable(problem.q), addressable(problem.k), addressable(problem.v)
    S, z = as_state(problem.S), as_state(problem.z)
    if q is problem.q and k is problem.k and v is problem.v and S is problem.S and z is problem.z:
        return problem
    return replace(problem, q=q, k=k, v=v, S=S, z=z)


def block(size: int, most: int = 256) -> int:
    """The smallest power of two that holds `size` features: 16 .. most."""
    return min(most, max(16, 1 << (size - 1).bit_length()))


def pointer(x: Tensor | None, like: Tensor) -> Tensor:
    """x, or any other tensor where a kernel takes a pointer that it will not follow."""
    return like if x is None else x


def faded(G: Tensor | None, like: Tensor) -> tuple[Tensor, int, bool]:
    """What a kernel takes of prefixes: them, from one sequence to the next, and whether any."""
    if G is None:
        return like, 0, False
    return G, 0 if G.shape[0] == 1 else G.stride(0), True


@dataclass(frozen=True)
class Outputs:
    """What the forward pass leaves. All but o and S_T are empty where they have no use.

    o [B, T, H, V]; S_T [B, H, K, V]; z_T [B, H, K]; den [B, T, H], the normaliser without eps;
    states [G - 1, B H, K V + K], what a segmented pass keeps of the sums between its segments;
    exact, o before it was rounded. All but o in float32. The fields are in the order of the
    operator's results.
    """

    o: Tensor
    S_T: Tensor
    z_T: Tensor
    den: Tensor
    states: Tensor
    exact: Tensor


def stored(dtype: torch.dtype) -> torch.dtype:
    """What kernels store for this dtype: the interpreter would cut bf16 off, not round it."""
    return torch.float32 if INTERPRETING and dtype == torch.bfloat16 else dtype


def empty_outputs(problem: Problem, exact: bool, states: Tensor | None = None) -> Outputs:
    """Room for the results, uninitialised. exact: o shall be stored as float32 first."""
    B, T, H, K, V = problem.sizes
    device, wide = problem.q.device, torch.float32
    S_T = torch.empty(B, H, K, V, dtype=wide, device=device)
    return Outputs(
        o=torch.empty(B, T, H, V, dtype=wide if exact else stored(problem.v.dtype), device=device),
        S_T=S_T,
        z_T=S_T.new_empty((B, H, K) if problem.with_z else (0,)),
        den=S_T.new_empty((B, T, H) if problem.normalize else (0,)),
        states=S_T.new_empty(0, B * H, K * V + K) if states is None else states,
        exact=S_T.new_empty(0),
    )


def rounded_outputs(problem: Problem, out: Outputs, exact: bool) -> Outputs:
    """out with o in v's dtype, and kept as it was where that is asked for."""
    if out.o.dtype == problem.v.dtype and not exact:
        return out
    kept = out.o if exact else out.exact
    return replace(out, o=out.o.to(problem.v.dtype), exact=kept)


@dataclass(frozen=True)
class Gradients:
    """dq, dk, dv in the inputs' dtypes; in float32 dS, dz of the initial state, dg [B, T, H]."""

    dq: Tensor
    dk: Tensor
    dv: Tensor
    dS: Tensor
    dz: Tensor
    dg: Tensor | None = None


def empty_gradients(problem: Problem) -> Gradients:
    """Room for the gradients, uninitialised and contiguous."""
    B, T, H, K, V = problem.sizes
    kind = {"dtype": stored(problem.q.dtype), "device": problem.q.device}
    state = {"dtype": torch.float32, "device": problem.q.device}
    return Gradients(
        dq=torch.empty(B, T, H, K, **kind),
        dk=torch.empty(B, T, H, K, **kind),
        dv=torch.empty(B, T, H, V, **kind),
        dS=torch.empty(B, H, K, V, **state),
        dz=torch.empty(B, H, K, **state),
    )


def rounded_gradients(problem: Problem, grads: Gradients) -> Gradients:
    """grads with dq, dk, dv in the inputs' dtypes."""
    dtype = problem.q.dtype
    if grads.dq.dtype == dtype:
        return grads
    return replace(grads, dq=grads.dq.to(dtype), dk=grads.dk.to(dtype), dv=grads.dv.to(dtype))
