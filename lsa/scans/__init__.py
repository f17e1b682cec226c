"""Linear recurrences h_t = a_t h_{t-1} + b_t over whole sequences, in steps or in parallel."""

from .exponential import (
    NEVER,
    TREE_FLOPS,
    ExponentialSums,
    exponential_step,
    exponential_sums,
    no_sums,
)
from .reference import SCANS, scan
from .selective import selective_scan, selective_step

__all__ = [
    "NEVER",
    "SCANS",
    "TREE_FLOPS",
    "ExponentialSums",
    "exponential_step",
    "exponential_sums",
    "no_sums",
    "scan",
    "selective_scan",
    "selective_step",
]
