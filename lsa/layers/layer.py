"""What a layer is: a causal map of sequences that is also a machine, and can say what it costs."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from ..machines import StateMachine


class Layer(Protocol):
    """[B, T, D] to [B, T, D], and the same token by token: unroll(machine())(x) == layer(x).

    Costs are those of mixing the tokens of one sequence; projections, which every layer has,
    are left out. A multiply-add is 2 FLOPs, and masked products count half.
    """

    def __call__(self, x: Tensor) -> Tensor: ...

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]."""
        ...

    def sequence_flops(self, T: int) -> int:
        """FLOPs of T tokens at once."""
        ...

    def tick_flops(self, t: int) -> int:
        """FLOPs of tick t, counted from 1."""
        ...

    def state_numbers(self, t: int) -> int:
        """Numbers in the state after t ticks."""
        ...
