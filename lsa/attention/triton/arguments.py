"""Arguments of the kernels: a call's tensors prepared, results allocated, precisions chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor
from triton import knobs

from ..call import Call, Grads, Saved

LN_2 = math.log(2)
INTERPRETING = knobs.runtime.interpret


@dataclass(frozen=True)
class Precision:
    """How products are formed. The names are constexpr arguments of every kernel.

    OPERAND: the kind of number that inputs become in a product with another input.
    WIDE: the kind for products with a sum. There fp16 would overflow, so it becomes tf32, which
        rounds like fp16 and has the range of float32.

    Kinds are "fp32", "fp16", "bf16", "tf32" and "bf16 in fp32". "tf32" is rounded here, because
    tensor cores only cut off the bits that they do not read. "bf16 in fp32" rounds like bf16 where
    a tile of bf16 cannot be multiplied.
    """

    OPERAND: str
    WIDE: str
    PRECISION: str

    def arguments(self) -> dict[str, object]:
        return {"OPERAND": self.OPERAND, "WIDE": self.WIDE, "PRECISION": self.PRECISION}


@lru_cache(maxsize=16)
def precision(dtype: torch.dtype, tf32: bool = False) -> Precision:
    """The precision for inputs of this dtype. tf32: whether float32 may be rounded to it."""
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


def precision_of(call: Call) -> Precision:
    """The precision of a call's products."""
    return precision(call.q.dtype, follows_tf32(call.q.dtype))


def addressable(x: Tensor) -> Tensor:
    """x, or a contiguous copy if features are not adjacent or a tile's offsets exceed int32."""
    s_b, s_t, s_h, s_d = x.stride()
    return x if s_d == 1 and 256 + 128 * s_t < 2**31 else x.contiguous()


def as_state(s: Tensor | None) -> Tensor | None:
    """A state, or a gradient of one, in float32 and contiguous."""
    return None if s is None else s.to(torch.float32).contiguous()


def prefixes(g: Tensor | None, T: int) -> Tensor | None:
    """G [B or 1, T + 1, H, 2], float32: the sum of g before token t, as two numbers to be added.

    Kernels need the difference of two of them, which may be small where both are large. After
    131,072 tokens a float32 sum has an error of up to 1e-3 times the mean of -g; two numbers have
    48 bits. Only a difference is ever exponentiated, as a power of two, so G sums g / ln 2.
    """
    if g is None:
        return None
    # double() first: on a GPU cumsum(dtype=) of an expanded tensor would copy it as well.
    G = F.pad((g.detach().double() / LN_2).expand(-1, T, -1).cumsum(1), (0, 0, 1, 0))
    high = G.to(torch.float32)
    return torch.stack((high, (G - high).to(torch.float32)), -1)


def prepare(call: Call) -> Call:
    """The call with inputs whose addresses the kernels can form, and contiguous states."""
    q, k, v = addressable(call.q), addressable(call.k), addressable(call.v)
    S, z = as_state(call.S), as_state(call.z)
    if q is call.q and k is call.k and v is call.v and S is call.S and z is call.z:
        return call
    return call._replace(q=q, k=k, v=v, S=S, z=z)


def block(size: int, most: int = 256) -> int:
    """The smallest power of two that holds `size` features: 16 .. most."""
    return min(most, max(16, 1 << (size - 1).bit_length()))


def pointer(x: Tensor | None, like: Tensor) -> Tensor:
    """x, or another tensor in the place of a pointer that the kernel will not follow."""
    return like if x is None else x


def faded(G: Tensor | None, like: Tensor) -> tuple[Tensor, int, bool]:
    """Kernel arguments for decay: prefix sums or a dummy, batch stride, flag."""
    if G is None:
        return like, 0, False
    return G, 0 if G.shape[0] == 1 else G.stride(0), True


def stored(dtype: torch.dtype) -> torch.dtype:
    """The dtype that kernels store. The interpreter would truncate to bf16 instead of rounding."""
    return torch.float32 if INTERPRETING and dtype == torch.bfloat16 else dtype


def empty_saved(call: Call, exact: bool, states: Tensor | None = None) -> Saved:
    """Uninitialised memory for the results. exact: store o as float32 first."""
    B, T, H, K, V = call.sizes
    device, wide = call.q.device, torch.float32
    S_T = torch.empty(B, H, K, V, dtype=wide, device=device)
    return Saved(
        o=torch.empty(B, T, H, V, dtype=wide if exact else stored(call.v.dtype), device=device),
        S_T=S_T,
        z_T=S_T.new_empty((B, H, K) if call.keeps_z else (0,)),
        den=S_T.new_empty((B, T, H) if call.normalize else (0,)),
        states=S_T.new_empty(0, B * H, K * V + K) if states is None else states,
        exact=S_T.new_empty(0),
    )


def rounded_saved(call: Call, out: Saved, exact: bool) -> Saved:
    """out with o in v's dtype; where `exact`, the unrounded o is saved too."""
    if out.o.dtype == call.v.dtype and not exact:
        return out
    kept = out.o if exact else out.exact
    return out._replace(o=out.o.to(call.v.dtype), exact=kept)


def empty_grads(call: Call) -> Grads:
    """Uninitialised, contiguous memory for the gradients; none for dg, which run_dg makes."""
    B, T, H, K, V = call.sizes
    kind = {"dtype": stored(call.q.dtype), "device": call.q.device}
    state = {"dtype": torch.float32, "device": call.q.device}
    return Grads(
        dq=torch.empty(B, T, H, K, **kind),
        dk=torch.empty(B, T, H, K, **kind),
        dv=torch.empty(B, T, H, V, **kind),
        dS=torch.empty(B, H, K, V, **state),
        dz=torch.empty(B, H, K, **state),
        dg=torch.empty(0, **state),
    )


def rounded_grads(call: Call, grads: Grads) -> Grads:
    """grads with dq, dk, dv in the inputs' dtypes, and dg in the shape of g."""
    dq, dk, dv = (x.to(call.q.dtype) for x in grads[:3])
    dg = grads.dg.sum_to_size(call.g.shape) if call.g is not None and call.with_dg else grads.dg
    return grads._replace(dq=dq, dk=dk, dv=dv, dg=dg)
