"""The selective scan in plain torch: one tick, and all ticks chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterable
from math import factorial

import torch
from torch import Tensor

from .reference import scan

NEAR = 0.5  # below this |ΔA| a series is used; above, the difference loses at most three bits
TERMS = range(14)  # the remainder at NEAR is below float64's resolution


def state_dtype(*x: Tensor) -> torch.dtype:
    """The dtype of states: float32, or float64 if an input is float64."""
    return torch.float64 if any(y.dtype == torch.float64 for y in x) else torch.float32


def _series(coefficients: Iterable[float], x: Tensor) -> Tensor:
    """The series c_0 + c_1 x + c_2 x^2 + ..."""
    *rest, last = coefficients
    total = torch.full_like(x, last)
    for c in reversed(rest):
        total = c + x * total
    return total


def held(delta: Tensor, A: Tensor) -> Tensor:
    """w = (exp(ΔA) - 1) / A, the input factor of zero-order hold, with an accurate slope.

    For dw/dA, near Δ^2 / 2, autograd would subtract two numbers near Δ / A. Near 0 the series
    Δ Σ z^k / (k + 1)!, z = ΔA, has no such difference.
    """
    z = delta * A
    near = z.abs() < NEAR
    sums = delta * _series((1 / factorial(k + 1) for k in TERMS), torch.where(near, z, 0))
    return torch.where(near, sums, torch.expm1(torch.where(near, 1, z)) / torch.where(near, 1, A))


def held_slope(delta: Tensor, A: Tensor) -> Tensor:
    """dw/dA = (Δ exp(ΔA) - w) / A; near 0 the series Δ^2 Σ (k + 1) z^k / (k + 2)!."""
    z = delta * A
    near = z.abs() < NEAR
    sums = _series(((k + 1) / factorial(k + 2) for k in TERMS), torch.where(near, z, 0))
    far_z, far_A = torch.where(near, 1, z), torch.where(near, 1, A)
    return torch.where(
        near, delta * delta * sums, (delta * far_z.exp() - torch.expm1(far_z) / far_A) / far_A
    )


def _discretise(
    u: Tensor, delta: Tensor, A: Tensor, B: Tensor, input_rule: str
) -> tuple[Tensor, Tensor]:
    """Ā and B̄ u, each [..., D, N]."""
    steps = delta.unsqueeze(-1)
    weight = steps if input_rule == "euler" else held(steps, A)
    return (steps * A).exp(), weight * u.unsqueeze(-1) * B.unsqueeze(-2)


def selective_step(
    h: Tensor, u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, input_rule: str = "euler"
) -> tuple[Tensor, Tensor]:
    """One tick: u, delta [B, D], B, C [B, N] and h [B, D, N] to the next h and y [B, D]."""
    decay, enters = _discretise(u, delta, A, B, input_rule)
    h = decay * h + enters
    return h, (h @ C.unsqueeze(-1)).squeeze(-1)


def in_chunks(
    u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, h: Tensor,
    *, input_rule: str, mode: str, chunk_size: int,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """y [B, T, D] and h_T [B, D, N] after h [B, D, N]; `scan` runs inside a chunk by `mode`."""
    y = []
    pieces = (x.split(chunk_size, dim=1) for x in (u, delta, B, C))
    for u_n, delta_n, B_n, C_n in zip(*pieces, strict=True):
        if u_n.shape[1] == 0:
            break
        states = scan(*_discretise(u_n, delta_n, A, B_n, input_rule), initial_state=h, mode=mode)
        y.append((states @ C_n.unsqueeze(-1)).squeeze(-1))  # [B, C, D]
        h = states[:, -1]
    return (torch.cat(y, dim=1), h) if y else (torch.zeros_like(u), h.clone())


def gradient(
    u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, h: Tensor,
    dy: Tensor, dh: Tensor, *, input_rule: str, mode: str,
) -> tuple[Tensor, ...]:  # fmt: skip
    """du, dΔ, dA, dB, dC, dh_0 from dy [B, T, D] and dh [B, D, N], in differentiable operations.

    kernels/selective_backward.py has the formulas. All states [B, T, D, N] exist at once, so that
    torch can differentiate once more, for second derivatives. T >= 1.
    """
    a, enters = _discretise(u, delta, A, B, input_rule)
    states = scan(a, enters, initial_state=h, mode=mode)
    before = torch.cat((h.unsqueeze(1), states[:, :-1]), dim=1)
    # g_t = C_t dy_t + a_{t+1} g_{t+1}; dh enters unchanged after the last token.
    later = torch.cat((torch.ones_like(a[:, :1]), a.flip(1)[:, :-1]), dim=1)
    reads = dy.unsqueeze(-1) * C.unsqueeze(-2)
    g = scan(later, reads.flip(1), initial_state=dh, mode=mode).flip(1)
    steps, u_1, B_1 = delta.unsqueeze(-1), u.unsqueeze(-1), B.unsqueeze(-2)
    q, s = a * before * g, u_1 * B_1 * g
    if input_rule == "euler":
        w, by_delta, by_A = steps, s, torch.zeros_like(s)
    else:
        w, by_delta, by_A = held(steps, A), s * a, s * held_slope(steps, A)
    return (
        (g * w * B_1).sum(-1),
        (A * q + by_delta).sum(-1),
        (steps * q + by_A).sum((0, 1)),
        (g * w * u_1).sum(-2),
        (dy.unsqueeze(-1) * states).sum(-2),
        a[:, 0] * g[:, 0],
    )
