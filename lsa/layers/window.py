"""Softmax attention in a sliding window plus the first tokens: its state never grows.

Trained models use the first token as an attention sink, for weight that belongs nowhere (Xiao
et al., 2024). Hiding it costs much, so the first tokens stay visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ..attention.api import check_qkv, checked_scale
from ..checks import whole
from ..machines import StateMachine
from .softmax import SoftmaxAttention, softmax_attention

LEAST_BLOCK = 32  # shorter blocks would make many small products


def window_attention(
    q: Tensor, k: Tensor, v: Tensor, *, window: int, first: int = 0, scale: float | None = None
) -> Tensor:
    """Causal softmax attention to the last `window` tokens, a query's own included, and the first.

    Sliding blocks, Beltagy et al. (2020), section 3.1, so that time and memory are linear in T.

    q: [B, T, H, K]. k: [B, L, H, K] and v: [B, L, H, V] with L >= T: the queries are the last T
    positions. Tokens that no query sees may be missing between the first tokens and the others.
    window: at least 1. first: 0 or more. scale: as for `softmax_attention`.

    Returns o [B, T, H, V]. Raises ValueError for arguments that do not fit.
    """
    check_qkv(q, k, v, longer_keys=True)
    whole("window", window)
    whole("first", first, 0)
    scale = checked_scale(scale, q.dtype)
    T, L = q.shape[1], k.shape[1]
    early = early_queries(T, L, window, first)
    late = T - early
    if not late:
        return softmax_attention(q, k, v, scale=scale)
    near = slice(L - late - (window - 1), L)
    blocks = late_blocks(q[:, early:], k[:, near], v[:, near], k[:, :first], v[:, :first], window)
    o = F.scaled_dot_product_attention(*blocks, scale=scale)
    o = o.unflatten(1, (q.shape[2], -1)).flatten(2, 3)[:, :, :late].transpose(1, 2)
    if not early:
        return o
    seen = slice(0, L - late)
    start = softmax_attention(q[:, :early], k[:, seen], v[:, seen], scale=scale)
    return torch.cat((start, o), 1)


def early_queries(T: int, L: int, window: int, first: int) -> int:
    """Number of the last T of L positions before first + window; these see all earlier tokens."""
    # By branches, which torch.compile guards; `min` and `max` would stay in the sizes of tensors.
    early = first + window - (L - T)
    if early <= 0:
        return 0
    return early if early < T else T


def late_blocks(
    q: Tensor, k: Tensor, v: Tensor, first_k: Tensor, first_v: Tensor, window: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Blocks of queries, whose queries each see all first tokens and `window` >= 1 of the keys.

    q: [B, T, H, K]. k, v: [B, window - 1 + T, H, K or V]. first_k, first_v: [B, first, H, K or V].

    Returns q [B, H n, C, K], in n blocks of C, the last padded with zeros; k and v
    [B, H n, first + C + window - 1, K or V]; and a mask of the keys that each query sees,
    [C, first + C + window - 1].
    """
    T, first = q.shape[1], first_k.shape[1]
    C = max(window, LEAST_BLOCK)
    n = -(-T // C)

    def in_blocks(x: Tensor, n: int) -> Tensor:
        x = F.pad(x.transpose(1, 2), (0, 0, 0, n * C - x.shape[1]))
        return x.unflatten(2, (n, C))

    def seen(near: Tensor, kept: Tensor) -> Tensor:
        # A block and the start of the next one, rather than `unfold`, whose gradient is slow.
        near = in_blocks(near, n + 1)
        kept = kept.transpose(1, 2).unsqueeze(2).expand(-1, -1, n, -1, -1)
        return torch.cat((kept, near[:, :, :-1], near[:, :, 1:, : window - 1]), 3).flatten(1, 2)

    band = torch.ones(C, C + window - 1, dtype=torch.bool, device=q.device).triu().tril(window - 1)
    mask = F.pad(band, (first, 0), value=True)
    return in_blocks(q, n).flatten(1, 2), seen(k, first_k), seen(v, first_v), mask


class RingCache(NamedTuple):
    """A ring buffer of the keys and values of the first and the last tokens, of constant size.

    k, v: [B, first + window, H, K or V]. Token t is in slot t, and from first + window on in the
    slot of the token that it replaces, first + (t - first) % window. ticks: tokens so far.
    """

    k: Tensor
    v: Tensor
    first: int
    ticks: int = 0

    @classmethod
    def empty(
        cls, like: Tensor, heads: int, features: int, *, window: int, first: int, wider: int = 1
    ) -> RingCache:
        """The cache before the first token, with the dtype and device of `like`.

        wider: how many times as many features the keys have.
        """
        k, v = (like.new_zeros(1, first + window, heads, n) for n in (wider * features, features))
        return cls(k, v, first)

    @property
    def window(self) -> int:
        return self.k.shape[1] - self.first

    @property
    def held(self) -> tuple[Tensor, Tensor]:
        """k and v in the cache, in the order of slots, [B, up to first + window, ...]."""
        return self.k[:, : self.ticks], self.v[:, : self.ticks]

    @property
    def next_slot(self) -> int:
        """Slot of the next token. In a full ring it holds the oldest of the last tokens."""
        if self.ticks < self.k.shape[1]:
            return self.ticks
        return self.first + (self.ticks - self.first) % self.window

    def pushed(self, k: Tensor, v: Tensor) -> RingCache:
        """The cache after one more token, k and v [B, 1, H, K or V]."""
        place = torch.tensor([self.next_slot], device=k.device)
        k, v = (
            kept.expand(x.shape[0], -1, -1, -1).index_copy(1, place, x.to(kept.dtype))
            for kept, x in ((self.k, k), (self.v, v))
        )
        return RingCache(k, v, self.first, self.ticks + 1)

    def extended(self, k: Tensor, v: Tensor) -> tuple[RingCache, Tensor, Tensor]:
        """The cache after T more tokens; and k and v of the old and the new tokens, in order."""
        all_k, all_v = self._followed(self.k, k), self._followed(self.v, v)
        ticks = self.ticks + k.shape[1]
        kept_k, kept_v = self._kept(all_k, ticks), self._kept(all_v, ticks)
        return RingCache(kept_k, kept_v, self.first, ticks), all_k, all_v

    def _followed(self, slots: Tensor, x: Tensor) -> Tensor:
        """The slots' contents in the order of tokens, then x [B, T, H, K]."""
        if self.ticks > slots.shape[1]:
            slots = self._turned(slots, self.first - self.ticks)
        held = slots[:, : self.ticks].expand(x.shape[0], -1, -1, -1)
        return torch.cat((held, x.to(slots.dtype)), 1)

    def _kept(self, tokens: Tensor, ticks: int) -> Tensor:
        """The slots after `ticks` tokens. tokens [B, L, H, K] has at least those that stay."""
        slots = self.k.shape[1]
        if ticks <= slots:
            return F.pad(tokens, (0, 0, 0, 0, 0, slots - ticks))
        last = tokens[:, tokens.shape[1] - self.window :]
        return self._turned(torch.cat((tokens[:, : self.first], last), 1), ticks - self.first)

    def _turned(self, slots: Tensor, turn: int) -> Tensor:
        first = self.first
        return torch.cat((slots[:, :first], slots[:, first:].roll(turn, 1)), 1)


class WindowAttention(SoftmaxAttention):
    """Causal multi-head softmax attention in a sliding window. [B, T, D] to [B, T, D].

    window: number of last tokens that are seen, the newest included.
    first: number of first tokens that are always seen.
    log_decay: as for `SoftmaxAttention`.
    """

    splits = False

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        window: int = 128,
        first: int = 1,
        log_decay: Sequence[float] | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__(d_model, n_heads, log_decay=log_decay, bias=bias)
        whole("window", window)
        whole("first", first, 0)
        self.window, self.first = window, first

    def mixed(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """o of `widened` q, k, v, projected: [B, T, D]."""
        scale = self.head_width**-0.5
        o = window_attention(q, k, v, window=self.window, first=self.first, scale=scale)
        return self.out(o[..., : self.head_width])

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. The state holds 2 (first + window) D numbers, always.

        With decay, keys and values are a few features wider.
        """

        def many(cache: RingCache, x: Tensor) -> tuple[RingCache, Tensor]:
            q, k, v = self.widened(x, cache.ticks)
            cache, k, v = cache.extended(k, v)
            return cache, self.mixed(q.to(k.dtype), k, v)

        def step(cache: RingCache, x: Tensor) -> tuple[RingCache, Tensor]:
            q, k, v = self.widened(x.unsqueeze(1), cache.ticks)
            cache = cache.pushed(k, v)
            k, v = cache.held
            o = softmax_attention(q.to(k.dtype), k, v, scale=self.head_width**-0.5)
            return cache, self.out(o[..., : self.head_width]).squeeze(1)

        weight = self.c_proj.weight
        features = self.widened(weight.new_zeros(0, 1, weight.shape[1]), 0)[1].shape[-1]
        start = RingCache.empty(
            weight, self.n_heads, features, window=self.window, first=self.first
        )
        return StateMachine(start, step, many)

    def seen(self, place: Tensor) -> Tensor:
        """Mask of the tokens that each token sees [..., T, T], by their positions [..., T]."""
        distance, place = place.unsqueeze(-1) - place.unsqueeze(-2), place.unsqueeze(-2)
        return (distance >= 0) & ((distance < self.window) | (place < self.first))

    def sequence_flops(self, T: int) -> int:
        early = min(T, self.first + self.window)
        return super().sequence_flops(early) + (T - early) * self.tick_flops(T + 1)

    def tick_flops(self, t: int) -> int:
        return super().tick_flops(min(t, self.first + self.window))

    def state_numbers(self, t: int) -> int:
        return 2 * (self.first + self.window) * self.n_heads * self.head_width
