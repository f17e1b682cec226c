"""GPT-2's attention layer without the exponential. Its machine's state has a fixed size."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from ..attention.api import LONGEST_CHUNK, MODES, LinearState, linear_attention
from ..attention.call import EPS, accumulator_dtype
from ..attention.counts import mode_flops
from ..attention.feature_maps import FEATURE_MAPS
from ..checks import boolean, one_of, whole
from ..documents import document_starts
from ..machines import StateMachine, single
from ..parallel import Ranks, attention
from .fixed import checked_decays
from .multihead import MultiHead


class LinearAttention(MultiHead):
    """Causal multi-head linear attention, Katharopoulos et al. (2020). [B, T, D] to [B, T, D].

    feature_map: a name in `lsa.attention.feature_maps.FEATURE_MAPS`, on queries and keys.
    mode, chunk_size, normalize: see `lsa.linear_attention`.
    output_norm: scale each head's output to root mean square 1 instead of dividing by the
        normaliser, as in TransNormer, Qin et al. (2022). Both together are refused: the normaliser
        would cancel.
    log_decay: one number a head, at most 0: the log of its decay at each token; or None.
    """

    packs = splits = True

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        feature_map: str = "elu_plus_one",
        mode: str = "chunked",
        chunk_size: int | None = None,
        normalize: bool = True,
        output_norm: bool = False,
        log_decay: Sequence[float] | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__(d_model, n_heads, bias=bias)
        one_of("feature_map", feature_map, FEATURE_MAPS)
        one_of("mode", mode, MODES)
        if chunk_size is not None:
            whole("chunk_size", chunk_size, most=LONGEST_CHUNK)
        boolean("normalize", normalize)
        boolean("output_norm", output_norm)
        if normalize and output_norm:
            raise ValueError("normalize: expected False with output_norm, got True")
        self.fix("log_decay", checked_decays(log_decay, n_heads))
        self.feature_map = feature_map
        self.mode, self.chunk_size, self.normalize = mode, chunk_size, normalize
        self.output_norm = output_norm

    def attend(
        self,
        x: Tensor,
        state: LinearState | None,
        mode: str | None = None,
        cu_seqlens: Tensor | None = None,
    ) -> tuple[Tensor, LinearState]:
        """x [B, T, D] and the state before it, to y [B, T, D] and the state after it."""
        q, k, v = self.qkv(x)
        o, state = linear_attention(
            *self.widened(q, k, v),
            mode=mode or self.mode,
            chunk_size=self.chunk_size,
            normalize=self.normalize,
            initial_state=state,
            return_state=True,
            feature_map=self.feature_map,
            log_decay=self.log_decay,
            cu_seqlens=cu_seqlens,
        )
        return self.read(o, v.dtype), state

    def widened(self, *heads: Tensor) -> tuple[Tensor, ...]:
        """The heads, in float32 if they are float16 and the output norm is on.

        A sum without a denominator grows with the text, and passes float16's largest number.
        """
        if self.output_norm:
            return tuple(x.float() if x.dtype == torch.float16 else x for x in heads)
        return heads

    def read(self, o: Tensor, dtype: torch.dtype) -> Tensor:
        """The heads' outputs [..., H, V], projected to [..., D] from the dtype of the heads."""
        if self.output_norm:
            o = F.rms_norm(o, o.shape[-1:], eps=EPS).to(dtype)
        return self.out(o)

    def forward(
        self, x: Tensor, cu_seqlens: Tensor | None = None, ranks: Ranks | None = None
    ) -> Tensor:
        if ranks is None:
            return self.attend(x, None, cu_seqlens=cu_seqlens)[0]
        k, v = self.widened(*(some := self.some(x, 1, 3)))
        log_decay = self.log_decay
        if cu_seqlens is not None:
            log_decay = attention.resets(document_starts(cu_seqlens, x, part=True), k, log_decay)
        shared = {"feature_map": self.feature_map, "log_decay": log_decay}
        exchange = attention.start(k, v, ranks=ranks, **shared)
        (q,) = self.widened(*self.some(x, 0, 1))  # computed while states are exchanged
        options = {"mode": self.mode, "chunk_size": self.chunk_size, "normalize": self.normalize}
        o = attention.read(q, k, v, exchange.before(), **shared, **options)
        return self.read(o, some[1].dtype)

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. The state holds K V + K numbers a head, always."""

        def advance(
            state: LinearState, x: Tensor, mode: str | None = None
        ) -> tuple[LinearState, Tensor]:
            state = LinearState(*(s.expand(x.shape[0], *s.shape[1:]) for s in state))
            y, state = self.attend(x, state, mode)
            return state, y

        S = self.zero_state(self.head_width, self.head_width)
        step = single(partial(advance, mode="recurrent"))
        return StateMachine(LinearState(S, S[..., 0]), step, advance)

    def weights(self, x: Tensor) -> Tensor:
        """Attention weights of each token of x [B, T, D]: [B, H, T, T].

        They come from the feature map and decay. An unnormalised layer's weights are normalised
        here. A row sums to one, or is NaN where a query sees nothing.
        """
        dtype = accumulator_dtype(x.dtype)
        q, k, _ = (heads.transpose(1, 2).to(dtype) for heads in self.qkv(x))
        A = self.faded(FEATURE_MAPS[self.feature_map](q) @ FEATURE_MAPS[self.feature_map](k).mT)
        return A / A.sum(-1, keepdim=True)

    def sequence_flops(self, T: int) -> int:
        flops = mode_flops(self.mode, T, self.head_width, self.head_width, self.chunk_size or 64)
        return self.n_heads * flops

    def tick_flops(self, t: int) -> int:
        return 4 * self.n_heads * self.head_width**2

    def state_numbers(self, t: int) -> int:
        return self.n_heads * self.head_width * (self.head_width + 1)
