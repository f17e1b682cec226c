"""Linear attention: the operation, its reference definition and its kernels."""

from .api import EPS, MODES, LinearState, linear_attention
from .dispatch import backends

__all__ = ["EPS", "MODES", "LinearState", "backends", "linear_attention"]
