"""The selective scan of Mamba (S6): a diagonal state space whose step, B and C follow the input.

Gu and Dao (2023), algorithm 2. For each of D channels a state of N numbers,

    h_t = exp(Δ_t A) ∘ h_{t-1} + B̄_t u_t        y_t = C_t · h_t

with A fixed and negative, and Δ_t, B_t, C_t from the input. A is discretised by zero-order hold.
B̄_t = Δ_t B_t (Euler), as the published code has it, or (exp(Δ_t A) - 1) / A B_t (zero-order hold),
as the paper's equation 4 does.

Letters: u [B, T, D] the input, Δ [B, T, D] > 0 the step, A [D, N] < 0, B and C [B, T, N] shared by
the channels, h [B, D, N] the state.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .reference import scan

INPUT_RULES = ("euler", "zoh")


def _discretise(
    u: Tensor, delta: Tensor, A: Tensor, B: Tensor, input_rule: str
) -> tuple[Tensor, Tensor]:
    """Ā and B̄ u, each [..., D, N]."""
    exponent = delta.unsqueeze(-1) * A
    weight = delta.unsqueeze(-1) if input_rule == "euler" else torch.expm1(exponent) / A
    return exponent.exp(), weight * u.unsqueeze(-1) * B.unsqueeze(-2)


def selective_step(
    h: Tensor, u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, input_rule: str = "euler"
) -> tuple[Tensor, Tensor]:
    """One tick: u, delta [B, D], B, C [B, N] and h [B, D, N] to the next h and y [B, D]."""
    decay, enters = _discretise(u, delta, A, B, input_rule)
    h = decay * h + enters
    return h, (h @ C.unsqueeze(-1)).squeeze(-1)


def selective_scan(
    u: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    *,
    initial_state: Tensor | None = None,
    input_rule: str = "euler",
    mode: str = "steps",
    chunk_size: int = 64,
) -> tuple[Tensor, Tensor]:
    """All ticks: u, delta [B, T, D], A [D, N], B, C [B, T, N] to y [B, T, D] and h_T [B, D, N].

    initial_state: h_0 [B, D, N] (a batch of one is enough); zeros by default.
    input_rule: "euler" or "zoh", how B is discretised.
    mode: "steps" or "tree", how `scan` runs inside a chunk. A CPU, which the state keeps busy,
        is faster in order; a GPU, which waits between steps, is faster as a tree.
    chunk_size: tokens whose states [B, C, D, N] exist at the same time.

    Raises ValueError for an unknown input_rule or mode, or a chunk_size below 1.
    """
    if input_rule not in INPUT_RULES:
        raise ValueError(
            f"input_rule: expected one of {', '.join(INPUT_RULES)}, got {input_rule!r}"
        )
    if chunk_size < 1:
        raise ValueError(f"chunk_size: expected at least 1, got {chunk_size}")
    batch, T, D = u.shape
    h = u.new_zeros(1, D, A.shape[-1]) if initial_state is None else initial_state
    h = h.expand(batch, -1, -1)
    y = []
    pieces = (x.split(chunk_size, dim=1) for x in (u, delta, B, C))
    for u_n, delta_n, B_n, C_n in zip(*pieces, strict=True):
        if u_n.shape[1] == 0:
            break
        states = scan(*_discretise(u_n, delta_n, A, B_n, input_rule), initial_state=h, mode=mode)
        y.append((states @ C_n.unsqueeze(-1)).squeeze(-1))  # [B, C, D]
        h = states[:, -1]
    return (torch.cat(y, dim=1) if y else torch.zeros_like(u)), h
