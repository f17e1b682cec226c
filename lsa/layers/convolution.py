"""Causal convolutions: by the definition, by the FFT, and a short one as a layer."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ..checks import boolean, whole
from ..machines import StateMachine, single


def direct_convolution(kernel: Tensor, u: Tensor) -> Tensor:
    """y_t = sum_{i<=t} kernel_i u_{t-i}, by the sum itself: O(T^2). kernel [D, T], u [B, T, D].

    Each channel is a product of a Toeplitz matrix, together [D, T, T], with u.
    """
    T = u.shape[1]
    lag = torch.arange(T, device=u.device)
    lag = lag.unsqueeze(1) - lag  # [T, T]
    toeplitz = torch.where(lag >= 0, kernel[:, lag.clamp(min=0)], 0)
    return torch.einsum("dij,bjd->bid", toeplitz, u)


def fft_convolution(kernel: Tensor, u: Tensor) -> Tensor:
    """The same by the convolution theorem: O(T log T). kernel [D, T], u [B, T, D].

    Both are padded with zeros to 2 T; otherwise the sequence's end would wrap around to its start.
    """
    T = u.shape[1]
    product = torch.fft.rfft(kernel, 2 * T) * torch.fft.rfft(u.transpose(1, 2), 2 * T)
    return torch.fft.irfft(product, 2 * T)[..., :T].transpose(1, 2)


def fft_flops(n: int) -> int:
    """FLOPs of the transform of n real numbers: 5/2 n log2 n, half of the radix-2 count."""
    return math.ceil(2.5 * n * math.log2(n)) if n > 1 else 0


def convolution_flops(mode: str, T: int) -> int:
    """FLOPs of one channel over T tokens: mode "fft" (three transforms of 2 T) or "direct"."""
    if mode == "direct":
        return T * (T + 1)
    return 3 * fft_flops(2 * T) + 8 * (T + 1) if T else 0


class CausalConv(nn.Module):
    """y_t = b + sum_{i<width} w_i ∘ x_{t-i}, channel by channel. [B, T, D] to [B, T, D].

    The short convolution that Mamba (Gu and Dao, 2023) and DeltaNet (Yang et al., 2024) place
    before their mixing. Like a token shift, it shows each token the few before it. Parameters are
    named and shaped as in torch's Conv1d: weight [D, 1, width], newest last.
    """

    def __init__(self, d_model: int, *, width: int = 4, bias: bool = True) -> None:
        super().__init__()
        for name, value in (("d_model", d_model), ("width", width)):
            whole(name, value)
        boolean("bias", bias)
        self.d_model, self.width = d_model, width
        self.weight = nn.Parameter(torch.empty(d_model, 1, width).uniform_(-1, 1) * width**-0.5)
        self.bias = nn.Parameter(torch.zeros(d_model)) if bias else None

    def attend(self, past: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """x [B, T, D] after the width - 1 inputs `past`, to the last width - 1 inputs and y."""
        T = x.shape[1]
        x = torch.cat((past.expand(x.shape[0], -1, -1), x), dim=1)
        # T products a weight instead of conv1d, which does not take an empty sequence.
        first, *others = (self.weight[:, 0, i] * x[:, i : i + T] for i in range(self.width))
        y = sum(others, start=first if self.bias is None else self.bias + first)
        return x[:, T:], y

    def start(self) -> Tensor:
        """Zeros before the first token, [1, width - 1, D]."""
        return self.weight.new_zeros(1, self.width - 1, self.d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.attend(self.start(), x)[1]

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. The state is the last width - 1 inputs."""
        return StateMachine(self.start(), single(self.attend), self.attend)

    def sequence_flops(self, T: int) -> int:
        return T * self.tick_flops(1)

    def tick_flops(self, t: int) -> int:
        return 2 * self.width * self.d_model

    def state_numbers(self, t: int) -> int:
        return (self.width - 1) * self.d_model
