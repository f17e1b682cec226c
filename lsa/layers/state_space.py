"""A linear state space for every channel, run as a recurrence or as a convolution.

    s'(t) = A s(t) + B u(t)          discretised with step Δ:    s_t = Ā s_{t-1} + B̄ u_t
    y(t)  = C s(t) + D u(t)                                      y_t = C s_t + D u_t

A, B and C do not depend on the input, so the recurrence is also one long convolution,
y = K * u + D u with K_i = C Ā^i B̄. The layer trains by the convolution and samples by the
recurrence. `S4D` and `S4` differ in Ā, and in how they compute K.

Letters: D channels; N = `d_state` real numbers of state a channel. A is real in some basis, so its
eigenvalues come in conjugate pairs. One of each pair is kept, N/2 complex numbers: a product over
all N is twice the real part of the product over these.

Shapes here: u, y [B, D] a tick, [B, T, D] a sequence; s [B, D, N/2], Λ, P, B, C [D, N/2], complex;
Δ [D, 1].
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..attention.call import accumulator_dtype
from ..checks import one_of, whole
from ..machines import StateMachine
from .convolution import convolution_flops, direct_convolution, fft_convolution
from .layer import ResidualLinear, starting_log_steps
from .precise import Precise

MODES = ("fft", "direct", "recurrent")


def twice_real(x: Tensor) -> Tensor:
    """Sum over the stored half of the state, [..., N/2], and over its conjugates: real, [...]."""
    return 2 * x.real.sum(-1)


def powers(first: Tensor, A: Tensor, L: int) -> Tensor:
    """Rows first A^i, i < L: [D, N] to [D, L, N], by doubling. A [D, N, N], or [D, N] diagonal."""
    rows = first.unsqueeze(1)
    while rows.shape[1] < L:
        if rows.shape[1] > 1:
            A = A @ A if A.dim() == 3 else A * A  # as many ticks as there are rows
        new = rows[:, : L - rows.shape[1]]
        rows = torch.cat((rows, new @ A if A.dim() == 3 else new * A.unsqueeze(1)), dim=1)
    return rows


def starting_dtype() -> torch.dtype:
    """The complex dtype of new parameters, complex128 where torch's default is float64."""
    return accumulator_dtype(torch.get_default_dtype()).to_complex()


class StateSpace(Precise):
    """Base of S4 and S4D: D state spaces with skip, activation and mixing. [B, T, D] to [B, T, D].

    d_state: N, even. mode: "fft" or "direct" convolution, or "recurrent": the same function.
    dt_min, dt_max: range of the initial Δ, log-uniform.

    y = W gelu(ssm(x)) + b, the published layer without its norm and residual.
    """

    rounded = ("D",)

    def __init__(
        self,
        d_model: int,
        *,
        d_state: int = 64,
        mode: str = "fft",
        dt_min: float = 1e-3,
        dt_max: float = 1e-1,
    ) -> None:
        super().__init__()
        whole("d_model", d_model)
        whole("d_state", d_state, 2)
        if d_state % 2:
            raise ValueError(f"d_state: expected an even number from 2, got {d_state}")
        one_of("mode", mode, MODES)
        self.d_model, self.d_state, self.mode = d_model, d_state, mode
        self.log_dt = nn.Parameter(starting_log_steps(dt_min, dt_max, d_model, 1))
        self.C = nn.Parameter(torch.randn(d_model, d_state // 2, 2) * 0.5**0.5)
        self.D = nn.Parameter(torch.ones(d_model))
        self.out = ResidualLinear(d_model, d_model)

    def eigenvalues(self, start: Tensor) -> None:
        """Register Λ, [D, N/2], as log(-Re), which keeps the real part negative, and Im."""
        start = start.to(starting_dtype()).expand(self.d_model, -1)
        self.log_neg_re = nn.Parameter((-start.real).log().clone())
        self.im = nn.Parameter(start.imag.clone())

    def wide(self, x: Tensor) -> Tensor:
        """x in the precision that states are kept in."""
        return x.to(accumulator_dtype(x.dtype))

    def complex(self, name: str) -> Tensor:
        """A parameter [..., 2] as complex numbers."""
        return torch.view_as_complex(self.exact(name))

    def lambda_dt_c(self) -> tuple[Tensor, Tensor, Tensor]:
        """Λ, Δ and C."""
        re = -self.exact("log_neg_re").exp()
        Lambda = torch.complex(re, self.exact("im"))
        return Lambda, self.exact("log_dt").exp(), self.complex("C")

    def tick(self, s: Tensor, u: Tensor) -> Tensor:
        """Ā s + B̄ u."""
        raise NotImplementedError

    def kernel(self, L: int) -> Tensor:
        """K_i = C Ā^i B̄ for i < L, [D, L], L >= 1."""
        raise NotImplementedError

    def reach(self, L: int) -> Tensor:
        """Ā^i B̄ for i < L, [D, L, N/2]: the effect of an input on the state i ticks later."""
        raise NotImplementedError

    def observe(self, L: int) -> Tensor:
        """C Ā^(i+1) for i < L, [D, L, N/2]: the effect of a state on later outputs."""
        raise NotImplementedError

    def carry(self, s: Tensor, L: int) -> Tensor:
        """Ā^L s."""
        raise NotImplementedError

    def kernel_flops(self, L: int) -> int:
        """FLOPs of `kernel` for one channel; a product of complex numbers is 4 multiply-adds."""
        raise NotImplementedError

    def read(self, s: Tensor) -> Tensor:
        """C s."""
        return twice_real(self.complex("C") * s)

    def ssm(self, u: Tensor) -> Tensor:
        """y = K * u + D u from an empty state. u, y [B, T, D]."""
        if u.numel() == 0:  # no token, or no sequence: the FFT takes neither
            return u
        wide = self.wide(u)
        if self.mode == "recurrent":
            s, y = self.start(), []
            for u_t in wide.unbind(1):
                s = self.tick(s, u_t)
                y.append(self.read(s))
            y = torch.stack(y, dim=1)
        else:
            convolve = fft_convolution if self.mode == "fft" else direct_convolution
            y = convolve(self.kernel(u.shape[1]), wide)
        return y.to(u.dtype) + self.D * u

    def start(self) -> Tensor:
        """s_0 = 0, [1, D, N/2]."""
        return torch.zeros_like(self.complex("C"), requires_grad=False).unsqueeze(0)

    def finish(self, y: Tensor) -> Tensor:
        """Activation and mixing of channels, [..., D]."""
        return self.out(F.gelu(y))

    def forward(self, x: Tensor) -> Tensor:
        return self.finish(self.ssm(x))

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. The state holds N/2 complex numbers a channel."""

        def step(s: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
            s = self.tick(s, self.wide(u))
            return s, self.finish(self.read(s).to(u.dtype) + self.D * u)

        def many(s: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
            T = u.shape[1]
            if T == 0:
                return s, self.finish(u)
            # The chunk's own convolution, plus the decayed effect of the state before it.
            past = torch.einsum("dtn,bdn->btd", self.observe(T), s.expand(u.shape[0], -1, -1))
            y = self.ssm(u) + (2 * past.real).to(u.dtype)
            wide = self.wide(u).flip(1).to(s.dtype)
            s = self.carry(s, T) + torch.einsum("dtn,btd->bdn", self.reach(T), wide)
            return s, self.finish(y)

        return StateMachine(self.start(), step, many)

    def sequence_flops(self, T: int) -> int:
        """FLOPs of the kernel and its convolution, or of T ticks, depending on `mode`."""
        if self.mode == "recurrent":
            return T * self.tick_flops(1)
        return self.d_model * (self.kernel_flops(T) + convolution_flops(self.mode, T))

    def tick_flops(self, t: int) -> int:
        """FLOPs of complex products, 4 multiply-adds each; reading C s takes 2."""
        raise NotImplementedError

    def state_numbers(self, t: int) -> int:
        return self.d_state * self.d_model
