"""Gated linear attention: the state decays, at a rate that is fixed or computed from the input.

    S_t = Diag(α_t) S_{t-1} + k_t v_t^T        o_t = S_t^T q_t,        0 < α_t <= 1

with one α a head, fixed (RetNet, Sun et al. 2023) or from the input (Mamba-2, Dao and Gu 2024),
or one a key channel, from the input (GLA, Yang et al. 2024). Summed up, token j reaches token i
with weight sum_c q_ic k_jc exp(g_ic - g_jc), g_i = sum_{l<=i} log α_l. Products of decays are sums
of logarithms, and only differences g_i - g_j <= 0 are ever exponentiated.

Shapes here: q, k [B, T, H, K]; v, o [B, T, H, V]; log_decay [B, T, H, K], or [..., 1] a head;
S [B, H, K, V].
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..attention.call import EPS, accumulator_dtype
from ..attention.counts import mode_flops
from ..attention.feature_maps import FEATURE_MAPS, SIGNED
from ..attention.reference import decay_between
from ..checks import boolean, one_of, whole
from ..documents import document_starts
from ..machines import StateMachine
from ..parallel import Ranks, transition_of
from .layer import StartingLinear, starting_log_steps, unrounded
from .multihead import MultiHead

DECAYS = ("fixed", "head", "channel")


@unrounded
def decayed_step(
    q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, S: Tensor
) -> tuple[Tensor, Tensor]:
    """One tick: q, k [B, H, K], v [B, H, V], log_decay [B, H, K or 1]. Returns o and S."""
    S = log_decay.exp().unsqueeze(-1) * S + k.unsqueeze(-1) * v.unsqueeze(-2)
    return (q.unsqueeze(-2) @ S).squeeze(-2), S


def default_chunk_size(P: int) -> int:
    """C for P decays a head: one a channel makes products of [C, C, K]."""
    return 64 if P == 1 else 16


@unrounded
def decayed_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor,
    S: Tensor | Callable[[], Tensor],
    chunk_size: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Gated attention, chunked: attention inside chunks of C tokens, a decayed state between them.

    S: the state before the first token, or a function that waits for it. It is called after all
        that needs no state.
    chunk_size: C; 64 by default, or 16 with a decay a channel.
    Returns o [B, T, H, V] and the state after the last token.
    """
    T, P = q.shape[1], log_decay.shape[-1]
    if T == 0:
        S = S if isinstance(S, Tensor) else S()
        return (q.transpose(1, 2) @ S).transpose(1, 2), S
    C = min(chunk_size or default_chunk_size(P), T)
    N = -(-T // C)
    # A token of zeros adds nothing and log_decay = 0 decays nothing, so they pad the last chunk.
    q, k, v, g = (
        F.pad(x.transpose(1, 2), (0, 0, 0, N * C - T)).unflatten(2, (N, C))
        for x in (q, k, v, log_decay)
    )  # [B, H, N, C, ...]
    between = decay_between(g)  # [B, H, N, C, C, P]
    from_start, to_end = g.cumsum(-2).exp(), between[..., -1, :, :]  # [B, H, N, C, P]
    # 1. Inside each chunk, attention with decayed weights.
    if P == 1:
        A = (q @ k.transpose(-1, -2)) * between.squeeze(-1)
    else:
        A = (q.unsqueeze(-2) * k.unsqueeze(-3) * between).sum(-1)
    o = A @ v
    # 2. Terms of each chunk in the state at the chunk's end.
    added = (k * to_end).transpose(-1, -2) @ v  # [B, H, N, K, V]
    # 3. The state before each chunk, and after the last.
    kept = from_start[..., -1, :].unsqueeze(-1)  # [B, H, N, P, 1]
    S = S if isinstance(S, Tensor) else S()
    before = []
    for n in range(N):
        before.append(S)
        S = kept[:, :, n] * S + added[:, :, n]
    # 4. The past through the state.
    o = o + (q * from_start) @ torch.stack(torch.broadcast_tensors(*before), dim=2)
    return o.flatten(2, 3)[:, :, :T].transpose(1, 2), S


class GatedLinearAttention(MultiHead):
    """Causal linear attention whose state decays. [B, T, D] to [B, T, D].

    decay: "fixed": α_h = 1 - 2^(-5-h) for head h, as in RetNet.
        "head": one α_t a head, exp(-exp(a) softplus(w·x_t + b)), as in Mamba-2.
        "channel": one α_t a key channel, sigmoid(W_2 W_1 x_t + b)^(1/16), as in GLA.
    feature_map: a name in `lsa.attention.feature_maps.FEATURE_MAPS`, on queries and keys. Mamba-2
        has "silu", with which both gates recall more in `made_up_tasks`.
    normalize: divide by the decayed sum of the weights, as `LinearAttention` does; the features
        must then not be negative. Without it each head's output has root mean square 1, as in
        RetNet and GLA.
    chunk_size: tokens in a chunk, see `decayed_attention`.

    Only the mechanism: no rotation of queries and keys, no output gate, no short convolution.
    """

    packs = splits = True

    GATE_RANK, TEMPERATURE = 16, 16

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        decay: str = "head",
        feature_map: str = "identity",
        normalize: bool = False,
        chunk_size: int | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__(d_model, n_heads, bias=bias)
        one_of("decay", decay, DECAYS)
        one_of("feature_map", feature_map, FEATURE_MAPS)
        boolean("normalize", normalize)
        if normalize and feature_map in SIGNED:
            wanted = "one that is not negative with normalize"
            raise ValueError(f"feature_map: expected {wanted}, got {feature_map!r}")
        if chunk_size is not None:
            whole("chunk_size", chunk_size)
        self.decay, self.feature_map = decay, feature_map
        self.normalize, self.chunk_size = normalize, chunk_size
        if decay == "head":
            self.gate = HeadDecay(d_model, n_heads)
        if decay == "channel":
            rank = min(self.GATE_RANK, d_model)
            self.gate = nn.Sequential(
                nn.Linear(d_model, rank, bias=False), nn.Linear(rank, d_model)
            )

    def log_decays(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """log α of x [..., D]: [..., H, 1] or [..., H, K]."""
        if self.decay == "fixed":
            head = torch.arange(self.n_heads, device=x.device, dtype=dtype)
            log_decay = torch.log1p(-(2 ** -(5 + head)))
            return log_decay.expand(*x.shape[:-1], -1).unsqueeze(-1)
        if self.decay == "head":
            return self.gate(x, dtype).unsqueeze(-1)
        logits = self.gate(x).to(dtype).unflatten(-1, (self.n_heads, self.head_width))
        return F.logsigmoid(logits) / self.TEMPERATURE

    def features(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """x [..., D] to phi(q), phi(k), v and log α, in the precision that states are kept in."""
        dtype = accumulator_dtype(x.dtype)
        q, k, v = (heads.to(dtype) for heads in self.qkv(x))
        phi = FEATURE_MAPS[self.feature_map]
        if self.normalize:
            v = F.pad(v, (0, 1), value=1.0)  # the normaliser is the sum over the value 1
        return phi(q) * self.head_width**-0.5, phi(k), v, self.log_decays(x, dtype)

    def read(self, o: Tensor, like: Tensor) -> Tensor:
        """The heads' outputs [..., H, V (+ 1)], projected to [..., D]."""
        if self.normalize:
            o = o[..., :-1] / (o[..., -1:] + EPS)
        else:
            o = F.rms_norm(o, o.shape[-1:], eps=EPS)
        return self.out(o.to(like.dtype))

    def attend(self, S: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """x [B, T, D] and the state before it, to the state after it and y [B, T, D]."""
        o, S = decayed_attention(*self.features(x), S, self.chunk_size)
        return S, self.read(o, x)

    def start(self) -> Tensor:
        """S_0 = 0: [1, H, K, V], or [1, H, K, V + 1] with the normaliser."""
        return self.zero_state(self.head_width, self.head_width + self.normalize)

    def forward(
        self, x: Tensor, cu_seqlens: Tensor | None = None, ranks: Ranks | None = None
    ) -> Tensor:
        q, k, v, g = self.features(x)
        if cu_seqlens is not None:
            starts = document_starts(cu_seqlens, x, part=ranks is not None)
            g = g.masked_fill(starts[..., None, None], -math.inf)
        S = self.start() if ranks is None else ranks.start(transition_of(k, v, g)).before
        return self.read(decayed_attention(q, k, v, g, S, self.chunk_size)[0], x)

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. The state holds K V (+ K) numbers a head, always."""

        def step(S: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            o, S = decayed_step(*self.features(x), S)
            return S, self.read(o, x)

        return StateMachine(self.start(), step, self.attend)

    def sequence_flops(self, T: int) -> int:
        K = self.head_width
        C = self.chunk_size or default_chunk_size(K if self.decay == "channel" else 1)
        return self.n_heads * mode_flops("chunked", T, K, K + self.normalize, C)

    def tick_flops(self, t: int) -> int:
        return 4 * self.state_numbers(t)

    def state_numbers(self, t: int) -> int:
        return self.n_heads * self.head_width * (self.head_width + self.normalize)


class HeadDecay(nn.Module):
    """log α = -exp(a) softplus(w·x + b), one a head: [..., D] to [..., H]. Dao and Gu (2024).

    exp(a) starts between 1 and 16 and the softplus between 0.001 and 0.1, as published.
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.proj = StartingLinear(d_model, n_heads)
        self.a = nn.Parameter(torch.empty(n_heads).uniform_(1, 16).log())
        dt = starting_log_steps(1e-3, 1e-1, n_heads).exp()
        with torch.no_grad():
            self.proj.bias.copy_(dt + torch.log(-torch.expm1(-dt)))  # softplus gives dt back

    def forward(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        return -self.a.to(dtype).exp() * F.softplus(self.proj(x).to(dtype))
