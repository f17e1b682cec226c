"""Decayed sums of exponentials, stored with their largest exponent: AFT's and RWKV's state.

For keys k_t, values v_t and a decay w >= 0 (a rate a token), all of them vectors of D channels,

    num_t = sum_{j<=t} exp(k_j - (t - j) w) v_j        den_t = the same without v_j.

exp(k) overflows float32 from k = 88.8. So both sums are stored divided by exp(top_t), where
top_t = max_{j<=t} (k_j - (t - j) w) is the largest exponent in them, as in softmax. top cancels in
the quotient of the two, and every exponential is at most 1.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .reference import scan

NEVER = -1e30
"""The logarithm of zero: exp(NEVER - k) is 0 for every key, and NEVER - NEVER is 0, not NaN."""

TREE_FLOPS = 12
"""FLOPs a token and channel of `exponential_sums` as a tree: 3 multiply-adds for each of two."""


class ExponentialSums(NamedTuple):
    """The sums num exp(top) and den exp(top), stored as num, den, top, each [..., D]."""

    num: Tensor
    den: Tensor
    top: Tensor

    def plus(self, k: Tensor, v: Tensor) -> ExponentialSums:
        """The sums with one more term, exp(k) v. No gradient goes through the maximum."""
        return self.merge(ExponentialSums(v, torch.ones_like(k), k))

    def merge(self, other: ExponentialSums) -> ExponentialSums:
        """The sums over both sets of terms."""
        top = torch.maximum(self.top, other.top).detach()
        here, there = (self.top - top).exp(), (other.top - top).exp()
        return ExponentialSums(
            here * self.num + there * other.num, here * self.den + there * other.den, top
        )

    def last(self) -> ExponentialSums:
        """The sums after the last of T ticks: [B, T, D] to [B, D]."""
        return ExponentialSums(*(x[:, -1] for x in self))

    def before(self, first: ExponentialSums) -> ExponentialSums:
        """The sums before each of T ticks, `first` [B, D] before the first. [B, T, D] likewise."""
        shifted = (
            torch.cat((start.expand_as(x[:, 0]).unsqueeze(1), x[:, :-1]), dim=1)
            for start, x in zip(first, self, strict=True)
        )
        return ExponentialSums(*shifted)


def no_sums(like: Tensor, width: int) -> ExponentialSums:
    """The empty sums, [1, width]: num = den = 0."""
    zero = like.new_zeros(1, width)
    return ExponentialSums(zero, zero, zero + NEVER)


def exponential_step(
    sums: ExponentialSums, k: Tensor, v: Tensor, w: Tensor | float = 0.0
) -> ExponentialSums:
    """One tick: the sums decay by exp(-w), then exp(k) v enters. k, v [B, D]."""
    return ExponentialSums(sums.num, sums.den, sums.top - w).plus(k, v)


def exponential_sums(
    sums: ExponentialSums, k: Tensor, v: Tensor, w: Tensor | float = 0.0
) -> ExponentialSums:
    """T ticks at once: k, v [B, T, D] to the sums after each of them, [B, T, D]. T >= 1."""
    with torch.no_grad():
        # top_t = max(top_{t-1} - w, k_t), so top_t + t w is a running maximum. t w ends at most at
        # 16 / eps, where k is rounded by up to 8. Any top is right that keeps exp in range.
        T = k.shape[1]
        most = 16 / (torch.finfo(k.dtype).eps * T)
        fall = w.clamp(max=most) if isinstance(w, Tensor) else min(w, most)
        ramp = torch.arange(1, T + 1, device=k.device, dtype=k.dtype).unsqueeze(-1) * fall
        top = torch.maximum((k + ramp).cummax(1).values, sums.top.unsqueeze(1)) - ramp
        first = sums.top.expand_as(top[:, 0]).unsqueeze(1)
        # A step with w itself, where it is larger than the bound.
        top = torch.maximum(torch.cat((first, top[:, :-1]), dim=1) - w, k)
        before = torch.cat((first, top[:, :-1]), dim=1)
    a, weight = (before - w - top).exp(), (k - top).exp()
    num = scan(a, weight * v, initial_state=sums.num)
    den = scan(a, weight, initial_state=sums.den)
    return ExponentialSums(num, den, top)
