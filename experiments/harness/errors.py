"""How far results are from exact ones."""

from __future__ import annotations

from torch import Tensor


def relative_rms(found: Tensor, exact: Tensor) -> float:
    """Root mean square of the error over that of the exact values, which are float64."""
    error = (found.double() - exact).square().mean().sqrt()
    return (error / exact.square().mean().sqrt()).item()
