"""S4: a state space whose A, from HiPPO-LegS, is diagonal plus rank one.

Gu, Goel and Ré (2022). A = Λ - P P*, discretised bilinearly,

    Ā = (I - Δ/2 A)^-1 (I + Δ/2 A)        B̄ = (I - Δ/2 A)^-1 Δ B.

The minus (Goel et al. 2022) keeps the real part of A below zero for any parameters, so that
|Ā s| <= |s|. Letters and shapes are those of `state_space`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from .convolution import fft_flops
from .state_space import StateSpace, powers, starting_dtype, twice_real


def hippo_legs(N: int) -> tuple[Tensor, Tensor, Tensor]:
    """A [N, N], B [N] and P [N], float64: A + P P^T is normal. Gu et al. (2022), eq. 2, app. C.1.

    A_nk = -sqrt(2n+1) sqrt(2k+1) below the diagonal, -(n+1) on it; B_n = sqrt(2n+1). With this A
    the state holds the coefficients of the input's past in Legendre polynomials.
    """
    n = torch.arange(N, dtype=torch.float64)
    B, P = (2 * n + 1).sqrt(), (n + 0.5).sqrt()
    return -torch.outer(B, B).tril(-1) - torch.diag(n + 1), B, P


def dplr_legs(N: int) -> tuple[Tensor, Tensor, Tensor]:
    """HiPPO-LegS in the basis where A = diag(λ) - P P*: λ, P, B, each [N/2], complex128.

    One of each conjugate pair is kept, that with a positive imaginary part.
    """
    A, B, P = hippo_legs(N)
    # A + P P^T = -1/2 I + a skew matrix K; -i K is Hermitian, so its eigenvalues are exact reals.
    skew = A + torch.outer(P, P) + 0.5 * torch.eye(N, dtype=A.dtype)
    imaginary, basis = torch.linalg.eigh(-1j * skew)
    half = basis[:, N // 2 :].mH  # eigh sorts, so the positive ones come last
    return torch.complex(torch.full((N // 2,), -0.5, dtype=A.dtype), imaginary[N // 2 :]), *(
        half @ vector.to(half.dtype) for vector in (P, B)
    )


class S4(StateSpace):
    """The structured state space, Gu, Goel and Ré (2022). [B, T, D] to [B, T, D].

    A tick costs O(N) a channel, because a diagonal plus a rank-one matrix is inverted in O(N)
    (Woodbury). The kernel of L terms costs O((L + N^2 log L) N), without L ticks: see `kernel`.
    Options are those of `StateSpace`.
    """

    def __init__(
        self,
        d_model: int,
        *,
        d_state: int = 64,
        mode: str = "fft",
        dt_min: float = 1e-3,
        dt_max: float = 1e-1,
    ) -> None:
        super().__init__(d_model, d_state=d_state, mode=mode, dt_min=dt_min, dt_max=dt_max)
        Lambda, P, B = dplr_legs(d_state)
        self.eigenvalues(Lambda)
        self.P, self.B = (
            nn.Parameter(torch.view_as_real(start.to(starting_dtype())).repeat(d_model, 1, 1))
            for start in (P, B)
        )

    def tick(self, s: Tensor, u: Tensor) -> Tensor:
        """(I - Δ/2 A)^-1 ((I + Δ/2 A) s + Δ B u), with A = Λ - P P*."""
        Lambda, dt, _ = self.lambda_dt_c()
        P, B = self.complex("P"), self.complex("B")
        As = Lambda * s - P * twice_real(P.conj() * s).unsqueeze(-1)
        w = s + dt / 2 * As + dt * B * u.unsqueeze(-1)
        # (I - Δ/2 A)^-1 by Woodbury: the inverse of the diagonal, and one correction along P.
        inverse = 1 / (1 - dt / 2 * Lambda)
        w, along = inverse * w, inverse * P
        norm = 1 + dt / 2 * twice_real(P.conj() * along).unsqueeze(-1)
        return w - along * (dt / 2 * twice_real(P.conj() * w).unsqueeze(-1) / norm)

    def dense(self) -> tuple[Tensor, Tensor, Tensor]:
        """Ā [D, N, N], B̄ and C [D, N], written out over both halves of the conjugate pairs."""
        Lambda, dt, C = self.lambda_dt_c()
        Lambda, P, B, C = (
            torch.cat((x, x.conj()), dim=-1)
            for x in (Lambda, self.complex("P"), self.complex("B"), C)
        )
        A = torch.diag_embed(Lambda) - P.unsqueeze(-1) * P.conj().unsqueeze(-2)
        half = dt.unsqueeze(-1) / 2 * A
        one = torch.eye(self.d_state, dtype=A.dtype, device=A.device)
        both = torch.cat((one + half, (dt * B).unsqueeze(-1)), dim=-1)
        A, B = torch.linalg.solve(one - half, both).split((self.d_state, 1), dim=-1)
        return A, B.squeeze(-1), C

    def kernel(self, L: int) -> Tensor:
        """K from its generating function at the L-th roots of unity. Gu et al. (2022), app. C.3.

        At z^L = 1, sum_{i<L} K_i z^i = C̃ (I - Ā z)^-1 B̄ with C̃ = C (I - Ā^L): one resolvent for
        all L terms. With A = Λ - P P* it is four Cauchy sums k over
        R_n = 1 / ((1-z) 2/Δ - (1+z) λ_n),

            2 (k_CB - (1+z) k_CP k_PB / (1 + (1+z) k_PP)).

        The paper divides by 1 + z throughout, which is 0 at z = -1; multiplied out, nothing here
        comes near a pole, since Re λ < 0.
        """
        A, _, C = self.dense()
        N = self.d_state // 2
        C = (C - (C.unsqueeze(-2) @ torch.linalg.matrix_power(A, L)).squeeze(-2))[:, :N]
        Lambda, dt, _ = self.lambda_dt_c()
        P, B = self.complex("P"), self.complex("B")
        # K is real, so the transform at half of the roots is enough.
        angle = -2 * math.pi / L * torch.arange(L // 2 + 1, dtype=dt.dtype, device=dt.device)
        z = torch.polar(torch.ones_like(angle), angle)
        near, far = (
            ((1 - z) * 2 / dt).unsqueeze(-1),
            (1 + z).unsqueeze(-1),
        )  # [D, L/2+1, 1], [.., 1]
        R, R_conj = (1 / (near - far * x.unsqueeze(1)) for x in (Lambda, Lambda.conj()))

        def cauchy(v: Tensor) -> Tensor:
            return (R @ v.unsqueeze(-1) + R_conj @ v.conj().unsqueeze(-1)).squeeze(-1)

        k_cb, k_cp, k_pb, k_pp = map(cauchy, (C * B, C * P, P.conj() * B, P.conj() * P))
        transform = 2 * (k_cb - (1 + z) * k_cp * k_pb / (1 + (1 + z) * k_pp))
        return torch.fft.irfft(transform, L)

    def reach(self, L: int) -> Tensor:
        A, B, _ = self.dense()
        return powers(B, A.mT, L)[..., : self.d_state // 2]

    def observe(self, L: int) -> Tensor:
        A, _, C = self.dense()
        return powers((C.unsqueeze(-2) @ A).squeeze(-2), A, L)[..., : self.d_state // 2]

    def carry(self, s: Tensor, L: int) -> Tensor:
        A = torch.linalg.matrix_power(self.dense()[0], L)
        both = torch.cat((s, s.conj()), dim=-1)
        return (A @ both.unsqueeze(-1)).squeeze(-1)[..., : self.d_state // 2]

    def kernel_flops(self, L: int) -> int:
        """FLOPs of Ā^L by squaring, four Cauchy sums at L/2 + 1 roots, and the transform back.

        Terms of lower order are not counted: Ā itself, and the division in each term of the sums.
        """
        if L == 0:
            return 0
        products = L.bit_length() - 1 + L.bit_count() - 1
        cauchy = 4 * 8 * self.d_state * (L // 2 + 1)
        return 8 * products * self.d_state**3 + cauchy + fft_flops(L)

    def tick_flops(self, t: int) -> int:
        return 20 * self.d_state * self.d_model
