"""S4D: the state space whose A is diagonal, a simpler S4. Gu, Gupta, Goel and Ré (2022).

With A = Λ the state is N/2 complex numbers that rotate and decay independently. The kernel is a sum
of powers, K_i = 2 Re sum_n C_n B̄_n Ā_n^i (a Vandermonde product). Letters and shapes are those of
`state_space`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..checks import one_of
from .state_space import StateSpace, powers, twice_real

DISCRETISATIONS = ("zoh", "bilinear")


class S4D(StateSpace):
    """The diagonal state space, Gu et al. (2022). [B, T, D] to [B, T, D].

    discretisation: "zoh", Ā = exp(ΔΛ), B̄ = (Ā - 1) / Λ; or "bilinear", Ā = (1 + ΔΛ/2) /
        (1 - ΔΛ/2), B̄ = Δ / (1 - ΔΛ/2). B = 1: only its product with C matters.
    Λ starts at -1/2 + i π n (S4D-Lin). Other options are those of `StateSpace`.
    """

    def __init__(
        self,
        d_model: int,
        *,
        d_state: int = 64,
        discretisation: str = "zoh",
        mode: str = "fft",
        dt_min: float = 1e-3,
        dt_max: float = 1e-1,
    ) -> None:
        super().__init__(d_model, d_state=d_state, mode=mode, dt_min=dt_min, dt_max=dt_max)
        one_of("discretisation", discretisation, DISCRETISATIONS)
        self.discretisation = discretisation
        n = torch.arange(d_state // 2, dtype=torch.float64)
        self.eigenvalues(torch.complex(torch.full_like(n, -0.5), math.pi * n))

    def discrete(self) -> tuple[Tensor, Tensor]:
        """Ā and B̄, each [D, N/2]."""
        Lambda, dt, _ = self.lambda_dt_c()
        if self.discretisation == "zoh":
            return (dt * Lambda).exp(), torch.expm1(dt * Lambda) / Lambda
        half = 1 - dt * Lambda / 2
        return (2 - half) / half, dt / half

    def tick(self, s: Tensor, u: Tensor) -> Tensor:
        A, B = self.discrete()
        return A * s + B * u.unsqueeze(-1)

    def kernel(self, L: int) -> Tensor:
        return twice_real(self.reach(L) * self.complex("C").unsqueeze(1))

    def reach(self, L: int) -> Tensor:
        A, B = self.discrete()
        return powers(B, A, L)

    def observe(self, L: int) -> Tensor:
        A, _ = self.discrete()
        return powers(self.complex("C") * A, A, L)

    def carry(self, s: Tensor, L: int) -> Tensor:
        return self.discrete()[0] ** L * s

    def kernel_flops(self, L: int) -> int:
        return 6 * self.d_state * L

    def tick_flops(self, t: int) -> int:
        return 8 * self.d_state * self.d_model
