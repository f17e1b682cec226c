"""Attention with the Taylor polynomial of the exponential: a state again, of size O(K^n V)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations_with_replacement

import torch
from torch import Tensor

from ..attention.api import LinearState, linear_attention
from ..attention.call import accumulator_dtype, without_autocast
from ..attention.reference import recurrent_step
from ..checks import finite, whole
from ..machines import StateMachine
from .fixed import checked_decays
from .multihead import MultiHead
from .power import as_tensors, cached_constant


def taylor_exp(s: Tensor, degree: int) -> Tensor:
    """1 + s + s^2/2! + ... + s^n/n!: positive for every s when n is even, exp(s) as n grows."""
    total = torch.ones_like(s)
    for m in range(degree, 0, -1):
        total = 1 + s / m * total
    return total


@lru_cache
def monomials(width: int, degree: int) -> tuple[tuple[tuple[int, ...], ...], tuple[float, ...]]:
    """Every monomial of degree at most n in `width` variables, and its coefficient.

    A monomial is n indices into (1, x_1, ..., x_K); index 0 pads those of lower degree. Its
    coefficient is 1/sqrt(a!), a the exponents of the variables. By the multinomial theorem
    sum_a x^a y^a / a! is then the Taylor sum of x·y. Only one order of the indices is kept,
    which leaves (K + n choose n) of the (K + 1)^n products.
    """
    indices = tuple(combinations_with_replacement(range(width + 1), degree))
    coefficients = []
    for monomial in indices:
        exponents = Counter(i for i in monomial if i)
        coefficients.append(math.prod(map(math.factorial, exponents.values())) ** -0.5)
    return indices, tuple(coefficients)


@cached_constant
def monomial_tensors(width: int, degree: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """`monomials` as tensors, [F, n] and [F], cached."""
    return as_tensors(*monomials(width, degree), device)


def taylor_features(x: Tensor, degree: int) -> Tensor:
    """phi with phi(x)·phi(y) = taylor_exp(x·y, n). [..., K] to [..., (K + n choose n)]."""
    indices, coefficients = monomial_tensors(x.shape[-1], degree, x.device)
    x = torch.cat((torch.ones_like(x[..., :1]), x), dim=-1)
    return x[..., indices].prod(-1) * coefficients.to(x.dtype)


class TaylorAttention(MultiHead):
    """Causal attention with weights taylor_exp(scale q·k, n), normalised. [B, T, D] to [B, T, D].

    degree: n, the number of terms after the 1. With an even n every weight is positive; with an odd
        one the normaliser can vanish.
    scale: of the scores, above 0; 1 / sqrt(K) by default.
    log_decay: one number a head, at most 0: the log of its decay at each token; or None.

    `forward` forms all T x T products (attention mode); the machine keeps sums of features.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        degree: int = 2,
        scale: float | None = None,
        log_decay: Sequence[float] | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__(d_model, n_heads, bias=bias)
        whole("degree", degree, 0)
        if scale is not None:
            scale = finite("scale", scale, "a finite number above 0", low=math.ulp(0))
        self.fix("log_decay", checked_decays(log_decay, n_heads))
        self.degree = degree
        self.scale = self.head_width**-0.5 if scale is None else scale
        self.n_features = math.comb(self.head_width + degree, degree)  # F of a head

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads.transpose(1, 2) for heads in self.scaled_qkv(x))
        A = self.faded(taylor_exp(q @ k.transpose(-1, -2), self.degree))  # [B, H, T, T]
        o = (A @ v) / A.sum(-1, keepdim=True)
        return self.out(o.transpose(1, 2).to(x.dtype))

    def weights(self, x: Tensor) -> Tensor:
        """Attention weights of each token of x [B, T, D]: [B, H, T, T], rows that sum to one."""
        q, k, _ = (heads.transpose(1, 2) for heads in self.scaled_qkv(x))
        A = self.faded(taylor_exp(q @ k.transpose(-1, -2), self.degree))
        return A / A.sum(-1, keepdim=True)

    def scaled_qkv(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """scale q, k, v, each [..., H, D / H], in the precision that states are kept in."""
        q, k, v = self.qkv(x)
        dtype = accumulator_dtype(x.dtype)
        return (q * self.scale).to(dtype), k.to(dtype), v.to(dtype)

    def features(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x [..., D] to phi(q), phi(k) [..., H, F] and v [..., H, V]."""
        q, k, v = self.scaled_qkv(x)
        return taylor_features(q, self.degree), taylor_features(k, self.degree), v

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. The state holds F (V + 1) numbers a head, always."""

        def step(state: LinearState, x: Tensor) -> tuple[LinearState, Tensor]:
            decay = None if self.log_decay is None else self.log_decay.exp()
            features = self.features(x)
            with without_autocast(x):  # as linear_attention does
                o, S, z = recurrent_step(*features, *state, 0.0, decay)
            return LinearState(S, z), self.out(o.to(x.dtype))

        def many(state: LinearState, x: Tensor) -> tuple[LinearState, Tensor]:
            state = LinearState(*(s.expand(x.shape[0], *s.shape[1:]) for s in state))
            o, state = linear_attention(
                *self.features(x),
                scale=1.0,
                eps=0.0,
                initial_state=state,
                return_state=True,
                log_decay=self.log_decay,
            )
            return state, self.out(o.to(x.dtype))

        S = self.zero_state(self.n_features, self.head_width)
        return StateMachine(LinearState(S, S[..., 0]), step, many)

    def sequence_flops(self, T: int) -> int:
        return self.n_heads * T * (T + 1) * 2 * self.head_width

    def tick_flops(self, t: int) -> int:
        return 4 * self.n_features * self.n_heads * self.head_width

    def state_numbers(self, t: int) -> int:
        return self.n_heads * self.n_features * (self.head_width + 1)
