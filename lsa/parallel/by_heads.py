"""Softmax over ranks by heads (DeepSpeed-Ulysses, Jacobs et al., 2023), as GPT uses it.

Each rank exchanges its part of all heads for all tokens of its heads, attends, and exchanges back.
A ring, or an all-gather of keys and values, moves P / 2 times the bytes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from ..attention import api
from ..checks import instance
from .collectives import all_to_all, arrived
from .ranks import Ranks


def attention_by_heads(
    q: Tensor, k: Tensor, v: Tensor, *, ranks: Ranks, scale: float | None = None
) -> Tensor:
    """Causal softmax attention of a sequence over ranks. q, k [B, T, H, K], v [B, T, H, V].

    There must be at least as many heads as ranks; if ranks do not divide heads, the first ranks
    have one head more. Returns o [B, T, H, V] of this rank's part. Raises ValueError.

    torch's `context_parallel` (torch 2.13, a prototype) is no option here: it replaces attention in
    the whole program until the backward pass has ended, and one layer's call cannot do that. It
    also needs parts of equal lengths, and has no causal attention on CPUs.
    """
    api.check_qkv(q, k, v)
    instance("ranks", ranks, Ranks)
    scale = api.checked_scale(scale, q.dtype)
    (B, T, H, K), V, r, P = q.shape, v.shape[-1], ranks.rank, ranks.size
    if P > H:
        raise ValueError(f"ranks: expected at most one for each of {H} heads, got {P}")
    tokens, heads = ranks.lengths(T, q.device), [H // P + (i < H % P) for i in range(P)]

    def swap(parts: tuple[Tensor, ...], into: list[int]) -> tuple[Tensor, ...]:
        sent = torch.cat([x.flatten() for x in parts])
        out_of = [x.numel() for x in parts]
        return arrived(all_to_all(sent, into, out_of, ranks.name)).split(into)

    width = 2 * K + V
    parts = torch.cat((q, k, v), -1).split(heads, 2)
    got = swap(parts, [B * n * heads[r] * width for n in tokens])
    each = [x.view(B, n, heads[r], width) for x, n in zip(got, tokens, strict=True)]
    q, k, v = torch.cat(each, 1).transpose(1, 2).split((K, K, V), -1)
    o = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale).transpose(1, 2)
    got = swap(o.split(tokens, 1), [B * T * h * V for h in heads])
    return torch.cat([x.view(B, T, h, V) for x, h in zip(got, heads, strict=True)], 2)
