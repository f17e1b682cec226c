"""S6 and the Mamba block: a state space that decides, token by token, what to keep.

Gu and Dao (2023), algorithm 2 and figure 3. `lsa.scans.selective_scan` is the recurrence; here
are the maps that let it depend on the input:

    B_t, C_t = W_B x_t, W_C x_t        Δ_t = softplus(W_Δ W_δ x_t + b_Δ)        A = -exp(A_log)
    h_t = exp(Δ_t A) ∘ h_{t-1} + Δ_t B_t x_t        y_t = C_t · h_t + D ∘ x_t

A large Δ_t writes the token and clears the past; Δ_t near 0 skips the token.

Letters: D channels (the paper's D, here `d_model` or E D = `d_inner`), N = `d_state` numbers a
channel, R = `dt_rank` the width between W_δ and W_Δ.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..attention.call import accumulator_dtype, without_autocast
from ..checks import one_of, whole
from ..documents import document_starts
from ..machines import StateMachine
from ..parallel import Ranks, Transition
from ..scans.selective import INPUT_RULES, MODES, selective_scan, selective_step
from .convolution import CausalConv
from .layer import ResidualLinear, StartingLinear, starting_log_steps


class S6(nn.Module):
    """The selective state space alone. [B, T, D] to [B, T, D]. Each channel keeps N numbers.

    d_state: N. dt_rank: R; ceil(D / 16) by default.
    input_rule: "euler" (B̄ = Δ B, as in the published code) or "zoh" (zero-order hold for B too).
    mode, chunk_size: as for `lsa.scans.selective_scan`.
    dt_min, dt_max: range of the initial Δ, log-uniform, where W_Δ adds nothing.
    """

    packs = splits = True

    def __init__(
        self,
        d_model: int,
        *,
        d_state: int = 16,
        dt_rank: int | None = None,
        input_rule: str = "euler",
        mode: str = "auto",
        chunk_size: int = 64,
        dt_min: float = 1e-3,
        dt_max: float = 1e-1,
    ) -> None:
        super().__init__()
        whole("d_model", d_model)
        dt_rank = -(-d_model // 16) if dt_rank is None else dt_rank
        for name, value in (("d_state", d_state), ("dt_rank", dt_rank), ("chunk_size", chunk_size)):
            whole(name, value)
        one_of("input_rule", input_rule, INPUT_RULES)
        one_of("mode", mode, MODES)
        self.d_state, self.dt_rank = d_state, dt_rank
        self.input_rule, self.mode, self.chunk_size = input_rule, mode, chunk_size
        self.x_proj = nn.Linear(d_model, dt_rank + 2 * d_state, bias=False)
        self.dt_proj = StartingLinear(dt_rank, d_model)
        self.A_log = nn.Parameter(torch.arange(1.0, d_state + 1).log().repeat(d_model, 1))
        self.D = nn.Parameter(torch.ones(d_model))
        dt = starting_log_steps(dt_min, dt_max, d_model).exp()
        with torch.no_grad():
            self.dt_proj.weight.uniform_(-(dt_rank**-0.5), dt_rank**-0.5)
            self.dt_proj.bias.copy_(dt + torch.log(-torch.expm1(-dt)))  # softplus gives dt back

    def selection(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """u, Δ [..., D], A [D, N], B, C [..., N] of x [..., D]; all but u in the states' dtype."""
        dtype = accumulator_dtype(x.dtype)
        low, B, C = self.x_proj(x).split((self.dt_rank, self.d_state, self.d_state), dim=-1)
        with without_autocast(x):  # rounding Δ would round the state
            delta = F.softplus(self.dt_proj(low.to(self.dt_proj.weight.dtype)).to(dtype))
        return x, delta, -self.A_log.to(dtype).exp(), B.to(dtype), C.to(dtype)

    def _entries(
        self, x: Tensor, cu_seqlens: Tensor | None, *, part: bool = False
    ) -> tuple[Tensor, ...]:
        """The selection of x [B, T, D], in which each document begins without a past."""
        u, delta, *rest = self.selection(x)
        if cu_seqlens is not None:
            starts = document_starts(cu_seqlens, x, part=part).unsqueeze(-1)
            u, delta = self._begun(u, delta, starts)
        return u, delta, *rest

    def _scan(self, *entries: Tensor, h: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """y without the direct term, and the state after it."""
        return selective_scan(
            *entries,
            initial_state=h,
            input_rule=self.input_rule,
            mode=self.mode,
            chunk_size=self.chunk_size,
        )

    def attend(
        self, h: Tensor, x: Tensor, cu_seqlens: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """x [B, T, D] and the state before it, to the state after it and y [B, T, D]."""
        y, h = self._scan(*self._entries(x, cu_seqlens), h=h)
        return h, y.to(x.dtype) + self.D * x

    def _begun(self, u: Tensor, delta: Tensor, starts: Tensor) -> tuple[Tensor, Tensor]:
        """u and Δ changed so that a document's first token [B, T, 1] clears the state.

        Δ becomes the longest step, so exp(Δ A) is zero. u is divided so that B̄ u = Δ B u stays.
        """
        if self.input_rule != "euler":
            raise ValueError(f"cu_seqlens: expected input_rule euler, got {self.input_rule}")
        longest = 2.0**64
        u = torch.where(starts, u.to(delta.dtype) * delta / longest, u)
        return u, torch.where(starts, longest, delta)

    def start(self) -> Tensor:
        """h_0 = 0, [1, D, N]."""
        return torch.zeros_like(
            self.A_log, dtype=accumulator_dtype(self.A_log.dtype), requires_grad=False
        ).unsqueeze(0)

    def forward(
        self, x: Tensor, cu_seqlens: Tensor | None = None, ranks: Ranks | None = None
    ) -> Tensor:
        if ranks is None:
            return self.attend(self.start(), x, cu_seqlens)[1]
        # One scan gives both the part's transition and its outputs from a state of zeros, so that
        # only the direct term is left for the time in which states travel. A second scan starts
        # from the state.
        _, delta, A, *_ = entries = self._entries(x, cu_seqlens, part=True)
        _, added = self._scan(*entries)
        decay = (delta.sum(1).unsqueeze(-1) * A).exp()
        exchange = ranks.start(Transition(added, decay))
        direct = self.D * x
        y, h = self._scan(*entries, h=exchange.before())
        y = y.to(x.dtype) + direct
        return y + h[..., :0].sum()  # a rank without tokens takes part in the states' gradient

    def step(self, h: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """One tick of the machine. x [B, D], h [B, D, N]."""
        h, y = selective_step(h, *self.selection(x), self.input_rule)
        return h, y.to(x.dtype) + self.D * x

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. The state holds D N numbers, always."""
        return StateMachine(self.start(), self.step, self.attend)

    def sequence_flops(self, T: int) -> int:
        """FLOPs of T ticks; a tree takes three multiply-adds a number where a tick takes one."""
        on_state = 8 if self.mode == "tree" else 4
        return on_state * T * self.A_log.numel()

    def tick_flops(self, t: int) -> int:
        return 4 * self.A_log.numel()

    def state_numbers(self, t: int) -> int:
        return self.A_log.numel()


class Mamba(nn.Module):
    """The Mamba block: widen, short convolution, S6, gate, narrow. [B, T, D] to [B, T, D].

    expand: E; the inner width is E D. d_conv: tokens in the short convolution. The other options
    are those of `S6`, whose D is E D here, but dt_rank is ceil(D / 16) by default. Norm and
    residual are left to the caller, as for every layer.
    """

    def __init__(
        self,
        d_model: int,
        *,
        expand: int = 2,
        d_conv: int = 4,
        d_state: int = 16,
        dt_rank: int | None = None,
        input_rule: str = "euler",
        mode: str = "auto",
        chunk_size: int = 64,
        dt_min: float = 1e-3,
        dt_max: float = 1e-1,
    ) -> None:
        super().__init__()
        whole("d_model", d_model)
        whole("expand", expand)
        whole("d_conv", d_conv)
        d_inner = expand * d_model
        self.in_proj = nn.Linear(d_model, 2 * d_inner, bias=False)
        self.conv1d = CausalConv(d_inner, width=d_conv)
        dt_rank = -(-d_model // 16) if dt_rank is None else dt_rank
        self.ssm = S6(
            d_inner,
            d_state=d_state,
            dt_rank=dt_rank,
            input_rule=input_rule,
            mode=mode,
            chunk_size=chunk_size,
            dt_min=dt_min,
            dt_max=dt_max,
        )
        self.out_proj = ResidualLinear(d_inner, d_model, bias=False)

    def _around(self, conv: Callable, ssm: Callable, state: tuple, x: Tensor) -> tuple:
        past, h = state
        u, gate = self.in_proj(x).chunk(2, dim=-1)
        past, u = conv(past, u)
        h, y = ssm(h, F.silu(u))
        return (past, h), self.out_proj(y * F.silu(gate))

    def start(self) -> tuple[Tensor, Tensor]:
        """The first state: no earlier inputs, and h_0 = 0."""
        return self.conv1d.start(), self.ssm.start()

    def attend(self, state: tuple[Tensor, Tensor], x: Tensor) -> tuple[tuple, Tensor]:
        """x [B, T, D] and the state before it, to the state after it and y [B, T, D]."""
        return self._around(self.conv1d.attend, self.ssm.attend, state, x)

    def forward(self, x: Tensor) -> Tensor:
        return self.attend(self.start(), x)[1]

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. The state: E D N numbers, and d_conv - 1 inputs."""
        conv = self.conv1d.machine()

        def step(state: tuple[Tensor, Tensor], x: Tensor) -> tuple[tuple, Tensor]:
            return self._around(conv.step, self.ssm.step, state, x)

        return StateMachine(self.start(), step, self.attend)

    def sequence_flops(self, T: int) -> int:
        return self.conv1d.sequence_flops(T) + self.ssm.sequence_flops(T)

    def tick_flops(self, t: int) -> int:
        return self.conv1d.tick_flops(t) + self.ssm.tick_flops(t)

    def state_numbers(self, t: int) -> int:
        return self.conv1d.state_numbers(t) + self.ssm.state_numbers(t)
