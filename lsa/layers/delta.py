"""The delta rule: before a token writes its value, the old value of its key is erased.

    S_t = α_t (I - β_t k_t k_t^T) S_{t-1} + β_t k_t v_t^T        o_t = S_t^T q_t

with keys of length 1 and 0 < β < 1. At α = 1 it is DeltaNet (Schlag et al. 2021; Yang et al.
2024); α_t a head from the input makes it the gated delta rule (Yang et al. 2025). It is one step of
gradient descent, of size β, on |S^T k - v|^2 / 2.

Without the erase term, S_t = α_t S_{t-1} + β_t k_t v_t^T, everything else stays. This ablation
separates the effect of erasing from that of unit keys and β, which can be left out then, too.

With u_t = β_t (v_t - α_t S_{t-1}^T k_t), the new part of v_t, the update reads
S_t = α_t S_{t-1} + k_t u_t^T: gated linear attention with values u. Over a chunk the u solve
a triangular system (the UT transform of the WY representation):

    u_i + β_i sum_{j<i} exp(g_i - g_j) (k_i·k_j) u_j = β_i (v_i - exp(g_i) S_0^T k_i),

g_i the sum of log α from the chunk's start.

Shapes here: q, k [B, T, H, K]; v, o [B, T, H, V]; beta, log_decay [B, T, H]; S [B, H, K, V].
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..attention.call import EPS, accumulator_dtype
from ..attention.counts import mode_flops
from ..attention.reference import decay_between
from ..checks import boolean, whole
from ..machines import StateMachine
from .gated import HeadDecay, decayed_attention, decayed_step
from .layer import unrounded
from .multihead import MultiHead

CHUNK_SIZE = 64


@unrounded
def delta_step(
    q: Tensor, k: Tensor, v: Tensor, beta: Tensor, log_decay: Tensor, S: Tensor
) -> tuple[Tensor, Tensor]:
    """One tick: q, k [B, H, K], v [B, H, V], beta, log_decay [B, H]. Returns o and S."""
    S = log_decay.exp()[..., None, None] * S
    u = beta.unsqueeze(-1) * (v - (k.unsqueeze(-2) @ S).squeeze(-2))
    S = S + k.unsqueeze(-1) * u.unsqueeze(-2)
    return (q.unsqueeze(-2) @ S).squeeze(-2), S


@unrounded
def delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    log_decay: Tensor,
    S: Tensor,
    chunk_size: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The delta rule over T tokens, chunked. Returns o [B, T, H, V] and the state after them."""
    T = q.shape[1]
    if T == 0:
        return q[..., :1] * v, S
    C = min(chunk_size or CHUNK_SIZE, T)
    N = -(-T // C)
    # beta = 0 writes nothing and log_decay = 0 decays nothing, so they pad the last chunk.
    q, k, v, beta, g = (
        F.pad(x.transpose(1, 2), (0, 0, 0, N * C - T)).unflatten(2, (N, C))
        for x in (q, k, v, beta.unsqueeze(-1), log_decay.unsqueeze(-1))
    )  # [B, H, N, C, ...]
    between = decay_between(g)  # [B, H, N, C, C, 1]
    from_start, to_end = g.cumsum(-2).exp(), between[..., -1, :, :]  # [B, H, N, C, 1]
    between = between.squeeze(-1)
    # 1. All u of a chunk at once, as u = U - W S with S the state before the chunk.
    system = torch.eye(C, device=q.device, dtype=q.dtype)
    system = system + (beta * (k @ k.transpose(-1, -2)) * between).tril(-1)
    right = torch.cat((beta * v, beta * from_start * k), dim=-1)
    solved = torch.linalg.solve_triangular(system, right, upper=False, unitriangular=True)
    U, W = solved.split((v.shape[-1], k.shape[-1]), dim=-1)
    # 2. From there on, gated linear attention with values u.
    A = (q @ k.transpose(-1, -2)) * between
    q, k = q * from_start, k * to_end
    kept = from_start[..., -1:, :]  # [B, H, N, 1, 1]
    o = []
    for n in range(N):
        u = U[:, :, n] - W[:, :, n] @ S
        o.append(q[:, :, n] @ S + A[:, :, n] @ u)
        S = kept[:, :, n] * S + k[:, :, n].transpose(-1, -2) @ u
    return torch.cat(o, dim=2)[:, :, :T].transpose(1, 2), S


class DeltaNet(MultiHead):
    """Causal attention by the delta rule. [B, T, D] to [B, T, D].

    gated: decay the state by α_t at each token, one number a head from the input.
    erase: erase the old value of a token's key before the token writes; else its value is added.
    unit: keys and queries of length 1. Erasing needs them: it diverges under long keys.
    write_gate: β from the input; else β = 1.
    chunk_size: tokens in a chunk; 64 by default.

    As in the published layer, queries and keys pass through silu and are normalised to length 1,
    β = sigmoid(w·x) a head, and each head's output has root mean square 1. The short
    convolutions of that layer are a layer of their own, `CausalConv`.
    """

    phi: Callable[[Tensor], Tensor] = staticmethod(F.silu)  # of queries and keys

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        gated: bool = False,
        erase: bool = True,
        unit: bool = True,
        write_gate: bool = True,
        chunk_size: int | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__(d_model, n_heads, bias=bias)
        if chunk_size is not None:
            whole("chunk_size", chunk_size)
        boolean("gated", gated)
        for name, value in (("erase", erase), ("unit", unit), ("write_gate", write_gate)):
            boolean(name, value)
        if erase and not unit:
            raise ValueError("unit: expected True with erase, got False")
        self.gated, self.erase, self.unit, self.chunk_size = gated, erase, unit, chunk_size
        self.beta = nn.Linear(d_model, n_heads, bias=False) if write_gate else None
        if gated:
            self.gate = HeadDecay(d_model, n_heads)

    def features(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """x [..., D] to q, k, v [..., H, K], β and log α [..., H], in the precision of states."""
        dtype = accumulator_dtype(x.dtype)
        q, k, v = (heads.to(dtype) for heads in self.qkv(x))
        q, k = self.phi(q), self.phi(k)
        if self.unit:
            q, k = F.normalize(q, dim=-1), F.normalize(k, dim=-1)
        beta = torch.sigmoid(self.beta(x).to(dtype)) if self.beta else torch.ones_like(q[..., 0])
        log_decay = self.gate(x, dtype) if self.gated else torch.zeros_like(beta)
        return q * self.head_width**-0.5, k, v, beta, log_decay

    def read(self, o: Tensor, like: Tensor) -> Tensor:
        """The heads' outputs [..., H, V], projected to [..., D]."""
        return self.out(F.rms_norm(o, o.shape[-1:], eps=EPS).to(like.dtype))

    def attend(self, S: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """x [B, T, D] and the state before it, to the state after it and y [B, T, D]."""
        q, k, v, beta, log_decay = self.features(x)
        if self.erase:
            o, S = delta_rule(q, k, v, beta, log_decay, S, self.chunk_size)
        else:
            written, g = beta.unsqueeze(-1) * v, log_decay.unsqueeze(-1)
            o, S = decayed_attention(q, k, written, g, S, self.chunk_size)
        return S, self.read(o, x)

    def start(self) -> Tensor:
        """S_0 = 0, [1, H, K, V]."""
        return self.zero_state(self.head_width, self.head_width)

    def forward(self, x: Tensor) -> Tensor:
        return self.attend(self.start(), x)[1]

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. The state holds K V numbers a head, always."""

        def step(S: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            q, k, v, beta, log_decay = self.features(x)
            if self.erase:
                o, S = delta_step(q, k, v, beta, log_decay, S)
            else:
                written, g = beta.unsqueeze(-1) * v, log_decay.unsqueeze(-1)
                o, S = decayed_step(q, k, written, g, S)
            return S, self.read(o, x)

        return StateMachine(self.start(), step, self.attend)

    def sequence_flops(self, T: int) -> int:
        """Chunked linear attention and, in every chunk, the system for u and W S."""
        K, C = self.head_width, self.chunk_size or CHUNK_SIZE
        whole, last = divmod(T, C)
        below = whole * C * (C - 1) + last * (last - 1)  # twice the entries under the diagonal
        system = below * (K + 2 * K) + 2 * T * K * K  # k·k, a right side of width V + K, and W S
        return self.n_heads * (mode_flops("chunked", T, K, K, C) + self.erase * system)

    def tick_flops(self, t: int) -> int:
        """FLOPs of the update, of reading by q, and with erasing of reading by k."""
        return (4 + 2 * self.erase) * self.state_numbers(t)

    def state_numbers(self, t: int) -> int:
        return self.n_heads * self.head_width**2
