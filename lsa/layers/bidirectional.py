"""Softmax attention in which every position sees every other: a sequence transformation only."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from .multihead import MultiHead


class BidirectionalAttention(MultiHead):
    """Multi-head softmax attention without a mask, Vaswani et al. (2017). [B, T, D] to [B, T, D].

    It has no `machine()`: a machine answers for token i before token i + 1 arrives, and here the
    answer for token i depends on token i + 1.
    """

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads.transpose(1, 2) for heads in self.qkv(x))
        if x.shape[1] == 0:
            return self.out(v.transpose(1, 2))
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2))
