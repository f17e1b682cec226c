"""Ring attention (Liu et al., 2023) in plain torch: softmax over ranks; keys and values travel.

It shows the cost of sequence parallelism without a state of constant size; its bytes are the
baseline. On GPUs torch has its own, `context_parallel`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..attention import api
from ..checks import instance
from .collectives import arrived, pass_on
from .ranks import Ranks


def ring_attention(
    q: Tensor, k: Tensor, v: Tensor, *, ranks: Ranks, scale: float | None = None
) -> Tensor:
    """Causal softmax attention of a sequence over ranks. q, k [B, T, H, K], v [B, T, H, V].

    Each rank's keys and values go around once: after n of P - 1 steps rank r has those of rank
    r - n, and attends to them if they are earlier. Returns o [B, T, H, V] of this rank's part.
    """
    api.check_qkv(q, k, v)
    instance("ranks", ranks, Ranks)
    scale = api.checked_scale(scale, q.dtype)
    (B, T, H, K), r, P = q.shape, ranks.rank, ranks.size
    lengths = ranks.lengths(T, q.device)
    q, kv = (
        (q * (K**-0.5 if scale is None else scale)).transpose(1, 2),
        torch.cat((k, v), -1).transpose(1, 2),
    )
    o, total = _block(q, kv, causal=True)
    for n in range(1, P):
        sender, tokens = (r - 1) % P, lengths[(r - n) % P]
        size = B * H * tokens * kv.shape[-1]
        got = arrived(pass_on(kv.flatten(), (r + 1) % P, {sender: size}, P, ranks.name))
        kv = got.view(B, H, tokens, kv.shape[-1])
        if r >= n and tokens and T:
            other, more = _block(q, kv, causal=False)
            both = torch.logaddexp(total, more)
            o = o * (total - both).exp() + other * (more - both).exp()
            total = both
    # Zero, but every rank's gradient then goes through every exchange.
    return (o + kv.flatten()[:0].sum()).transpose(1, 2)


def _block(q: Tensor, kv: Tensor, *, causal: bool) -> tuple[Tensor, Tensor]:
    """Softmax over one block of keys, and the log of its normaliser [B, H, T, 1]."""
    k, v = kv.tensor_split([q.shape[-1]], -1)
    scores = q @ k.transpose(-1, -2)
    if causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(future, -math.inf)
    if not q.shape[2]:
        return scores @ v, q[..., :1]
    return scores.softmax(-1) @ v, scores.logsumexp(-1, keepdim=True)
