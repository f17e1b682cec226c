"""Softmax attention to the last and the first tokens, and a linear state for those between.

The token that leaves the window enters a state of constant size, as in linear attention. Softmax
and state share one normaliser, so a token has one weight wherever it is stored (Arora et al., 2024;
Zhang et al., 2025). Without a window it is linear attention; with an endless one, softmax.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..attention.api import LinearState, linear_attention
from ..attention.call import accumulator_dtype, without_autocast
from ..attention.counts import mode_flops
from ..checks import boolean
from ..machines import StateMachine, single
from .fixed import checked_decays
from .mixes import WindowMix
from .multihead import MultiHead
from .state_features import StateFeatures
from .window import RingCache, early_queries, late_blocks


class WindowState(NamedTuple):
    """A ring of tokens for softmax, and S, the state of the others; see the mixes' `start`."""

    near: RingCache
    S: Tensor


class WindowAndFar(WindowMix):
    """A `Mix`: softmax attention to the last and the first tokens; `_far` reads those between.

    window, first, adjacent: as for `WindowMix`; window may be 0. Each query head has a state of its
    own.
    rotary: whether the state reads q and k with their rotary positions. If not, q and k have their
        unrotated features as well, at the end. Only in `lsa.llama`.
    """

    LEAST = 0

    def __init__(
        self, n_heads: int, head_width: int, *, rotary: bool = True, **options: Any
    ) -> None:
        super().__init__(n_heads, head_width, **options)
        boolean("rotary", rotary)
        self.rotary = rotary

    def _start(self, like: Tensor, rows: int, columns: int) -> WindowState:
        """An empty ring, and zeros [1, H, rows, columns]."""
        shape, dtype = (1, self.n_heads, rows, columns), accumulator_dtype(like.dtype)
        ring = RingCache.empty(
            like, self.n_groups, self.head_width,
            window=self.window, first=self.first, wider=1 if self.rotary else 2,
        )  # fmt: skip
        return WindowState(ring, like.new_zeros(shape, dtype=dtype))

    def start(self, like: Tensor) -> WindowState:
        raise NotImplementedError

    def _far(
        self, S: Tensor, q: Tensor, k: Tensor, v: Tensor, mode: str
    ) -> tuple[Tensor, Tensor, Tensor]:
        """S after k, v [B, T, H, K]; o of q [B, T, H, K]; and its weight [B, T, H, 1], a log."""
        raise NotImplementedError

    def _joined(self, o: Tensor, total: Tensor, far_o: Tensor, far_total: Tensor) -> Tensor:
        """Both parts [B, T, H, K], by their weights [B, T, H, 1], which are logs."""
        raise NotImplementedError

    def _for_ring(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """q and k of the softmax part."""
        K = self.head_width
        return self._faced(q[..., : K * (2 if self.adjacent else 1)], k[..., :K])

    def _for_state(self, x: Tensor) -> Tensor:
        """q or k of the state: [..., K]."""
        K = self.head_width
        return x[..., :K] if self.rotary else x[..., -K:]

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self.many(self.start(v), q, k, v)[1]

    def many(
        self, state: WindowState, q: Tensor, k: Tensor, v: Tensor
    ) -> tuple[WindowState, Tensor]:
        T = q.shape[1]
        near, k, v = state.near.extended(k, v)
        k, v = self.spread(k), self.spread(v)
        late = T - early_queries(T, k.shape[1], self.window, self.first)
        o, total = self._near(*self._for_ring(q, k), v, late)
        q_far, k_far = self._for_state(q), self._for_state(k)
        # Also run if nothing has left the window, so that learned parameters get a gradient of
        # zero.
        left = slice(k.shape[1] - late - self.window, k.shape[1] - self.window)
        left = left if late else slice(0, 0)
        S, *far = self._far(state.S, q_far[:, T - late :], k_far[:, left], v[:, left], "chunked")
        early, late_total = o[:, : T - late], total[:, T - late :]
        o = torch.cat((early, self._joined(o[:, T - late :], late_total, *far)), 1)
        return WindowState(near, S), o.to(q.dtype)

    def tick(
        self, state: WindowState, q: Tensor, k: Tensor, v: Tensor
    ) -> tuple[WindowState, Tensor]:
        ring, S = state
        full = ring.ticks >= self.first + self.window
        left_k, left_v = k, v  # without a window a token enters the state at once
        if full and self.window:
            slot = slice(ring.next_slot, ring.next_slot + 1)
            left_k, left_v = (x[:, slot].expand(len(k), -1, -1, -1) for x in (ring.k, ring.v))
        ring = ring.pushed(k, v) if self.window or not full else ring._replace(ticks=ring.ticks + 1)
        held_k, held_v = map(self.spread, ring.held)
        o, total = _weighed(*_by_head(*self._for_ring(q, held_k), held_v), None)
        if not full:
            return WindowState(ring, S), o.transpose(1, 2).to(q.dtype)
        q, left_k = self._for_state(q), self._for_state(self.spread(left_k))
        S, far_o, far_total = self._far(S, q, left_k, self.spread(left_v), "recurrent")
        o = self._joined(o.transpose(1, 2), total.transpose(1, 2), far_o, far_total)
        return WindowState(ring, S), o.to(q.dtype)

    def _near(self, q: Tensor, k: Tensor, v: Tensor, late: int) -> tuple[Tensor, Tensor]:
        """o [B, T, H, V] of the softmax part, and the log of its normaliser [B, T, H, 1]."""
        T, L, H, window = q.shape[1], k.shape[1], q.shape[2], self.window
        early, known = T - late, L - late
        parts = []
        if early or not late:
            mask = torch.ones(early, known, dtype=torch.bool, device=q.device).tril(known - early)
            parts.append(_weighed(*_by_head(q[:, :early], k[:, :known], v[:, :known]), mask))
        q, first_k, first_v = q[:, early:], k[:, : self.first], v[:, : self.first]
        if late and window:
            last = slice(known - (window - 1), L)
            o, total = _weighed(*late_blocks(q, k[:, last], v[:, last], first_k, first_v, window))
            parts.append(
                tuple(x.unflatten(1, (H, -1)).flatten(2, 3)[:, :, :late] for x in (o, total))
            )
        elif late:
            parts.append(_weighed(*_by_head(q, first_k, first_v), None))
        o, total = (torch.cat(x, 2).transpose(1, 2) for x in zip(*parts, strict=True))
        return o, total


class WindowStateMix(WindowAndFar):
    """A `Mix`: softmax attention to the last and the first tokens, a state for those between.

    window, first, adjacent, rotary: see `WindowAndFar`.
    feature_map, degree, features: of the state's keys, see `StateFeatures`.
    log_decay: one number a head, at most 0: the log of its decay at each token; or None.

    The weight of a token in the state is exp(balance) phi(q)·phi(k), of one in the window
    exp(q·k / sqrt(K)). `balance` is learned, one number a head. Each query head has a state of its
    own.
    """

    log_decay: Tensor | None

    def __init__(
        self,
        n_heads: int,
        head_width: int,
        *,
        window: int = 64,
        first: int = 1,
        feature_map: str = "hedgehog",
        degree: int = 2,
        features: int | None = None,
        log_decay: Sequence[float] | None = None,
        adjacent: bool = False,
        rotary: bool = True,
        groups: Sequence[int] | None = None,
    ) -> None:
        super().__init__(
            n_heads, head_width,
            window=window, first=first, adjacent=adjacent, rotary=rotary, groups=groups,
        )  # fmt: skip
        self.phi = StateFeatures(
            n_heads, head_width, feature_map=feature_map, degree=degree, features=features
        )
        self.balance = nn.Parameter(torch.zeros(n_heads))
        self.fix("log_decay", checked_decays(log_decay, n_heads))

    def start(self, like: Tensor) -> WindowState:
        """The state [1, H, F, K + 1]: sums of phi(k) [v 1]."""
        return self._start(like, self.phi.n_features, self.head_width + 1)

    def _far(
        self, S: Tensor, q: Tensor, k: Tensor, v: Tensor, mode: str
    ) -> tuple[Tensor, Tensor, Tensor]:
        dtype = S.dtype
        with without_autocast(q):
            phi_q, phi_k = self.phi.of_queries(q.to(dtype)), self.phi.of_keys(k.to(dtype))
            S = S.expand(q.shape[0], -1, -1, -1)
            o, (S, _) = linear_attention(
                phi_q,
                phi_k,
                F.pad(v.to(dtype), (0, 1), value=1.0),
                mode=mode,
                normalize=False,
                scale=1.0,
                initial_state=LinearState(S, S[..., -1]),
                return_state=True,
                log_decay=self.log_decay,
            )
        total = o[..., -1:].clamp(min=torch.finfo(dtype).tiny)
        return S, o[..., :-1] / total, total.log() + self.balance.to(dtype).unsqueeze(-1)

    def _joined(self, o: Tensor, total: Tensor, far_o: Tensor, far_total: Tensor) -> Tensor:
        return o.lerp(far_o, torch.sigmoid(far_total - total))

    def sequence_flops(self, T: int) -> int:
        late = max(T - self.first - self.window, 0)
        H, K, slots = self.n_heads, self.head_width, min(T, self.first + self.window)
        near = 2 * H * K * (slots * (slots + 1) + 2 * late * slots)
        far = mode_flops("chunked", late, self.phi.n_features, K + 1, 64)
        return near + H * (far + late * self.phi.flops())

    def tick_flops(self, t: int) -> int:
        slots = self.first + self.window
        flops = 4 * min(t, slots) * self.head_width
        if t > slots:
            flops += 4 * self.phi.n_features * (self.head_width + 1) + self.phi.flops()
        return self.n_heads * flops

    def state_numbers(self, t: int) -> int:
        near = (2 if self.rotary else 3) * (self.first + self.window) * self.head_width
        return self.n_heads * (near + self.phi.n_features * (self.head_width + 1))


def _by_head(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """q, k, v from [B, T, H, K] to [B, H, T, K]."""
    return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)


def _weighed(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Softmax attention [B, H, T, V] of q to k, v [B, H, L, K], and its log normaliser [..., 1].

    With no keys they are 0 and -inf.
    """
    dtype = accumulator_dtype(q.dtype)
    with without_autocast(q):
        q, k, v = (x.to(dtype) for x in (q, k, v))
        if not k.shape[2]:  # the forward derivative of a logsumexp of nothing is NaN
            shape = *q.shape[:-1], 1
            return q @ k.mT @ v, q.new_full(shape, float("-inf"))
        scores = q @ k.mT * q.shape[-1] ** -0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        return scores.softmax(-1) @ v, scores.logsumexp(-1, keepdim=True)


class WindowStateAttention(MultiHead):
    """Multi-head attention with softmax for the last and first tokens, a state for the others.

    window, first, feature_map, degree, features, log_decay: see `WindowStateMix`.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        window: int = 64,
        first: int = 1,
        feature_map: str = "hedgehog",
        degree: int = 2,
        features: int | None = None,
        log_decay: Sequence[float] | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__(d_model, n_heads, bias=bias)
        self.mix = WindowStateMix(
            n_heads, self.head_width,
            window=window, first=first, feature_map=feature_map, degree=degree, features=features,
            log_decay=log_decay,
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.mix(*self.qkv(x)))

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. Its state, ring and sums, never grows."""

        def advanced(how: Callable, state: WindowState, x: Tensor) -> tuple[WindowState, Tensor]:
            state, o = how(state, *self.qkv(x))
            return state, self.out(o)

        many, ticked = (partial(advanced, how) for how in (self.mix.many, self.mix.tick))

        return StateMachine(self.mix.start(self.c_proj.weight), single(ticked), many)

    def sequence_flops(self, T: int) -> int:
        return self.mix.sequence_flops(T)

    def tick_flops(self, t: int) -> int:
        return self.mix.tick_flops(t)

    def state_numbers(self, t: int) -> int:
        return self.mix.state_numbers(t)
