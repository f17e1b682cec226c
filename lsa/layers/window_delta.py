"""Softmax attention to the last and the first tokens, and the delta rule for those between.

Weights of a delta rule may be negative, so it has no normaliser to share with softmax. A learned
gate mixes the two outputs.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..attention.api import LinearState, linear_attention
from ..attention.call import without_autocast
from ..checks import boolean
from .delta import delta_rule
from .window_state import WindowAndFar, WindowState


class WindowDeltaMix(WindowAndFar):
    """A `Mix`: softmax attention to the last and the first tokens, a delta rule for those between.

    window, first: as for `WindowAttention`; window may be 0.
    erase: erase the old value of a token's key before the token writes; else its value is added.

    The state's keys and queries are W k and W q at length 1, with a W for k and one for q. The
    write strength is beta = sigmoid(w·k + b). The output is (1 - g) of softmax's and g of the
    state's, with g = sigmoid(w·q + b). All are learned, for each head.
    """

    def __init__(
        self,
        n_heads: int,
        head_width: int,
        *,
        window: int = 64,
        first: int = 1,
        erase: bool = True,
        groups: Sequence[int] | None = None,
    ) -> None:
        super().__init__(n_heads, head_width, window=window, first=first, groups=groups)
        boolean("erase", erase)
        self.erase = erase
        self.W = nn.Parameter(torch.eye(head_width).repeat(2, n_heads, 1, 1))
        self.write, self.read = (nn.Parameter(torch.zeros(n_heads, head_width)) for _ in range(2))
        self.write_bias = nn.Parameter(torch.zeros(n_heads))
        # The state begins with little say: it has learned nothing yet.
        self.read_bias = nn.Parameter(torch.full((n_heads,), -2.0))

    def start(self, like: Tensor) -> WindowState:
        """The state [1, H, K, K]: from keys to values."""
        return self._start(like, self.head_width, self.head_width)

    def _far(
        self, S: Tensor, q: Tensor, k: Tensor, v: Tensor, mode: str
    ) -> tuple[Tensor, Tensor, Tensor]:
        dtype = S.dtype
        with without_autocast(q):
            W, write, read = (x.to(dtype) for x in (self.W, self.write, self.read))
            q, k, v = (x.to(dtype) for x in (q, k, v))
            beta = torch.sigmoid((k * write).sum(-1) + self.write_bias.to(dtype))
            gate = (q * read).sum(-1, keepdim=True) + self.read_bias.to(dtype).unsqueeze(-1)
            unit_q, unit_k = (
                F.normalize(torch.einsum("bthk,hfk->bthf", x, w), dim=-1)
                for x, w in zip((q, k), W, strict=True)
            )
            S = S.expand(len(q), -1, -1, -1)
            if self.erase:
                o, S = delta_rule(unit_q, unit_k, v, beta, torch.zeros_like(beta), S)
            else:
                o, (S, _) = linear_attention(
                    unit_q,
                    unit_k,
                    beta.unsqueeze(-1) * v,
                    mode=mode,
                    normalize=False,
                    scale=1.0,
                    initial_state=LinearState(S, S[..., -1]),
                    return_state=True,
                )
        return S, o, gate

    def _joined(self, o: Tensor, total: Tensor, far_o: Tensor, far_total: Tensor) -> Tensor:
        return o.lerp(far_o, torch.sigmoid(far_total))
