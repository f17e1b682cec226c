"""GPT-2's attention layer without the exponential. As a machine its state never grows."""

from __future__ import annotations

from torch import Tensor

from ..attention import EPS, LinearState, accumulator_dtype, linear_attention
from ..feature_maps import FEATURE_MAPS
from ..machines import StateMachine
from ..reference import recurrent_step
from .multihead import MultiHead


class LinearAttention(MultiHead):
    """Causal multi-head linear attention, Katharopoulos et al. (2020). [B, T, D] to [B, T, D].

    feature_map: a name in `lsa.feature_maps.FEATURE_MAPS`, applied to queries and keys.
    mode, chunk_size, normalize: see `lsa.linear_attention`.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        feature_map: str = "elu_plus_one",
        mode: str = "chunked",
        chunk_size: int | None = None,
        normalize: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__(d_model, n_heads, bias=bias)
        if feature_map not in FEATURE_MAPS:
            raise ValueError(
                f"feature_map: expected one of {', '.join(FEATURE_MAPS)}, got {feature_map!r}"
            )
        self.feature_map = FEATURE_MAPS[feature_map]
        self.mode, self.chunk_size, self.normalize = mode, chunk_size, normalize

    def features(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x [..., D] to phi(q), phi(k) [..., H, K] and v [..., H, V]."""
        q, k, v = self.qkv(x)
        return self.feature_map(q), self.feature_map(k), v

    def attend(self, x: Tensor, state: LinearState | None) -> tuple[Tensor, LinearState]:
        """x [B, T, D] and the state before it, to y [B, T, D] and the state after it."""
        o, state = linear_attention(
            *self.features(x),
            mode=self.mode,
            chunk_size=self.chunk_size,
            normalize=self.normalize,
            initial_state=state,
            return_state=True,
        )
        return self.out(o), state

    def forward(self, x: Tensor) -> Tensor:
        return self.attend(x, None)[0]

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]. The state holds K V + K numbers a head, always."""

        def step(state: LinearState, x: Tensor) -> tuple[LinearState, Tensor]:
            q, k, v = self.features(x)
            dtype = accumulator_dtype(q.dtype)
            o, S, z = recurrent_step(
                (q * self.head_width**-0.5).to(dtype),
                k.to(dtype),
                v.to(dtype),
                *state,
                EPS if self.normalize else None,
            )
            return LinearState(S, z), self.out(o.to(v.dtype))

        def many(state: LinearState, x: Tensor) -> tuple[LinearState, Tensor]:
            B = x.shape[0]
            y, state = self.attend(x, LinearState(*(s.expand(B, *s.shape[1:]) for s in state)))
            return state, y

        weight = self.c_attn.weight
        dtype = accumulator_dtype(weight.dtype)
        S = weight.new_zeros(1, self.n_heads, self.head_width, self.head_width, dtype=dtype)
        return StateMachine(LinearState(S, S[..., 0]), step, many)
