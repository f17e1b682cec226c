"""RWKV-4: AFT with a decay in place of the biases, so that two sums are enough.

Peng et al. (2023), section 3. With a token shift before each projection,

    r_t, k_t, v_t = W (μ ∘ x_t + (1 - μ) ∘ x_{t-1}), each with its own W and μ,

            sum_{i<t} exp(k_i - (t-1-i) w) ∘ v_i + exp(u + k_t) ∘ v_t
    wkv_t = ---------------------------------------------------------,    y_t = W_o (σ(r_t) ∘ wkv_t)
            sum_{i<t} exp(k_i - (t-1-i) w)       + exp(u + k_t)

with a decay w > 0 a token and a bonus u for the newest token, one of each per channel. Both sums
run over all earlier tokens.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..attention.call import accumulator_dtype
from ..checks import whole
from ..machines import StateMachine
from ..scans import TREE_FLOPS, ExponentialSums, exponential_step, exponential_sums, no_sums
from .layer import ResidualLinear


def _shifted(last: Tensor, x: Tensor) -> Tensor:
    """x_{t-1} for every t: x [B, T, D] one tick late, `last` [B, D] before the first."""
    return torch.cat((last.expand(x.shape[0], -1).unsqueeze(1), x[:, :-1]), dim=1)


def _mix(mu: Tensor, x: Tensor, before: Tensor) -> Tensor:
    return mu * x + (1 - mu) * before


class TimeMixingState(NamedTuple):
    """The last input [B, D], and the sums over all tokens so far."""

    x: Tensor
    sums: ExponentialSums


class RWKVTimeMixing(nn.Module):
    """RWKV-4's attention: token shift, wkv, receptance. [B, T, D] to [B, T, D].

    The mixing weights, decays and bonuses start as in the published model's first block.
    """

    def __init__(self, d_model: int) -> None:
        super().__init__()
        whole("d_model", d_model)
        self.receptance, self.key, self.value = (
            nn.Linear(d_model, d_model, bias=False) for _ in range(3)
        )
        self.output = ResidualLinear(d_model, d_model, bias=False)
        ramp = torch.arange(d_model) / max(d_model - 1, 1)
        share = torch.arange(d_model) / d_model
        self.mu_r, self.mu_k, self.mu_v = map(nn.Parameter, (share.sqrt(), share, share.clone()))
        # w = exp(log_w), from slow to fast over the channels; u differs between neighbours.
        self.log_w = nn.Parameter(-5 + 8 * ramp**0.7)
        self.u = nn.Parameter(math.log(0.3) + 0.5 * ((torch.arange(d_model) + 1) % 3 - 1))

    def rkv(self, x: Tensor, before: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """r in the dtype of x; k and v in the precision that states are kept in. [..., D]."""
        dtype = accumulator_dtype(x.dtype)
        r = self.receptance(_mix(self.mu_r, x, before))
        k = self.key(_mix(self.mu_k, x, before))
        v = self.value(_mix(self.mu_v, x, before))
        return r, k.to(dtype), v.to(dtype)

    def out(self, r: Tensor, k: Tensor, v: Tensor, past: ExponentialSums) -> Tensor:
        """The past plus the newest token with its bonus, gated and projected. [..., D]."""
        seen = past.plus(self.u.to(k.dtype) + k, v)
        return self.output(torch.sigmoid(r) * (seen.num / seen.den).to(r.dtype))

    def attend(self, state: TimeMixingState, x: Tensor) -> tuple[TimeMixingState, Tensor]:
        """x [B, T, D] and the state before it, to the state after it and y [B, T, D]."""
        if x.shape[1] == 0:
            return state, self.output(x)
        r, k, v = self.rkv(x, _shifted(state.x, x))
        sums = exponential_sums(state.sums, k, v, self.log_w.to(k.dtype).exp())
        y = self.out(r, k, v, sums.before(state.sums))
        return TimeMixingState(x[:, -1], sums.last()), y

    def start(self) -> TimeMixingState:
        """The first state: a zero input and empty sums."""
        weight = self.output.weight
        D = weight.shape[0]
        wide = weight.to(accumulator_dtype(weight.dtype))
        return TimeMixingState(weight.new_zeros(1, D), no_sums(wide, D))

    def forward(self, x: Tensor) -> Tensor:
        return self.attend(self.start(), x)[1]

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. The state: x_{t-1}, two sums, and their exponent."""

        def step(state: TimeMixingState, x: Tensor) -> tuple[TimeMixingState, Tensor]:
            r, k, v = self.rkv(x, state.x)
            y = self.out(r, k, v, state.sums)
            sums = exponential_step(state.sums, k, v, self.log_w.to(k.dtype).exp())
            return TimeMixingState(x, sums), y

        return StateMachine(self.start(), step, self.attend)

    def sequence_flops(self, T: int) -> int:
        return (TREE_FLOPS + 4) * T * self.u.numel()

    def tick_flops(self, t: int) -> int:
        """FLOPs of two sums that decay, and of the newest token."""
        return 8 * self.u.numel()

    def state_numbers(self, t: int) -> int:
        return 4 * self.u.numel()


class RWKVChannelMixing(nn.Module):
    """RWKV-4's MLP: y = σ(r) ∘ W_v max(k, 0)^2, with a token shift. [B, T, D] to [B, T, D].

    hidden: the width of k; 4 D by default.
    """

    def __init__(self, d_model: int, *, hidden: int | None = None) -> None:
        super().__init__()
        whole("d_model", d_model)
        hidden = 4 * d_model if hidden is None else hidden
        whole("hidden", hidden)
        self.receptance = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, hidden, bias=False)
        self.value = ResidualLinear(hidden, d_model, bias=False)
        share = torch.arange(d_model) / d_model
        self.mu_r, self.mu_k = nn.Parameter(share), nn.Parameter(share.clone())

    def mix(self, x: Tensor, before: Tensor) -> Tensor:
        """x and x_{t-1}, [..., D], to y [..., D]."""
        r = self.receptance(_mix(self.mu_r, x, before))
        k = self.key(_mix(self.mu_k, x, before))
        return torch.sigmoid(r) * self.value(F.relu(k).square())

    def forward(self, x: Tensor) -> Tensor:
        return self.mix(x, F.pad(x, (0, 0, 1, -1)) if x.shape[1] else x)

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. The state is x_{t-1}."""

        def many(last: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            if x.shape[1] == 0:
                return last, self.mix(x, x)
            return x[:, -1], self.mix(x, _shifted(last, x))

        start = self.value.weight.new_zeros(1, self.mu_k.numel())
        return StateMachine(start, lambda last, x: (x, self.mix(x, last)), many)

    def sequence_flops(self, T: int) -> int:
        return 0

    def tick_flops(self, t: int) -> int:
        return 0

    def state_numbers(self, t: int) -> int:
        return self.mu_k.numel()
