"""Bytes that a kernel launch has to move, from its arguments."""

from __future__ import annotations

from typing import Any

import torch


def traffic(arguments: dict[str, Any], name: str) -> float:
    """Bytes a token and head that a launch has to read and write, states not counted."""
    size = {key: x.element_size() for key, x in arguments.items() if isinstance(x, torch.Tensor)}
    kernel = name.split(":")[0]
    K, V = arguments.get("K", 0), arguments.get("V", 0)
    prefixes = 2 * 4 * bool(arguments.get("DECAY"))
    if kernel in ("tile_kernel", "step_kernel"):
        A, D = arguments["A"], arguments["D"]
        fades = prefixes if kernel == "tile_kernel" else size["p_g"] * arguments["DECAY"]
        return A * (size["p_a"] + size["p_b"]) + D * (size["p_c"] + size["p_out"]) + fades
    if kernel == "forward_kernel":
        return 2 * K * size["p_q"] + V * (size["p_v"] + size["p_o"]) + prefixes
    if kernel == "dq_kernel":
        return size["p_q"] * (2 * K + 2 * V + K * arguments["FORM_DELTA"]) + prefixes
    if kernel == "dkv_kernel":
        both = (arguments["DK"] + arguments["DV"]) * (K + V)
        return size["p_q"] * (K + V + both) + prefixes
    if kernel == "decay_gradient_kernel":
        return size["p_q"] * (2 * K + 2 * V) + 2 * 4 + size["p_dg"]
    if kernel == "one_pass_kernel":
        return size["p_q"] * (4 * K + 3 * V)
    if kernel == "sums_kernel":
        T, first = arguments["T"], arguments["first_segment"]
        tokens = min(T, (first + arguments["G"]) * arguments["L"]) - first * arguments["L"]
        return tokens / T * (size["p_b"] * (K + V) + prefixes)
    if kernel == "delta_kernel":
        return (size["p_o"] + size["p_do"]) * V
    return 0.0
