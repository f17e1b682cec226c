"""Linear attention in which every position sees every other: O(T d^2), and no state machine."""

from __future__ import annotations

from torch import Tensor

from ..attention.api import check_qkv
from ..attention.call import EPS, accumulator_dtype, without_autocast
from ..attention.feature_maps import FEATURE_MAPS
from ..checks import finite, one_of
from .multihead import MultiHead


def bidirectional_linear_attention(q: Tensor, k: Tensor, v: Tensor, *, eps: float = EPS) -> Tensor:
    """Linear attention without a mask: o_i = sum_j (q_i·k_j) v_j / (sum_j q_i·k_j + eps), all j.

    Katharopoulos et al. (2020), eqs. 4-6: (q k^T) v = q (k^T v), so the T x T products are never
    formed; 4 T K V FLOPs a head instead of 2 T^2 (K + V).

    q, k: features [B, T, H, K] whose products are not negative. v: [B, T, H, V].
    Returns o [B, T, H, V] in the dtype of v; sums are kept in float32, or in float64 for float64.
    Raises ValueError for shapes, dtypes or devices that do not fit, and for a negative eps.
    """
    check_qkv(q, k, v)
    eps = finite("eps", eps, "a finite number, 0 or more", low=0)
    dtype, narrow = accumulator_dtype(q.dtype), v.dtype
    with without_autocast(q):
        q, k, v = (x.transpose(1, 2).to(dtype) for x in (q, k, v))
        # All queries share one state: the causal layer's S and z after the last token.
        S, z = k.transpose(-1, -2) @ v, k.sum(-2, keepdim=True)
        o = (q @ S) / (q @ z.transpose(-1, -2) + eps)
    return o.transpose(1, 2).to(narrow)


class BidirectionalLinearAttention(MultiHead):
    """Multi-head linear attention without a mask, Katharopoulos et al. (2020), of x [B, T, D].

    feature_map: a name in `lsa.attention.feature_maps.FEATURE_MAPS`, on queries and keys.

    Like `BidirectionalAttention` it has no `machine()`: its answer for the first token needs the
    last.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        feature_map: str = "elu_plus_one",
        bias: bool = True,
    ) -> None:
        super().__init__(d_model, n_heads, bias=bias)
        one_of("feature_map", feature_map, FEATURE_MAPS)
        self.feature_map = feature_map

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads.to(accumulator_dtype(x.dtype)) for heads in self.qkv(x))
        phi = FEATURE_MAPS[self.feature_map]
        return self.out(bidirectional_linear_attention(phi(q), phi(k), v).to(x.dtype))
