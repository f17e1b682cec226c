"""Softmax attention, and GPT-2's layer of it: a machine whose state, the KV cache, grows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ..linear_attention.functional import check_qkv
from ..machines import StateMachine
from .multihead import MultiHead


def softmax_attention(q: Tensor, k: Tensor, v: Tensor, *, scale: float | None = None) -> Tensor:
    """Causal softmax attention, o_i = sum_{j<=i} softmax_j(scale q_i·k_j) v_j.

    Vaswani et al. (2017), eq. 1, by torch's scaled_dot_product_attention.

    q: [B, T, H, K]. k: [B, L, H, K] and v: [B, L, H, V] with L >= T: when there are more keys
    than queries, the queries are the last T positions (a KV cache holds the others).
    scale: K ** -0.5 by default.

    Returns o [B, T, H, V]. Raises ValueError for shapes, dtypes or devices that do not fit.
    """
    check_qkv(q, k, v, longer_keys=True)
    T, L = q.shape[1], k.shape[1]
    if T == 0:
        return q[..., :1] * v[:, :0]
    # A single query sees every key; a square problem is plainly causal. Only a block of new
    # queries over an older cache needs its mask written out.
    mask = None
    if 1 < T < L:
        mask = torch.ones(T, L, dtype=torch.bool, device=q.device).tril(L - T)
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    o = F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=mask is None and T == L and T > 1, scale=scale
    )
    return o.transpose(1, 2)


class _Buffer:
    """Room for keys and values, [B, H, capacity, K]; `filled` positions are taken."""

    def __init__(self, k: Tensor, v: Tensor, capacity: int) -> None:
        self.k, self.v = (x.new_empty(*x.shape[:2], capacity, x.shape[3]) for x in (k, v))
        self.filled = 0

    def write(self, k: Tensor, v: Tensor) -> None:
        end = self.filled + k.shape[2]
        self.k[:, :, self.filled : end] = k
        self.v[:, :, self.filled : end] = v
        self.filled = end


@dataclass(frozen=True)
class KVCache:
    """The keys and values of the tokens so far: a state that is never changed, only extended.

    Extending the newest cache writes into spare room in place, so a tick costs O(1) copies on
    average; extending an older one (two continuations of one text) copies first.
    """

    buffer: _Buffer | None = None
    length: int = 0

    @property
    def k(self) -> Tensor:
        """[B, length, H, K], a view."""
        return self.buffer.k[:, :, : self.length].transpose(1, 2)

    @property
    def v(self) -> Tensor:
        """[B, length, H, V], a view."""
        return self.buffer.v[:, :, : self.length].transpose(1, 2)

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values held, spare room not counted."""
        return self.k.nbytes + self.v.nbytes if self.buffer else 0

    def extend(self, k: Tensor, v: Tensor) -> KVCache:
        """The cache with k [B, n, H, K] and v [B, n, H, V] appended."""
        k, v = k.transpose(1, 2), v.transpose(1, 2)
        length = self.length + k.shape[2]
        buffer = self.buffer
        # Autograd keeps what was read, so a recorded tick must not write where one has read.
        recorded = torch.is_grad_enabled() and (k.requires_grad or v.requires_grad)
        full = buffer is None or buffer.k.shape[2] < length
        if full or recorded or buffer.filled != self.length:
            buffer = _Buffer(k, v, capacity=max(16, 2 * length))
            if self.length:
                old = self.buffer
                buffer.write(old.k[:, :, : self.length], old.v[:, :, : self.length])
        buffer.write(k, v)
        return KVCache(buffer, length)


class SoftmaxAttention(MultiHead):
    """Causal multi-head softmax attention, Vaswani et al. (2017). [B, T, D] to [B, T, D]."""

    def forward(self, x: Tensor) -> Tensor:
        return self.out(softmax_attention(*self.qkv(x)))

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. After t ticks the state holds 2 t D numbers."""

        def many(cache: KVCache, x: Tensor) -> tuple[KVCache, Tensor]:
            q, k, v = self.qkv(x)
            if x.shape[1] == 0:
                return cache, self.out(softmax_attention(q, k, v))
            cache = cache.extend(k, v)
            return cache, self.out(softmax_attention(q, cache.k, cache.v))

        def step(cache: KVCache, x: Tensor) -> tuple[KVCache, Tensor]:
            cache, y = many(cache, x.unsqueeze(1))
            return cache, y.squeeze(1)

        return StateMachine(KVCache(), step, many)
