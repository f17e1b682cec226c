"""Symmetric power attention: weights (q·k)^p, a single degree of the Taylor map.

(x·y)^p = sum_{|a| = p} p!/a! x^a y^a by the multinomial theorem, so phi_p(x), all monomials of
degree exactly p with coefficients sqrt(p!/a!), multiplies to the weight: phi_p(x)·phi_p(y) =
(x·y)^p. Buckman, Gelada and Zhang (2024). With even p no weight is negative.
With a decay α_t a head, the weight of token j for token i is
(q_i·k_j)^p exp(sum_{j<l<=i} log α_l).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from itertools import combinations_with_replacement
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..attention.call import EPS, accumulator_dtype
from ..attention.counts import mode_flops
from ..attention.reference import decay_between
from ..checks import boolean, whole
from ..compat import is_in_function_transform, is_under_dispatch_mode, mark_constant
from ..machines import StateMachine
from .fixed import checked_decays
from .gated import HeadDecay, decayed_attention, decayed_step
from .multihead import MultiHead


def cached_constant(function: Callable[..., Any]) -> Callable[..., Any]:
    """`lru_cache`, whose results torch.compile takes as constants: it cannot trace behind it.

    In a function transform, or a mode such as FakeTensorMode, tensors are made anew: the mode's own
    have no numbers outside it, and it may refuse others.
    """
    cached = lru_cache(function)

    @mark_constant
    @wraps(function)
    def constant(*args: Any) -> Any:
        inside = is_in_function_transform() or is_under_dispatch_mode()
        return function(*args) if inside else cached(*args)

    return constant


def as_tensors(
    indices: Sequence[Sequence[int]], coefficients: Sequence[float], device: torch.device
) -> tuple[Tensor, Tensor]:
    """Indices [F, n] and coefficients [F] of monomials as tensors, coefficients in float64.

    On Apple's GPUs, which have no float64, features are float32 at most, and coefficients are
    rounded when they are made instead of when they are multiplied. The result is the same.
    """
    kind = torch.float32 if device.type == "mps" else torch.float64
    with torch.inference_mode(False):
        return (
            torch.tensor(indices, dtype=torch.long, device=device),
            torch.tensor(coefficients, dtype=kind, device=device),
        )


@lru_cache
def monomials(width: int, degree: int) -> tuple[list[tuple[int, ...]], list[float]]:
    """The indices of each monomial of degree p, and its sqrt(p!/a!)."""
    indices = list(combinations_with_replacement(range(width), degree))
    coefficients = []
    for monomial in indices:
        exponents = Counter(monomial).values()
        ways = math.factorial(degree) // math.prod(map(math.factorial, exponents))
        coefficients.append(ways**0.5)
    return indices, coefficients


@cached_constant
def power_monomials(width: int, degree: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """`monomials` as tensors, [F, p] and [F], cached."""
    return as_tensors(*monomials(width, degree), device)


def power_features(x: Tensor, degree: int) -> Tensor:
    """phi_p with phi_p(x)·phi_p(y) = (x·y)^p. [..., K] to [..., (K + p - 1 choose p)]."""
    indices, coefficients = power_monomials(x.shape[-1], degree, x.device)
    return x[..., indices].prod(-1) * coefficients.to(x.dtype)


class PowerAttention(MultiHead):
    """Causal attention with weights (q·k / sqrt(K))^p, normalised. [B, T, D] to [B, T, D].

    degree: p, even.
    gated: multiply the weights by a decay a head, from the input; see `HeadDecay`.
    log_decay: one number a head, at most 0: the log of its decay at each token; or None.

    `forward` forms all T x T products (attention mode); the machine keeps sums of features.
    Features have either sign and are as large as (|q| |k|)^p. If all (q·k)^p so far are much
    smaller, a tick in float32 has few correct digits, fewer for higher p.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        degree: int = 2,
        gated: bool = False,
        log_decay: Sequence[float] | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__(d_model, n_heads, bias=bias)
        self.fix("log_decay", checked_decays(log_decay, n_heads))
        whole("degree", degree, 2)
        if degree % 2:
            raise ValueError(f"degree: expected an even number from 2, got {degree}")
        boolean("gated", gated)
        self.degree, self.gated = degree, gated
        self.n_features = math.comb(self.head_width + degree - 1, degree)  # F of a head
        if gated:
            self.gate = HeadDecay(d_model, n_heads)

    def scaled_qkv(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """q / sqrt(K), k, v [..., H, K] and log α [..., H], in the precision of states."""
        dtype = accumulator_dtype(x.dtype)
        q, k, v = (heads.to(dtype) for heads in self.qkv(x))
        log_decay = self.gate(x, dtype) if self.gated else torch.zeros_like(q[..., 0])
        if self.log_decay is not None:
            log_decay = log_decay + self.log_decay
        return q * self.head_width**-0.5, k, v, log_decay

    def features(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """phi_p(q), phi_p(k) [..., H, F], [v 1] [..., H, V + 1] and log α [..., H, 1]."""
        q, k, v, log_decay = self.scaled_qkv(x)
        phi_q, phi_k = power_features(q, self.degree), power_features(k, self.degree)
        return phi_q, phi_k, F.pad(v, (0, 1), value=1.0), log_decay.unsqueeze(-1)

    def read(self, o: Tensor, like: Tensor) -> Tensor:
        """Numerator and normaliser, [..., H, V + 1], to [..., D]."""
        return self.out((o[..., :-1] / (o[..., -1:] + EPS)).to(like.dtype))

    def forward(self, x: Tensor) -> Tensor:
        A, v = self.weighed(x)
        o = A @ F.pad(v, (0, 1), value=1.0)
        return self.read(o.transpose(1, 2), x)

    def weighed(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The weights of x [B, T, D] before normalising, [B, H, T, T], and v."""
        q, k, v, log_decay = (heads.transpose(1, 2) for heads in self.scaled_qkv(x))
        A = (q @ k.transpose(-1, -2)) ** self.degree
        if self.gated:
            return A * decay_between(log_decay.unsqueeze(-1)).squeeze(-1), v
        return self.faded(A), v

    def weights(self, x: Tensor) -> Tensor:
        """Attention weights of each token of x [B, T, D]: [B, H, T, T].

        Rows sum to one, less what EPS takes where all scores are small.
        """
        A, _ = self.weighed(x)
        return A / (A.sum(-1, keepdim=True) + EPS)

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. The state holds F (V + 1) numbers a head, always."""

        def step(S: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            o, S = decayed_step(*self.features(x), S)
            return S, self.read(o, x)

        def many(S: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            o, S = decayed_attention(*self.features(x), S)
            return S, self.read(o, x)

        return StateMachine(self.zero_state(self.n_features, self.head_width + 1), step, many)

    def sequence_flops(self, T: int) -> int:
        return self.n_heads * mode_flops("attention", T, self.head_width, self.head_width + 1)

    def tick_flops(self, t: int) -> int:
        return 4 * self.state_numbers(t)

    def state_numbers(self, t: int) -> int:
        return self.n_heads * self.n_features * (self.head_width + 1)
