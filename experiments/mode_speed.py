"""Time one attention layer's core: softmax, and linear attention in its three modes.

Inputs are q, k, v after the feature map, so that only the attention is timed. All four take turns
at each length, one call each, so drift affects all equally and their ratios hold. The same run
measures the device's own limits first, and chunked mode at every chunk size last.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from lsa import linear_attention, softmax_attention
from lsa.attention import MODES
from lsa.attention.feature_maps import elu_plus_one

from .harness.bench.timing import (
    TIMING,
    call_seconds,
    copy_rate,
    doublings,
    matmul_rate,
    measure_in_turns,
    peak_bytes,
    timed_call,
)
from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import PASS, PASSES, append, table
from .priorities import MODES_RACE

TABLES = {
    "limits": table(
        copy=("B/s", "of a copy of `config.copy_bytes`, read and written, in this run"),
        matmul=(
            "FLOP/s",
            "of a square product of side `config.matmul_side` in `config.dtype`, in this run",
        ),
        call=("s", "of the smallest call into torch, each waiting for the one before it"),
    ),
    "rows": table(
        mode=("name", "`softmax`, `attention`, `recurrent`, `chunked`"),
        **PASS,
        length=("tokens", "T"),
        **TIMING,
        peak=("B", "most bytes of tensors alive at once beyond the inputs"),
    ),
    "chunks": table(
        optional="on a CPU only: chunked mode, the sizes of one length and pass taking turns",
        **PASS,
        length=("tokens", "T"),
        chunk_size=("tokens", "C"),
        **TIMING,
    ),
}
IMPLEMENTATIONS = ("softmax", *MODES)


def runs(kind: str, smoke: bool) -> list[Run]:
    """One run a shape: all modes, all lengths."""
    shapes = [(1, 1, 64)] if kind == "cpu" else [(1, 12, 64), (1, 25, 64)]
    dtype = "float32" if kind == "cpu" else "bfloat16"
    longest = 64 if smoke else 131072  # past 100,000, for which the notes claim a factor of 200
    sizes = [16, 32] if smoke else [16, 32, 64, 128, 256, 512, 1024]
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
                # Past this, plain torch on a CPU would store T x T products that do not fit; the
                # kernels for CUDA store none.
                "longest_attention": min(longest, 16384) if kind == "cpu" else longest,
                "longest_recurrent": min(longest, 16384) if kind == "cpu" else longest,
                # The kernels for CUDA choose their chunk sizes themselves.
                "chunk_sizes": sizes if kind == "cpu" else [],
                "chunk_lengths": [64] if smoke else [4096, 16384],
                "copy_bytes": 2**20 if smoke else 2**28 if kind == "cpu" else 2**30,
                "matmul_side": 64 if smoke else 2048 if kind == "cpu" else 8192,
                "seed": 0,
            },
            MODES_RACE,
        )
        for batch, heads, width in shapes
    ]


def attention_call(
    mode: str,
    config: dict[str, Any],
    length: int,
    backward: bool,
    device: torch.device,
    chunk_size: int | None = None,
) -> Callable[[], Any]:
    """A function without arguments that computes the attention once (and its gradients)."""
    shape = (config["batch"], length, config["heads"], config["width"])
    generator = torch.Generator(device).manual_seed(config["seed"])
    dtype = getattr(torch, config["dtype"])
    q, k, v, do = (torch.randn(shape, generator=generator, device=device) for _ in range(4))
    if mode != "softmax":
        q, k = elu_plus_one(q), elu_plus_one(k)
    call = softmax_attention
    if mode != "softmax":
        call = partial(linear_attention, mode=mode, chunk_size=chunk_size)
    return timed_call(call, [x.to(dtype) for x in (q, k, v, do)], backward)


def limits(config: dict[str, Any], device: torch.device) -> dict[str, list[float]]:
    """Measure the limits of the device: a copy, a product of matrices, the smallest call."""
    dtype = getattr(torch, config["dtype"])
    return {
        "copy": [copy_rate(device, config["copy_bytes"])],
        "matmul": [matmul_rate(device, dtype, config["matmul_side"])],
        "call": [call_seconds(device)],
    }


def in_turns(config: dict[str, Any], length: int, pass_name: str, session: Session) -> list[dict]:
    """Time all modes at one length, one call each in turn; a row a mode."""
    calls = {
        mode: attention_call(mode, config, length, pass_name != "forward", session.device)
        for mode in IMPLEMENTATIONS
        if length <= config.get(f"longest_{mode}", length)
    }
    timings = measure_in_turns(calls, session.device)
    return [
        {
            "mode": mode,
            "pass": pass_name,
            "length": length,
            **timings[mode].columns,
            "peak": peak_bytes(call, session.device),
        }
        for mode, call in calls.items()
    ]


def sweep(config: dict[str, Any], length: int, pass_name: str, session: Session) -> list[dict]:
    """Time chunked mode at every chunk size, in turns; a row a size."""
    calls = {
        str(size): attention_call(
            "chunked", config, length, pass_name != "forward", session.device, size
        )
        for size in config["chunk_sizes"]
    }
    timings = measure_in_turns(calls, session.device)
    return [
        {"pass": pass_name, "length": length, "chunk_size": size, **timings[str(size)].columns}
        for size in config["chunk_sizes"]
    ]


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`: limits, lengths, chunk sizes that are missing."""
    if not (tables := session.go_on()):
        tables = {"limits": limits(config, session.device), "rows": {}}
    tasks = {"rows": in_turns, "chunks": sweep}
    lengths = {"rows": doublings(config["shortest"], config["longest"])}
    lengths["chunks"] = config["chunk_lengths"] if config["chunk_sizes"] else []
    points = [(name, length, of) for name in tasks for length in lengths[name] for of in PASSES]
    done = {
        (name, *row)
        for name in tasks
        for found in (tables.get(name, {}),)
        for row in zip(found.get("length", ()), found.get("pass", ()), strict=True)
    }
    for name, length, pass_name in session.through(points, tables, str, done):
        for row in tasks[name](config, length, pass_name, session):
            append(tables, name, row)
    return Outcome(tables, session.whole)


EXPERIMENT = Experiment(
    "mode_speed", "one attention layer: softmax and the three modes", TABLES, runs, perform
)
