"""Attention removed: the control that every comparison of attentions needs."""

from __future__ import annotations

from torch import Tensor

from ..machines import StateMachine, elementwise
from .multihead import MultiHead


class NoAttention(MultiHead):
    """Each token attends to itself alone, o_t = v_t. [B, T, D] to [B, T, D].

    The projections are those of attention, so a model with this layer has the same parameters;
    those of q and k have no effect. A model of such layers predicts from the present token alone.
    """

    def _mixed(self, x: Tensor) -> Tensor:
        return self.out(self.qkv(x)[2])

    def forward(self, x: Tensor) -> Tensor:
        return self._mixed(x)

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. It has no state."""
        return elementwise(self._mixed)

    def sequence_flops(self, T: int) -> int:
        return 0

    def tick_flops(self, t: int) -> int:
        return 0

    def state_numbers(self, t: int) -> int:
        return 0
