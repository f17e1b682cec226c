"""Softmax attention, and GPT-2's layer of it. Its machine's state is a KV cache, which grows."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ..attention.api import check_qkv, checked_scale
from ..attention.call import accumulator_dtype
from ..compat import register_state
from ..documents import document_starts, places, same_document
from ..machines import StateMachine, single
from ..parallel import Ranks, attention_by_heads
from .fixed import checked_decays
from .multihead import MultiHead

# Held where a buffer's room is given out: two threads may continue one text.
WRITING = threading.Lock()


def softmax_attention(q: Tensor, k: Tensor, v: Tensor, *, scale: float | None = None) -> Tensor:
    """Causal softmax attention, o_i = sum_{j<=i} softmax_j(scale q_i·k_j) v_j.

    Vaswani et al. (2017), eq. 1, by torch's scaled_dot_product_attention.

    q: [B, T, H, K]. k: [B, L, H, K] and v: [B, L, H, V] with L >= T. If there are more keys than
    queries, the queries are the last T positions (a KV cache holds the others).
    scale: above 0, and finite; K ** -0.5 by default.

    Returns o [B, T, H, V]. Raises ValueError for shapes, dtypes, devices or a scale that do not
    fit.
    """
    check_qkv(q, k, v, longer_keys=True)
    scale = checked_scale(scale, q.dtype)
    T, L = q.shape[1], k.shape[1]
    if T == 0:
        return q[..., :1] * v[:, :0]
    # A single query sees every key; with equally many queries and keys the mask is causal. Only a
    # block of new queries over an older cache needs an explicit mask.
    mask, is_causal = None, False
    if 1 < T < L:
        mask = torch.ones(T, L, dtype=torch.bool, device=q.device).tril(L - T)
    elif T > 1:  # two branches: torch takes no symbol for is_causal, and torch.compile guards on T
        is_causal = True
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=is_causal, scale=scale)
    return o.transpose(1, 2)


class KVBuffer:
    """Memory for keys and values, [B, H, capacity, K]; `filled` positions are in use."""

    def __init__(self, k: Tensor, v: Tensor, capacity: int) -> None:
        self.k, self.v = (x.new_empty(*x.shape[:2], capacity, x.shape[3]) for x in (k, v))
        self.filled = 0

    def write(self, k: Tensor, v: Tensor) -> None:
        end = self.filled + k.shape[2]
        self.k[:, :, self.filled : end] = k
        self.v[:, :, self.filled : end] = v
        self.filled = end

    def is_sealed(self) -> bool:
        """Whether no tick may write here: autograd has read it, or it belongs to inference mode.

        torch.compile cannot ask for the mode. Its own graphs refuse tensors of another one.
        """
        if torch.compiler.is_compiling():
            foreign = False
        else:
            foreign = self.k.is_inference() and not torch.is_inference_mode_enabled()
        return foreign or self.k.requires_grad or self.v.requires_grad


@dataclass(frozen=True)
class KVCache:
    """The keys and values of the tokens so far: a state that is never changed, only extended.

    Extending the newest cache writes into spare memory in place, so a tick costs O(1) copies on
    average. Extending an older one (two continuations of one text) copies first.

    room: tokens for which an empty cache allocates memory. Up to there nothing is copied, and keys
    and values keep their addresses, as a CUDA graph requires.

    torch's functions of trees, such as `tree_map`, see keys and values [B, H, length, K or V]. A
    cache that they return has no spare memory, so extending it copies.
    """

    buffer: KVBuffer | None = None
    length: int = 0
    room: int = 16

    @property
    def k(self) -> Tensor:
        """Keys [B, length, H, K], a view. Raises ValueError if the cache is empty."""
        return self._taken().k[:, :, : self.length].transpose(1, 2)

    @property
    def v(self) -> Tensor:
        """Values [B, length, H, V], a view. Raises ValueError if the cache is empty."""
        return self._taken().v[:, :, : self.length].transpose(1, 2)

    def _taken(self) -> KVBuffer:
        if self.buffer is None:
            raise ValueError("cache: expected keys and values, got an empty one")
        return self.buffer

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values held, without spare memory."""
        return self.k.nbytes + self.v.nbytes if self.buffer else 0

    def rewound(self) -> KVCache:
        """This cache, whose next token is written in place, even over another token.

        A longer cache that shares its memory must not be read afterwards.
        """
        if self.buffer is not None:
            self.buffer.filled = self.length
        return self

    def extend(self, k: Tensor, v: Tensor) -> KVCache:
        """The cache with k [B, n, H, K] and v [B, n, H, V] appended."""
        if torch.compiler.is_compiling():
            return self._extended(k, v)
        with WRITING:
            return self._extended(k, v)

    def _extended(self, k: Tensor, v: Tensor) -> KVCache:
        k, v = k.transpose(1, 2), v.transpose(1, 2)
        length = self.length + k.shape[2]
        old = buffer = self.buffer
        # Autograd keeps the tensors that were read, so a recorded tick must not write to them.
        recorded = torch.is_grad_enabled() and (k.requires_grad or v.requires_grad)
        if (
            buffer is None
            or buffer.k.shape[2] < length
            or buffer.filled != self.length
            or recorded
            or buffer.is_sealed()
        ):
            buffer = KVBuffer(k, v, capacity=max(self.room, 2 * length))
            if old is not None and self.length:
                buffer.write(old.k[:, :, : self.length], old.v[:, :, : self.length])
        buffer.write(k, v)
        return KVCache(buffer, length)


def _flatten(cache: KVCache) -> tuple[list, tuple[int, int]]:
    """Keys and values of a cache, without spare memory; and its length and room."""
    parts = [] if cache.buffer is None else [cache.buffer.k, cache.buffer.v]
    parts = [x[:, :, : cache.length] if isinstance(x, Tensor) else x for x in parts]
    return parts, (cache.length, cache.room)


def _unflatten(parts: Iterable, rest: tuple[int, int]) -> KVCache:
    """A cache of such parts. They may be anything: a tree of shapes has the form of its tensors."""
    length, room = rest
    parts = tuple(parts)
    if not parts:
        return KVCache(None, length, room)
    buffer = KVBuffer.__new__(KVBuffer)
    buffer.k, buffer.v = parts
    if isinstance(buffer.k, Tensor) and buffer.k.dim() == 4:  # another number of tokens, too
        length = buffer.k.shape[2]
    buffer.filled = length
    return KVCache(buffer, length, room)


register_state(KVCache, _flatten, _unflatten, ("k", "v"))

POSITION_BASE = 64


def positions_as_features(
    q: Tensor, k: Tensor, v: Tensor, slope: Tensor, start: int
) -> tuple[Tensor, Tensor, Tensor]:
    """q, k, v with extra features, so that scale q·k gains slope * (position of k).

    q, k [B, T, H, K], v [B, T, H, V], slope [H], start: the position of the first key. Softmax does
    not change if all scores of a query change by the same number. So slope * j has the effect of
    ALiBi's penalty -slope * (i - j) (Press et al., 2022), without a mask. A position is written as
    three digits to the base 64, which stay exact in bf16 up to a million. The last digit's factor
    64^2 is split between q and k, because float16 ends at 65,504. So a slope there ends at
    1023 / sqrt(K). Widths are padded to a multiple of 8, which fused GPU kernels require.
    """
    B, T, H, K = q.shape
    position = torch.arange(start, start + T, device=q.device)
    b = POSITION_BASE
    digits = torch.stack((position % b, position // b % b, position // b**2 * b), -1)
    slope = slope.clamp(max=min(torch.finfo(x.dtype).max for x in (q, slope)) / (b * K**0.5))
    weights = slope.unsqueeze(-1) * K**0.5 * torch.tensor((1, b, b), device=q.device)  # [H, digits]
    extra = -(-(K + digits.shape[-1]) // 8) * 8 - K
    q = torch.cat((q, weights.to(q.dtype).expand(B, T, H, -1)), -1)
    k = torch.cat((k, digits.to(k.dtype)[:, None].expand(B, T, H, -1)), -1)
    q, k = (F.pad(x, (0, extra - digits.shape[-1])) for x in (q, k))
    return q, k, F.pad(v, (0, extra))


class SoftmaxAttention(MultiHead):
    """Causal multi-head softmax attention, Vaswani et al. (2017). [B, T, D] to [B, T, D].

    log_decay: one number a head, at most 0, or None. Weights are multiplied by exp(log_decay) for
        each token of distance, before they are normalised: ALiBi (Press et al., 2022), and what
        `lsa.linear_attention` calls by the same name.
    """

    packs = splits = True

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        log_decay: Sequence[float] | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__(d_model, n_heads, bias=bias)
        self.fix("log_decay", checked_decays(log_decay, n_heads))

    def widened(self, x: Tensor, start: int) -> tuple[Tensor, Tensor, Tensor]:
        """q, k, v of x [B, T, D] at positions start, ..., with the features of the decay."""
        q, k, v = self.qkv(x)
        if self.log_decay is None:
            return q, k, v
        return positions_as_features(q, k, v, -self.log_decay, start)

    def mixed(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """o of `widened` q, k, v, projected: [B, T, D]."""
        o = softmax_attention(q, k, v, scale=self.head_width**-0.5)
        return self.out(o[..., : self.head_width])

    def forward(
        self, x: Tensor, cu_seqlens: Tensor | None = None, ranks: Ranks | None = None
    ) -> Tensor:
        if ranks is not None:
            return self._over_ranks(x, cu_seqlens, ranks)
        q, k, v = self.widened(x, 0)
        if cu_seqlens is None or not x.shape[1]:
            return self.mixed(q, k, v)
        starts = document_starts(cu_seqlens, x)
        mask = (self.seen(places(starts)) & same_document(starts)).unsqueeze(1)  # [B, 1, T, T]
        q, k, v = (heads.transpose(1, 2) for heads in (q, k, v))
        o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=self.head_width**-0.5)
        return self.out(o.transpose(1, 2)[..., : self.head_width])

    def _over_ranks(self, x: Tensor, cu_seqlens: Tensor | None, ranks: Ranks) -> Tensor:
        """The layer on this rank's part of x, by heads: each rank attends with some of them."""
        if cu_seqlens is not None:
            raise ValueError("cu_seqlens: expected None with softmax attention over ranks")
        start = 0
        if self.log_decay is not None:
            start = sum(ranks.lengths(x.shape[1], x.device)[: ranks.rank])
        q, k, v = self.widened(x, start)
        o = attention_by_heads(q, k, v, ranks=ranks, scale=self.head_width**-0.5)
        return self.out(o[..., : self.head_width])

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. After t ticks the state holds 2 t D numbers.

        With decay, keys and values are a few features wider.
        """

        def many(cache: KVCache, x: Tensor) -> tuple[KVCache, Tensor]:
            q, k, v = self.widened(x, cache.length)
            if x.shape[1] == 0:
                return cache, self.mixed(q, k, v)
            cache = cache.extend(k, v)
            # Autocast may have ended or begun since.
            k, v = (kept.to(q.dtype) for kept in (cache.k, cache.v))
            return cache, self.mixed(q, k, v)

        return StateMachine(KVCache(), single(many), many)

    def weights(self, x: Tensor) -> Tensor:
        """Attention weights of each token of x [B, T, D]: [B, H, T, T], rows that sum to one."""
        dtype = accumulator_dtype(x.dtype)  # a score holds a position: bf16 would round it
        q, k, _ = (heads.transpose(1, 2).to(dtype) for heads in self.widened(x, 0))
        scores = q @ k.transpose(-1, -2) * self.head_width**-0.5
        seen = self.seen(torch.arange(x.shape[1], device=x.device))
        return scores.masked_fill(~seen, float("-inf")).softmax(-1)

    def seen(self, place: Tensor) -> Tensor:
        """Mask of the tokens that each token sees [..., T, T], by their positions [..., T]."""
        return place.unsqueeze(-1) >= place.unsqueeze(-2)

    def sequence_flops(self, T: int) -> int:
        return self.n_heads * T * (T + 1) * 2 * self.head_width

    def tick_flops(self, t: int) -> int:
        return 4 * t * self.n_heads * self.head_width

    def state_numbers(self, t: int) -> int:
        return 2 * t * self.n_heads * self.head_width
