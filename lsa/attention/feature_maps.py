"""Feature maps: what linear attention applies to queries and keys instead of the exponential.

Each takes [..., K] and returns [..., K']. Those in `SIGNED` may give negative entries, and so
negative weights phi(q)·phi(k): use them without the normaliser. The others do not. All of these but
`relu` give positive entries, so that the normaliser cannot vanish.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def elu_plus_one(x: Tensor) -> Tensor:
    """elu(x) + 1: x + 1 above zero, exp(x) below. Katharopoulos et al. (2020), eq. 7."""
    return F.elu(x) + 1


def relu(x: Tensor) -> Tensor:
    """max(x, 0). Cheap, but a query whose entries are all negative sees nothing."""
    return F.relu(x)


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)): positive everywhere, near x + log 2 around zero."""
    return F.softplus(x)


def exp(x: Tensor) -> Tensor:
    """exp(x), feature by feature. It overflows float32 from x = 88.8, float16 from 11.1."""
    return torch.exp(x)


def identity(x: Tensor) -> Tensor:
    """x itself: the exponential removed without a replacement. Weights may be negative."""
    return x


def elu(x: Tensor) -> Tensor:
    """x above zero, exp(x) - 1 below."""
    return F.elu(x)


def silu(x: Tensor) -> Tensor:
    """x sigmoid(x), of both signs, at least -0.28: the map of DeltaNet, Yang et al. (2024)."""
    return F.silu(x)


FEATURE_MAPS = {f.__name__: f for f in (elu_plus_one, relu, softplus, exp, identity, elu, silu)}
SIGNED = ("identity", "elu", "silu")


def feature_slope(x: Tensor, feature_map: str) -> Tensor:
    """The derivative of a fused feature map, itself differentiable."""
    if feature_map == "elu_plus_one":
        return x.clamp(max=0).exp()
    if feature_map == "relu":
        return (x > 0).to(x.dtype)
    return torch.sigmoid(x) if feature_map == "softplus" else torch.ones_like(x)
