"""Attention-free transformers: a softmax over the past in every channel, and no query in it.

Zhai et al. (2021). With q, k, v = W x, all of D channels, and a learned bias w_tj,

    y_t = sigmoid(q_t) ∘ sum_{j<=t} exp(k_j + w_tj) ∘ v_j / sum_{j<=t} exp(k_j + w_tj).

The weight of token j does not depend on the query, only on its key: as many heads as channels, each
of width one. The three layers differ in w alone:

    full    w_tj learned for every pair             O(T^2 D), and a state that grows
    local   w_tj learned where t - j < s, else 0    O(T s D), s - 1 keys and values, and two sums
    simple  w_tj = 0                                O(T D), two sums

Every sum is stored with its largest exponent (`lsa.scans.exponential`), so no key is too large.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..attention.call import accumulator_dtype
from ..checks import boolean, whole
from ..machines import StateMachine, single
from ..scans import (
    NEVER,
    TREE_FLOPS,
    ExponentialSums,
    exponential_step,
    exponential_sums,
    no_sums,
)
from .layer import ResidualLinear
from .softmax import KVCache

MERGE_FLOPS = 4  # per channel: of the window's sums and the older ones, num and den


class _AFT(nn.Module):
    """The projections shared by all three: x [..., D] to q, k, v [..., D], and back."""

    def __init__(self, d_model: int, *, bias: bool = True) -> None:
        super().__init__()
        whole("d_model", d_model)
        boolean("bias", bias)
        self.d_model = d_model
        self.c_attn = nn.Linear(d_model, 3 * d_model, bias=bias)
        self.c_proj = ResidualLinear(d_model, d_model, bias=bias)

    def qkv(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x [..., D] to q, k, v, each [..., D], in the precision that states are kept in."""
        return self.c_attn(x).to(accumulator_dtype(x.dtype)).chunk(3, dim=-1)

    def out(self, q: Tensor, sums: ExponentialSums, like: Tensor) -> Tensor:
        """The gated quotient, projected, in the dtype of `like`. [..., D]."""
        return self.c_proj((torch.sigmoid(q) * sums.num / sums.den).to(like.dtype))


def _check_length(length: int, max_length: int | None) -> None:
    if max_length is not None and length > max_length:
        raise ValueError(f"x: expected at most max_length {max_length} tokens, got {length}")


class AFTFull(_AFT):
    """AFT with a bias for every pair of positions. [B, T, D] to [B, T, D], T <= max_length.

    max_length: positions that have biases; w is [max_length, max_length]. (The paper's own code
        factors w; the function is the same.)
    chunk_size: queries whose logits among themselves, [B, C, C, D], exist at the same time.

    Keys may have any size. In float32, biases of one row should lie within about 80 of each other.
    A bias that is smaller by more is lost, whatever its key.
    """

    def __init__(
        self, d_model: int, *, max_length: int, chunk_size: int = 16, bias: bool = True
    ) -> None:
        super().__init__(d_model, bias=bias)
        for name, value in (("max_length", max_length), ("chunk_size", chunk_size)):
            whole(name, value)
        self.max_length, self.chunk_size = max_length, chunk_size
        self.w = nn.Parameter(torch.randn(max_length, max_length) * 0.02)

    def sums(self, k: Tensor, v: Tensor, first: int, last: int) -> ExponentialSums:
        """Sums of the queries [first, last) over k, v [B, L, D]; each result is [B, C, D]."""
        w = self.w[first:last, :last].to(k.dtype)
        # 1. The queries' own chunk, by the definition: a logit for every pair and channel.
        logits = k[:, None, first:last] + w[:, first:, None]  # [B, C, C, D]
        future = torch.ones_like(w[:, first:], dtype=torch.bool).triu(1)
        logits = logits.masked_fill(future.unsqueeze(-1), NEVER)
        top = logits.amax(2).detach()
        weights = (logits - top.unsqueeze(2)).exp()
        own = ExponentialSums((weights * v[:, None, first:last]).sum(2), weights.sum(2), top)
        if first == 0:
            return own
        # 2. Everything before the chunk, which all its queries see: exp(k + w) = exp(k) exp(w), a
        #    matrix product; each exponential is taken relative to its largest.
        w_top = w[:, :first].amax(1, keepdim=True).detach()  # [C, 1]
        k_top = k[:, :first].amax(1, keepdim=True).detach()  # [B, 1, D]
        by_position, by_key = (w[:, :first] - w_top).exp(), (k[:, :first] - k_top).exp()
        num, den = by_position @ (by_key * v[:, :first]), by_position @ by_key
        return own.merge(ExponentialSums(num, den, w_top + k_top))

    def attend(self, q: Tensor, k: Tensor, v: Tensor, like: Tensor) -> Tensor:
        """q [B, T, D] for the last T of the positions of k, v [B, L, D]. Returns y [B, T, D]."""
        T, L = q.shape[1], k.shape[1]
        _check_length(L, self.max_length)
        if T == 0:
            return self.c_proj(q.to(like.dtype))
        starts = range(L - T, L, self.chunk_size)
        chunks = [self.sums(k, v, i, min(i + self.chunk_size, L)) for i in starts]
        whole = ExponentialSums(*(torch.cat(x, dim=1) for x in zip(*chunks, strict=True)))
        return self.out(q, whole, like)

    def forward(self, x: Tensor) -> Tensor:
        return self.attend(*self.qkv(x), x)

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. After t ticks the state holds 2 t D numbers.

        w_tj changes with t, so no sum over the past can be reused. The state keeps all keys and
        values, as a KV cache with one head.
        """

        def many(cache: KVCache, x: Tensor) -> tuple[KVCache, Tensor]:
            q, k, v = self.qkv(x)
            if x.shape[1] == 0:
                return cache, self.attend(q, k, v, x)
            cache = cache.extend(k.unsqueeze(2), v.unsqueeze(2))
            return cache, self.attend(q, cache.k.squeeze(2), cache.v.squeeze(2), x)

        return StateMachine(KVCache(), single(many), many, max_length=self.max_length)

    def sequence_flops(self, T: int) -> int:
        return 2 * T * (T + 1) * self.d_model

    def tick_flops(self, t: int) -> int:
        return 4 * t * self.d_model

    def state_numbers(self, t: int) -> int:
        return 2 * t * self.d_model


class LocalState(NamedTuple):
    """The last s - 1 keys and values [B, s - 1, D], the sums over older ones, and ticks so far."""

    k: Tensor
    v: Tensor
    older: ExponentialSums
    ticks: int = 0


class AFTLocal(_AFT):
    """AFT with biases inside a window and none outside. [B, T, D] to [B, T, D].

    Tokens outside the window are still seen, with w = 0: the window bounds the biases, not the
    attention.

    window: s, the tokens that have a bias, the newest included.
    max_length: positions t with biases w_t,t-i of their own; None shares them between positions,
        w_t,t-i = w_i (as the paper's AFT-conv does), and then there is no longest sequence.
    """

    def __init__(
        self, d_model: int, *, window: int = 32, max_length: int | None = None, bias: bool = True
    ) -> None:
        super().__init__(d_model, bias=bias)
        whole("window", window)
        if max_length is not None:
            whole("max_length", max_length)
        self.window, self.max_length = window, max_length
        self.w = nn.Parameter(torch.randn(max_length or 1, window) * 0.02)  # [.., i], i = t - j

    def attend(self, state: LocalState, x: Tensor) -> tuple[LocalState, Tensor]:
        """x [B, T, D], T >= 1, and the state before it, to the state after it and y [B, T, D]."""
        B, T, D = x.shape
        s, start = self.window, state.ticks
        _check_length(start + T, self.max_length)
        q, k, v = self.qkv(x)
        k, v = (
            torch.cat((past.expand(B, -1, -1), now), dim=1)
            for past, now in ((state.k, k), (state.v, v))
        )
        # 1. Tick t sees a window of s keys with their biases, newest last.
        w = (self.w[start : start + T] if self.max_length else self.w).to(k.dtype).flip(-1)
        windows = k.unfold(1, s, 1) + w.unsqueeze(1)  # [B, T, D, s]
        top = windows.amax(-1).detach()
        weights = (windows - top.unsqueeze(-1)).exp()
        near = ExponentialSums((weights * v.unfold(1, s, 1)).sum(-1), weights.sum(-1), top)
        # 2. At tick t the oldest key of the window is that of tick t - s + 1; afterwards it joins
        #    the older ones. The keys before the first tick have weight zero in either place.
        older = exponential_sums(state.older, k[:, :T], v[:, :T])
        y = self.out(q, near.merge(older.before(state.older)), x)
        return LocalState(k[:, T:], v[:, T:], older.last(), start + T), y

    def start(self) -> LocalState:
        """The state before the first tick: placeholder keys of weight zero, and empty sums."""
        weight = self.c_proj.weight
        zero = weight.new_zeros(
            1, self.window - 1, self.d_model, dtype=accumulator_dtype(weight.dtype)
        )
        return LocalState(zero + NEVER, zero, no_sums(zero, self.d_model))

    def forward(self, x: Tensor) -> Tensor:
        return self.attend(self.start(), x)[1] if x.shape[1] else self.c_proj(x)

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. The state holds (2 s + 1) D numbers, always."""

        def many(state: LocalState, x: Tensor) -> tuple[LocalState, Tensor]:
            return self.attend(state, x) if x.shape[1] else (state, self.c_proj(x))

        return StateMachine(self.start(), single(self.attend), many, max_length=self.max_length)

    def sequence_flops(self, T: int) -> int:
        return T * (4 * self.window + TREE_FLOPS + MERGE_FLOPS) * self.d_model

    def tick_flops(self, t: int) -> int:
        return (4 * self.window + 4 + MERGE_FLOPS) * self.d_model

    def state_numbers(self, t: int) -> int:
        return (2 * self.window + 1) * self.d_model


class AFTSimple(_AFT):
    """AFT without biases, in O(T D): y_t = sigmoid(q_t) ∘ sum_j softmax_j(k_j) ∘ v_j, j <= t.

    [B, T, D] to [B, T, D]. The sums over all prefixes are one scan.
    """

    def attend(self, state: ExponentialSums, x: Tensor) -> tuple[ExponentialSums, Tensor]:
        """x [B, T, D] and the sums before it, to the sums after it and y [B, T, D]."""
        if x.shape[1] == 0:
            return state, self.c_proj(x)
        q, k, v = self.qkv(x)
        sums = exponential_sums(state, k, v)
        return sums.last(), self.out(q, sums, x)

    def start(self) -> ExponentialSums:
        """The empty sums, [1, D]."""
        weight = self.c_proj.weight
        return no_sums(weight.to(accumulator_dtype(weight.dtype)), self.d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.attend(self.start(), x)[1]

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. The state: two vectors and their common exponent."""

        def step(state: ExponentialSums, x: Tensor) -> tuple[ExponentialSums, Tensor]:
            q, k, v = self.qkv(x)
            state = exponential_step(state, k, v)
            return state, self.out(q, state, x)

        return StateMachine(self.start(), step, self.attend)

    def sequence_flops(self, T: int) -> int:
        return TREE_FLOPS * T * self.d_model

    def tick_flops(self, t: int) -> int:
        return 4 * self.d_model

    def state_numbers(self, t: int) -> int:
        return 3 * self.d_model
