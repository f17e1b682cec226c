"""Time one attention layer's core: softmax, and linear attention in its three modes.

Inputs are q, k, v after the feature map, so that nothing but the attention is timed. All four
take turns at each length inside one run, so their ratios hold whatever the machine's mood.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from lsa import linear_attention, softmax_attention
from lsa.feature_maps import elu_plus_one

from .plan import Experiment, Outcome, Run, Session
from .timing import measure, peak_bytes

UNITS = {
    "mode": "name",
    "pass": "name",
    "length": "tokens",
    "seconds": "s",
    "low": "s",
    "high": "s",
    "repeats": "calls",
    "peak": "B",
}
MODES = ("softmax", "attention", "recurrent", "chunked")
PASSES = ("forward", "forward+backward")


def runs(kind: str, smoke: bool) -> list[Run]:
    """One run a shape: all modes, all lengths."""
    shapes = [(1, 1, 64)] if kind == "cpu" else [(1, 12, 64), (1, 25, 64)]
    dtype = "float32" if kind == "cpu" else "bfloat16"
    longest = 64 if smoke else 16384 if kind == "cpu" else 131072
    return [
        Run(
            "mode_speed",
            f"b{batch}-h{heads}-d{width}",
            {
                "batch": batch,
                "heads": heads,
                "width": width,
                "dtype": dtype,
                "shortest": 64,
                "longest": longest,
                # Past this, plain torch on a CPU would hold T x T products that do not fit;
                # the kernels for CUDA hold none.
                "longest_attention": min(longest, 16384) if kind == "cpu" else longest,
                "longest_recurrent": min(longest, 16384) if kind == "cpu" else longest,
                "seed": 0,
            },
            5,
        )
        for batch, heads, width in shapes
    ]


def attention_call(
    mode: str, config: dict[str, Any], length: int, backward: bool, device: torch.device
) -> Callable[[], Any]:
    """A function of no arguments that computes the attention once (and its gradients)."""
    shape = (config["batch"], length, config["heads"], config["width"])
    generator = torch.Generator(device).manual_seed(config["seed"])
    dtype = getattr(torch, config["dtype"])
    q, k, v, do = (torch.randn(shape, generator=generator, device=device) for _ in range(4))
    if mode != "softmax":
        q, k = elu_plus_one(q), elu_plus_one(k)
    q, k, v = (x.to(dtype).requires_grad_(backward) for x in (q, k, v))
    do = do.to(dtype)

    def forward() -> torch.Tensor:
        if mode == "softmax":
            return softmax_attention(q, k, v)
        return linear_attention(q, k, v, mode=mode)

    if backward:
        return lambda: torch.autograd.grad(forward(), (q, k, v), do)
    return torch.no_grad()(forward)


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """One run, as `plan.Experiment` asks."""
    rows: dict[str, list] = {name: [] for name in UNITS}
    lengths = [config["shortest"] * 2**i for i in range(32)]
    points = [
        (length, pass_name, mode)
        for length in lengths
        if length <= config["longest"]
        for pass_name in PASSES
        for mode in MODES
        if length <= config.get(f"longest_{mode}", length)
    ]
    for i, (length, pass_name, mode) in enumerate(points):
        if session.out_of_time():
            return Outcome({"rows": rows}, complete=False)
        call = attention_call(mode, config, length, pass_name != "forward", session.device)
        timing = measure(call, session.device)
        row = {
            "mode": mode,
            "pass": pass_name,
            "length": length,
            "seconds": round(timing.median, 9),
            "low": round(timing.low, 9),
            "high": round(timing.high, 9),
            "repeats": timing.repeats,
            "peak": peak_bytes(call, session.device),
        }
        for name, value in row.items():
            rows[name].append(value)
        session.save({"rows": rows})
        session.show(i + 1, len(points), f"{mode} {length} {timing.median * 1e3:.2f} ms")
    return Outcome({"rows": rows})


EXPERIMENT = Experiment(
    "mode_speed", "one attention layer: softmax and the three modes", UNITS, runs, perform
)
