"""Parameters that a module in 16 bits goes on computing with in float32."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..attention.call import accumulator_dtype

HALVES = (torch.bfloat16, torch.float16)


class Precise(nn.Module):
    """A module whose own parameters keep float32's digits when it is converted to 16 bits.

    A state space multiplies by the same Ā at every tick, so a rounded eigenvalue is off by a phase
    that grows with the text. A parameter still has the model's dtype, which sharding asks of all
    parameters of a group; what its rounding left over is a buffer beside it, `NAME_rest`, in
    float32. It is made by the conversion, stored with the weights, and constant under training.
    """

    rounded: tuple[str, ...] = ()  # parameters that may be rounded as all others are

    def exact(self, name: str) -> Tensor:
        """A parameter in the precision of sums, with what rounding left over."""
        x, rest = getattr(self, name), getattr(self, f"{name}_rest", None)
        wide = x.to(accumulator_dtype(x.dtype))
        return wide if rest is None else wide + rest

    def _split(self, name: str, exact: Tensor) -> None:
        """Keep a number as the parameter, and as its rest where the parameter has 16 bits."""
        x: Tensor = getattr(self, name)
        self._buffers.pop(f"{name}_rest", None)
        if exact.is_meta or x.is_meta:
            return
        exact = exact.to(x.device)
        if x.dtype in HALVES:
            self.register_buffer(f"{name}_rest", exact - x.detach().to(exact.dtype))
        else:
            x.data.copy_(exact)

    def _names(self) -> list[str]:
        """The parameters in question, while they are whole: a shard's rest stays as it is."""
        return [
            name for name, x in self._parameters.items()
            if name not in self.rounded and type(x) is nn.Parameter
        ]  # fmt: skip

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        before = {name: self.exact(name).detach() for name in self._names()}
        halves = {name for name in before if getattr(self, name).dtype in HALVES}
        super()._apply(fn, recurse)
        for name, exact in before.items():
            if name in halves or getattr(self, name).dtype in HALVES:
                self._split(name, exact)
        return self

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, metadata: Any, strict: bool,
        missing: list[str], unexpected: list[str], errors: list[str],
    ) -> None:  # fmt: skip
        found = {}
        for name in self._names():
            rest, x = state_dict.pop(f"{prefix}{name}_rest", None), state_dict.get(prefix + name)
            if x is None:
                continue
            self._buffers.pop(f"{name}_rest", None)
            if rest is not None or x.dtype != getattr(self, name).dtype:
                wide = x.to(accumulator_dtype(x.dtype))
                found[name] = wide if rest is None else wide + rest
        super()._load_from_state_dict(
            state_dict, prefix, metadata, strict, missing, unexpected, errors
        )
        for name, exact in found.items():
            self._split(name, exact)
