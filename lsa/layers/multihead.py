"""What every multi-head attention layer shares: the projections before and after the mixing."""

from __future__ import annotations

from torch import Tensor, nn


class MultiHead(nn.Module):
    """x [..., D] to q, k, v [..., H, D / H] and back. Parameter names are GPT-2's."""

    def __init__(self, d_model: int, n_heads: int, *, bias: bool = True) -> None:
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"n_heads: expected a divisor of d_model {d_model}, got {n_heads}")
        self.n_heads = n_heads
        self.head_width = d_model // n_heads
        self.c_attn = nn.Linear(d_model, 3 * d_model, bias=bias)
        self.c_proj = nn.Linear(d_model, d_model, bias=bias)

    def qkv(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x [..., D] to q, k, v, each [..., H, D / H]."""
        return self.c_attn(x).unflatten(-1, (3, self.n_heads, self.head_width)).unbind(-3)

    def out(self, o: Tensor) -> Tensor:
        """o [..., H, D / H] to [..., D]."""
        return self.c_proj(o.flatten(-2))
