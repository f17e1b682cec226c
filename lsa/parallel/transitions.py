"""Transitions: the linear map from the state before a part of a sequence to the state after it.

    S_after = decay ∘ S_before + added

Two parts in a row give (decay_2 decay_1, decay_2 ∘ added_1 + added_2). So transitions are closed
under composition, which is associative, and parts can be summed separately.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..attention.call import without_autocast


class Transition(NamedTuple):
    """added [B, ...]: the state after the part, from zeros. decay: broadcasts to it; None: ones."""

    added: Tensor
    decay: Tensor | None = None

    def __call__(self, state: Tensor) -> Tensor:
        """The state after the part, given the state before it."""
        return self.added + (state if self.decay is None else self.decay * state)


def chain(first: Transition, second: Transition) -> Transition:
    """The transition of two parts in a row."""
    if first.decay is None or second.decay is None:
        decay = second.decay if first.decay is None else first.decay
    else:
        decay = second.decay * first.decay
    return Transition(second(first.added), decay)


def transition_of(k: Tensor, v: Tensor, log_decay: Tensor | None = None) -> Transition:
    """The transition of S_t = exp(g_t) ∘ S_{t-1} + k_t v_t^T over T tokens.

    k: [B, T, H, K], mapped. v: [B, T, H, V]. log_decay: g, [B or 1, T or 1, H, K or 1]; one token
    stands for T equal ones. Returns added [B, H, K, V] and decay [B or 1, H, K or 1, 1].
    """
    decay = None
    if log_decay is not None:
        g = log_decay.expand(-1, k.shape[1], -1, -1)
        decay = g.sum(1).exp().unsqueeze(-1)
        # Summed from the end: from the start, sums after a reset would lose their digits.
        later = F.pad(g, (0, 0, 0, 0, 0, 1))[:, 1:]
        k = k * later.flip(1).cumsum(1).flip(1).exp()
    with without_autocast(k):
        return Transition(torch.einsum("bthk,bthv->bhkv", k, v), decay)
