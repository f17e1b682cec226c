"""Base class of the multi-head attention layers: projections before and after the mixing."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..attention.call import accumulator_dtype
from ..checks import boolean, whole
from .fixed import Fixed
from .layer import ResidualLinear


class MultiHead(Fixed):
    """x [..., D] to q, k, v [..., H, D / H] and back. Parameter names are GPT-2's."""

    log_decay: Tensor | None

    def __init__(self, d_model: int, n_heads: int, *, bias: bool = True) -> None:
        super().__init__()
        for name, value in (("d_model", d_model), ("n_heads", n_heads)):
            whole(name, value)
        boolean("bias", bias)
        if d_model % n_heads:
            raise ValueError(f"n_heads: expected a divisor of d_model {d_model}, got {n_heads}")
        self.n_heads = n_heads
        self.head_width = d_model // n_heads
        self.c_attn = nn.Linear(d_model, 3 * d_model, bias=bias)
        self.c_proj = ResidualLinear(d_model, d_model, bias=bias)

    def qkv(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x [..., D] to q, k, v, each [..., H, D / H]."""
        q, k, v = self.c_attn(x).unflatten(-1, (3, self.n_heads, self.head_width)).unbind(-3)
        return q, k, v

    def some(self, x: Tensor, first: int, end: int) -> tuple[Tensor, ...]:
        """Numbers `first` up to `end` of q, k, v (0, 1, 2), without computing the others."""
        width = self.n_heads * self.head_width
        rows, bias = slice(first * width, end * width), self.c_attn.bias
        y = F.linear(x, self.c_attn.weight[rows], None if bias is None else bias[rows])
        return y.unflatten(-1, (end - first, self.n_heads, self.head_width)).unbind(-3)

    def out(self, o: Tensor) -> Tensor:
        """o [..., H, D / H] to [..., D]."""
        return self.c_proj(o.flatten(-2))

    def zero_state(self, features: int, values: int) -> Tensor:
        """S_0 = 0, [1, H, features, values], in the precision that states are kept in."""
        weight = self.c_proj.weight
        dtype = accumulator_dtype(weight.dtype)
        return weight.new_zeros(1, self.n_heads, features, values, dtype=dtype)

    def faded(self, A: Tensor) -> Tensor:
        """Products A [B, H, T, T] of queries and keys, masked and, if the layer decays, decayed.

        The product of tokens i and j is multiplied by exp(log_decay (i - j)).
        """
        if self.log_decay is None:
            return A.tril()
        place = torch.arange(A.shape[-1], device=A.device)
        by_distance = (self.log_decay.to(A.dtype)[:, None] * place).exp()  # [H, T]
        return A.tril() * by_distance[:, (place[:, None] - place).clamp(min=0)]
