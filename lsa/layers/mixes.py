"""Attention without its projections: q, k, v to o, over a whole sequence or token by token.

A mix serves some query heads of a layer. Several query heads may share one head of keys and values
(grouped-query attention, Ainslie et al., 2023); caches store each shared head once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from ..checks import boolean, whole
from .fixed import Fixed
from .softmax import KVCache, softmax_attention
from .window import RingCache, window_attention


class Mix(Protocol):
    """Attention of q [B, T, H, K] to k, v [B, T, G, K], giving o [B, T, H, K]; G heads serve H."""

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor: ...

    def start(self, like: Tensor) -> Any:
        """The state before the first token; `like` has the dtype and device of the keys."""
        ...

    def many(self, state: Any, q: Tensor, k: Tensor, v: Tensor) -> tuple[Any, Tensor]:
        """The state after T more tokens, and o of these tokens."""
        ...

    def tick(self, state: Any, q: Tensor, k: Tensor, v: Tensor) -> tuple[Any, Tensor]:
        """The same for one token: q, k, v [B, 1, H or G, K]."""
        ...


class GroupedHeads(Fixed):
    """The assignment of key heads to query heads.

    groups: the key head of each query head, counted from 0, in any order; None: each its own.
    """

    groups: Tensor | None
    seats: Tensor | None  # [G, n]: the query heads of each key head, filled up with head 0
    places: Tensor | None  # [H]: of each query head in these, read row by row

    def __init__(self, n_heads: int, groups: Sequence[int] | None = None) -> None:
        super().__init__()
        whole("n_heads", n_heads)
        if groups is not None:
            for group in groups:
                whole("groups", group, 0)
            if len(groups) != n_heads:
                raise ValueError(f"groups: expected one for each of {n_heads}, got {len(groups)}")
            if [*groups] == [*range(n_heads)]:
                groups = None
        self.n_heads, self.n_groups = n_heads, max(groups) + 1 if groups else n_heads
        self.fix("groups", groups)
        seats, places = _seats(groups) if groups else (None, None)
        self.fix("seats", seats)
        self.fix("places", places)

    def spread(self, x: Tensor) -> Tensor:
        """Repeat key heads for their query heads: [B, T, G, K] to [B, T, H, K]."""
        return x if self.groups is None else x[:, :, self.groups]

    def look(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """o [B, 1, H, K] of one token that sees all of k, v [B, L, G, K].

        The query heads of a key head are as many queries to it: a cache is read once, and copied
        for none.
        """
        if self.seats is None:
            return softmax_attention(q, k, v)
        q, k, v = q[:, 0, self.seats], k.transpose(1, 2), v.transpose(1, 2)
        return F.scaled_dot_product_attention(q, k, v).flatten(1, 2)[:, self.places].unsqueeze(1)


def _seats(groups: Sequence[int]) -> tuple[list[list[int]], list[int]]:
    """`seats` and `places` of GroupedHeads."""
    members = [[h for h, g in enumerate(groups) if g == group] for group in range(max(groups) + 1)]
    n = max(map(len, members))
    seats = [heads + [0] * (n - len(heads)) for heads in members]
    return seats, [g * n + members[g].index(h) for h, g in enumerate(groups)]


class SoftmaxMix(GroupedHeads):
    """Softmax attention to all earlier tokens. Its state, the KV cache, grows."""

    def __init__(
        self, n_heads: int, head_width: int, *, groups: Sequence[int] | None = None
    ) -> None:
        super().__init__(n_heads, groups)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return softmax_attention(q, self.spread(k), self.spread(v))

    def start(self, like: Tensor) -> KVCache:
        return KVCache()

    def many(self, state: KVCache, q: Tensor, k: Tensor, v: Tensor) -> tuple[KVCache, Tensor]:
        if k.shape[1] == 0:
            return state, self(q, k, v)
        state = state.extend(k, v)
        k, v = (kept.to(q.dtype) for kept in (state.k, state.v))  # autocast may have ended since
        return state, self(q, k, v)

    def tick(self, state: KVCache, q: Tensor, k: Tensor, v: Tensor) -> tuple[KVCache, Tensor]:
        state = state.extend(k, v)
        return state, self.look(q, state.k.to(q.dtype), state.v.to(q.dtype))


class WindowMix(GroupedHeads):
    """Softmax attention to the last and the first tokens. Its state is a ring of fixed size.

    window, first: as for `window_attention`.
    adjacent: the first tokens count as next to the window, at positions in the ring, as in
        StreamingLLM, Xiao et al. (2024). So no distance exceeds first + window - 1, however long
        the text. Queries are then [B, T, H, 2 K]: rotated for their own position, and for the
        ring's last. Only with rotary positions, in `lsa.llama`.
    """

    LEAST = 1  # tokens of a window

    def __init__(
        self,
        n_heads: int,
        head_width: int,
        *,
        window: int = 64,
        first: int = 1,
        adjacent: bool = False,
        groups: Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_heads, groups)
        whole("window", window, self.LEAST)
        whole("first", first, 0)
        boolean("adjacent", adjacent)
        self.head_width, self.window, self.first = head_width, window, first
        self.adjacent = adjacent

    def _faced(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """q and k such that first tokens meet the second half of q, and others the first.

        k [B, L, G, K] begins with the first tokens.
        """
        if not self.adjacent:
            return q, k
        first, rest = k[:, : self.first], k[:, self.first :]
        K = self.head_width
        # Softmax divides by the root of twice as many features.
        return q * 2**0.5, torch.cat((F.pad(first, (K, 0)), F.pad(rest, (0, K))), 1)

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k = self._faced(q, k)
        k, v = self.spread(k), self.spread(v)
        return window_attention(q, k, v, window=self.window, first=self.first)

    def start(self, like: Tensor) -> RingCache:
        heads, width = self.n_groups, self.head_width
        return RingCache.empty(like, heads, width, window=self.window, first=self.first)

    def many(self, state: RingCache, q: Tensor, k: Tensor, v: Tensor) -> tuple[RingCache, Tensor]:
        state, k, v = state.extended(k, v)
        return state, self(q.to(k.dtype), k, v)

    def tick(self, state: RingCache, q: Tensor, k: Tensor, v: Tensor) -> tuple[RingCache, Tensor]:
        state = state.pushed(k, v)
        k, v = state.held
        return state, self.look(*self._faced(q.to(k.dtype), k), v)
