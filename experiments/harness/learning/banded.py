"""Softmax attention whose heads all fade, without the weights that are too small to be seen.

A control asks for it: near-sighted heads alone on a text of 16,384 bytes, where nearly all of the
quadratic work would go into weights of zero.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lsa.gpt import GPT
from lsa.layers.softmax import SoftmaxAttention


def banded(q: Tensor, k: Tensor, v: Tensor, *, window: int, scale: float) -> Tensor:
    """Softmax attention to at least the last `window` tokens: sliding blocks of that many.

    q, k, v: [B, T, H, K or V]. Each block of queries sees itself, causally, and of the block
    before the last tokens that make up a window. Beltagy et al. (2020), section 3.1. Returns
    o [B, T, H, V].
    """
    T = q.shape[1]
    filled = -T % window
    q, k, v = (F.pad(x.transpose(1, 2), (0, 0, 0, filled)) for x in (q, k, v))
    first = F.scaled_dot_product_attention(
        q[:, :, :window], k[:, :, :window], v[:, :, :window], is_causal=True, scale=scale
    )
    if q.shape[2] == window:
        return first[:, :, :T].transpose(1, 2)
    B, H, n = q.shape[0], q.shape[1], q.shape[2] // window - 1

    def blocks(x: Tensor) -> Tensor:
        return x.unflatten(2, (n, window)).flatten(1, 2)  # [B, H n, window, K]

    def with_before(x: Tensor) -> Tensor:
        return torch.cat((blocks(x[:, :, :-window]), blocks(x[:, :, window:])), 2)

    seen = torch.ones(window, 2 * window, dtype=torch.bool, device=q.device)
    seen = seen.triu(1).tril(window)
    rest = F.scaled_dot_product_attention(
        blocks(q[:, :, window:]), with_before(k), with_before(v), attn_mask=seen, scale=scale
    )
    o = torch.cat((first, rest.view(B, H, n * window, -1)), 2)
    return o[:, :, :T].transpose(1, 2)


def near_sighted(model: GPT, window: int) -> None:
    """Have every layer attend in windows. Every head must fade by 2^-100 within one.

    What is left out would then have to score 69 nats above everything near to be seen at all.
    Raises ValueError for a layer that is no softmax attention, or whose heads do not fade so fast.
    """
    for block in model.blocks:
        layer = block.attn
        if not isinstance(layer, SoftmaxAttention) or layer.log_decay is None:
            raise ValueError(f"window: expected softmax attention whose heads fade, got {layer}")
        if (slowest := float(layer.log_decay.max())) * window > -100 * log(2):
            raise ValueError(
                f"window: expected one in which every head fades by 2^-100, got {window} tokens, "
                f"and a head that fades by exp({slowest:g}) at each"
            )
        attends: Any = layer  # a method of this layer alone is replaced
        attends.mixed = _mixed(layer, window)


def _mixed(layer: SoftmaxAttention, window: int) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    def mixed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        o = banded(q, k, v, window=window, scale=layer.head_width**-0.5)
        return layer.out(o[..., : layer.head_width])

    return mixed
