"""One call of linear attention, what it saves for its gradient, and the gradients.

Every body takes and returns these three named tuples; operator.py flattens them for torch.

Shapes as in the public layout: q, k [B, T, H, K]; v, o [B, T, H, V]; S [B, H, K, V]; z [B, H, K].
"""

from __future__ import annotations

from typing import NamedTuple, get_type_hints

import torch
from torch import Tensor

EPS = 1e-6
CHUNK_SIZE = 64  # of chunked mode in plain torch, if the call names none
UPSTREAM = "Tensor do, Tensor? dS_T, Tensor? dz_T"  # the gradients of a call's results


def accumulator_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype of states and sums: float32, or float64 for inputs in float64."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def without_autocast(x: Tensor) -> torch.autocast:
    """Context without autocast on x's device; meta, which knows none, counts as a CPU."""
    return torch.autocast("cpu" if x.is_meta else x.device.type, enabled=False)


class Call(NamedTuple):
    """The inputs and options of one call.

    S, z: the state before the first token, or None. g: the logarithm of the decay, or None;
        [B, T, H], or [1, 1, H] if it is the same for all tokens.
    chunk_size: 0 leaves it to the body. feature_map: applied to q and k by the body.
    with_z: the state is returned, so z is summed even if nothing is normalised. In a backward call:
        z_T has a gradient.
    with_dg: the gradient of g is wanted; the forward pass does not read it.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    S: Tensor | None = None
    z: Tensor | None = None
    g: Tensor | None = None
    mode: str = "chunked"
    chunk_size: int = 0
    normalize: bool = True
    scale: float = 1.0
    eps: float = EPS
    feature_map: str = "identity"
    with_z: bool = False
    with_dg: bool = False

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """B, T, H, K, V."""
        B, T, H, K = self.q.shape
        return B, T, H, K, self.v.shape[-1]

    @property
    def keeps_z(self) -> bool:
        """Whether the body has to sum z."""
        return self.normalize or self.with_z


INPUTS = 6  # the first fields of a call, its tensors


def check_layouts(call: Call) -> None:
    """Raise ValueError unless q, k and v are strided tensors."""
    for name, x in zip("qkv", call[:3], strict=True):
        if x.layout is not torch.strided:
            raise ValueError(f"{name}: expected a strided tensor, got {x.layout}")


class Saved(NamedTuple):
    """Results of the forward pass. All but o and S_T are empty where nothing uses them.

    o [B, T, H, V]; S_T [B, H, K, V]; z_T [B, H, K]; den [B, T, H], the normaliser without eps.
    states [G - 1, B H, K V + K]: sums between segments, stored by chunked mode's kernels. exact:
    o before it was rounded. All but o in `accumulator_dtype`.
    """

    o: Tensor
    S_T: Tensor
    z_T: Tensor
    den: Tensor
    states: Tensor
    exact: Tensor


class Grads(NamedTuple):
    """The gradients of a call's inputs.

    dq, dk, dv in the inputs' dtypes; dS, dz, and dg in the shape of g, in `accumulator_dtype`.
    dg is empty where it is not wanted.
    """

    dq: Tensor
    dk: Tensor
    dv: Tensor
    dS: Tensor
    dz: Tensor
    dg: Tensor


def signature(*parts: type | str, results: type) -> str:
    """An operator's signature as torch's schema. parts: named tuples, or literal schemas."""
    words = {Tensor: "Tensor", Tensor | None: "Tensor?", str: "str", int: "SymInt",
             bool: "bool", float: "float"}  # fmt: skip
    each = [
        part if isinstance(part, str)
        else ", ".join(f"{words[kind]} {name}" for name, kind in get_type_hints(part).items())
        for part in parts
    ]  # fmt: skip
    return f"({', '.join(each)}) -> ({', '.join(['Tensor'] * len(get_type_hints(results)))})"
