"""Parameters that keep float32 precision in a module of 16 bits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..attention.call import accumulator_dtype

HALVES = (torch.bfloat16, torch.float16)


class Precise(nn.Module):
    """A module whose own parameters keep float32's digits when it is converted to 16 bits.

    A state space multiplies by the same Ā at every tick, so a rounded eigenvalue causes a phase
    error that grows with the text. A parameter still has the model's dtype, because sharding needs
    one dtype for all parameters of a group. Its rounding error is a float32 buffer beside it,
    `NAME_rest`. The conversion makes this buffer; it is stored with the weights, and training does
    not change it.
    """

    rounded: tuple[str, ...] = ()  # parameters that may be rounded like all others

    def exact(self, name: str) -> Tensor:
        """A parameter plus its rounding error, in `accumulator_dtype`."""
        x, rest = getattr(self, name), getattr(self, f"{name}_rest", None)
        wide = x.to(accumulator_dtype(x.dtype))
        return wide if rest is None else wide + rest

    def _split(self, name: str, exact: Tensor) -> None:
        """Store a number as the parameter and, if the parameter has 16 bits, its rounding error."""
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
        """The names of these parameters, except sharded ones, whose rest stays as it is."""
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
