"""Feature maps for a state that replaces softmax: scaled, expanded or learned."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ..attention.feature_maps import elu_plus_one
from ..checks import one_of, whole
from .power import power_features
from .taylor import taylor_features

STATE_MAPS = ("elu_plus_one", "hedgehog", "taylor", "power")


class StateFeatures(nn.Module):
    """phi(q) and phi(k) [B, T, H, F] of q and k [B, T, H, K]. No product of them is negative.

    feature_map: "elu_plus_one"; "taylor", the terms of exp(q·k / sqrt(K)) up to `degree`; "power",
        the features of (q·k / sqrt(K))^degree; or "hedgehog". Hedgehog is learned: the softmax of W
        x and of -W x, with a W for q and one for k in each head (Zhang et al., 2024 and 2025).
    degree: of "taylor" and "power", even.
    features: F of "hedgehog", even; 2 K by default.
    """

    def __init__(
        self,
        n_heads: int,
        head_width: int,
        *,
        feature_map: str = "hedgehog",
        degree: int = 2,
        features: int | None = None,
    ) -> None:
        super().__init__()
        one_of("feature_map", feature_map, STATE_MAPS)
        whole("degree", degree, 2)
        if degree % 2:
            raise ValueError(f"degree: expected an even number from 2, got {degree}")
        if features is not None:
            whole("features", features, 2)
            if features % 2 or feature_map != "hedgehog":
                expected = "an even number, of hedgehog alone"
                raise ValueError(f"features: expected {expected}, got {features}")
        self.feature_map, self.degree, self.head_width = feature_map, degree, head_width
        K = head_width
        self.n_features = {
            "elu_plus_one": K,
            "hedgehog": features or 2 * K,
            "taylor": math.comb(K + degree, degree),
            "power": math.comb(K + degree - 1, degree),
        }[feature_map]
        if feature_map == "hedgehog":
            rows = self.n_features // 2
            # The first K features start as the entries of x, further ones in random directions.
            start = torch.randn(2, n_heads, rows, K) * K**-0.5
            start[:, :, :K] = torch.eye(K)[:rows]
            self.W = nn.Parameter(start)

    def _mapped(self, x: Tensor, side: int) -> Tensor:
        if self.feature_map == "elu_plus_one":
            return elu_plus_one(x)
        if self.feature_map == "hedgehog":
            x = torch.einsum("bthk,hfk->bthf", x, self.W[side].to(x.dtype))
            return torch.cat((x.softmax(-1), (-x).softmax(-1)), -1)
        mapped = taylor_features if self.feature_map == "taylor" else power_features
        return mapped(x * self.head_width**-0.25, self.degree)

    def of_queries(self, q: Tensor) -> Tensor:
        return self._mapped(q, 0)

    def of_keys(self, k: Tensor) -> Tensor:
        return self._mapped(k, 1)

    def flops(self) -> int:
        """FLOPs of the products with W, for a query and a key of one head."""
        return 2 * self.n_features * self.head_width if self.feature_map == "hedgehog" else 0
