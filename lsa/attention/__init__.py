"""Linear attention: the operation, the definition it is held to, and its kernels."""

from .api import EPS, MODES, LinearState, linear_attention

__all__ = ["EPS", "MODES", "LinearState", "linear_attention"]
