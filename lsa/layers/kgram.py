"""The k-gram MLP: it reads the last k inputs only."""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..checks import whole
from ..machines import StateMachine
from .layer import ResidualLinear


class KGram(nn.Module):
    """y_t = MLP(x_{t-k+1}, ..., x_t), zeros before the start. [B, T, D] to [B, T, D].

    One hidden layer of `hidden` tanh units (4 D by default), as in Bengio et al. (2003).
    """

    def __init__(self, d_model: int, k: int = 8, hidden: int | None = None) -> None:
        super().__init__()
        whole("d_model", d_model)
        hidden = 4 * d_model if hidden is None else hidden
        for name, value in (("k", k), ("hidden", hidden)):
            whole(name, value)
        self.d_model, self.k, self.hidden = d_model, k, hidden
        self.mlp = nn.Sequential(
            nn.Linear(k * d_model, hidden), nn.Tanh(), ResidualLinear(hidden, d_model)
        )

    def forward(self, x: Tensor) -> Tensor:
        past = F.pad(x, (0, 0, self.k - 1, 0))
        T = x.shape[1]
        windows = torch.stack([past[:, i : i + T] for i in range(self.k)], dim=2)  # [B, T, k, D]
        return self.mlp(windows.flatten(-2))

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. The state is the last k - 1 inputs."""

        def step(past: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            window = torch.cat((past.expand(x.shape[0], -1, -1), x.unsqueeze(1)), dim=1)
            return window[:, 1:], self.mlp(window.flatten(-2))

        weight = cast("nn.Linear", self.mlp[-1]).weight
        return StateMachine(weight.new_zeros(1, self.k - 1, self.d_model), step)

    def sequence_flops(self, T: int) -> int:
        return 0

    def tick_flops(self, t: int) -> int:
        return 0

    def state_numbers(self, t: int) -> int:
        return (self.k - 1) * self.d_model
