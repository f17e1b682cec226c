"""The plain recurrent network, one layer or many. Its state is one vector a layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import torch
from torch import Tensor, nn

from ..checks import whole
from ..machines import StateMachine, stack
from .layer import ResidualLinear


class RNN(nn.Module):
    """s_t = tanh(W s_{t-1}) + x_t and y_t = U s_t, from s_0 = 0. [B, T, D] to [B, T, D].

    A simple recurrent network in the manner of Elman (1990).
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        whole("d_model", d_model)
        self.W = nn.Linear(d_model, d_model, bias=False)
        self.U = ResidualLinear(d_model, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        s, states = x.new_zeros(x.shape[0], x.shape[2]), []
        for x_t in x.unbind(1):
            s = torch.tanh(self.W(s)) + x_t
            states.append(s)
        # The states depend on each other; the outputs do not, so one product gives all outputs.
        return self.U(torch.stack(states, dim=1) if states else x)

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. The state is s, D numbers."""

        def step(s: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            s = torch.tanh(self.W(s)) + x
            return s, self.U(s)

        weight = self.U.weight
        return StateMachine(weight.new_zeros(1, weight.shape[0]), step)

    def sequence_flops(self, T: int) -> int:
        return 0

    def tick_flops(self, t: int) -> int:
        return 0

    def state_numbers(self, t: int) -> int:
        return self.U.weight.shape[0]


class DeepRNN(nn.Sequential):
    """A stack of `RNN` layers, each reading the outputs of the one before.

    Called on a sequence it works layer by layer (layer-major order). Its machine works tick by
    tick through all layers (time-major order). Both compute the same function.
    """

    def __init__(self, d_model: int, n_layers: int) -> None:
        whole("n_layers", n_layers, 0)
        super().__init__(*(RNN(d_model) for _ in range(n_layers)))

    def __iter__(self) -> Iterator[RNN]:
        return cast("Iterator[RNN]", super().__iter__())

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. The state is a vector of D numbers a layer."""
        return stack(*(layer.machine() for layer in self))
