"""Numbers for the chapter on kernels: stored, by formula, and from its own code."""

from __future__ import annotations

from lsa.cost import PEAKS, least_bytes

from ..lib.format import duration, percent
from . import (
    design_bytes,
    host_time,
    interpreted_errors,
    kernel_build,
    kernel_prediction,
    kernel_speed,
)


def of_computed(bound: dict[bool, float]) -> dict[str, object]:
    """Numbers from the chapter's code. bound: on C + d, without and with gradients."""
    memory = PEAKS["H200"].bytes
    return {
        **design_bytes.numbers(),
        **interpreted_errors.numbers(),
        **kernel_speed.numbers(),
        "bound_forward": f"{bound[False]:.0f}",
        "bound_both": f"{bound[True]:.0f}",
        "edge_share": percent((64 + 128) / bound[True]),
        "floor_forward": duration(least_bytes(1, 64, 64) / memory),
        "floor_both": duration(least_bytes(1, 64, 64, training=True) / memory),
    }


def without_a_gpu() -> dict[str, str]:
    """Numbers for the appendix on kernels: compiler, host and prediction."""
    return {**host_time.numbers(), **kernel_build.numbers(), **kernel_prediction.numbers()}
