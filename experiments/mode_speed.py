"""Time one attention layer's core: softmax, and linear attention in its three modes.

Inputs are q, k, v after the feature map, so that only the attention is timed. All four take turns
at each length, one call each, so drift affects all equally and their ratios hold. The same run
measures the device's own limits first, and chunked mode at every chunk size after them.

A chunk of one token makes chunked mode read and write the state at every token, as recurrent mode
does. Compiled it keeps one state, in a cache. So last comes the program that the draft of 2024
prints, a running sum of outer products in plain torch: it also reads a state at every token, and
stores them all. It has no normaliser, and takes turns with two modes without one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
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
    synchronize,
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
    "draft": table(
        optional="on a CPU only: the draft's program and two modes in turns, without a normaliser",
        mode=("name", "`cumsum`, the draft's program; `attention`, `recurrent`"),
        **PASS,
        length=("tokens", "T"),
        **TIMING,
        peak=("B", "most bytes of tensors alive at once beyond the inputs"),
    ),
}
IMPLEMENTATIONS = ("softmax", *MODES)
PRINTED = ("cumsum", "attention", "recurrent")  # what the table `draft` compares


def runs(kind: str, smoke: bool) -> list[Run]:
    """One run a shape: all modes, all lengths."""
    shapes = [(1, 1, 64)] if kind == "cpu" else [(1, 12, 64), (1, 25, 64)]
    dtype = "float32" if kind == "cpu" else "bfloat16"
    longest = 64 if smoke else 131072  # past 100,000, for which the notes claim a factor of 200
    sizes = [1, 16, 32] if smoke else [1, 16, 32, 64, 128, 256, 512, 1024]
    cpu = {
        "draft_lengths": [64] if smoke else [256, 1024, 4096],
        # Seconds. A chunk size or program whose first call takes longer is left out at this length.
        "longest_call": 4.0,
    }
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
                **(cpu if kind == "cpu" else {}),
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
    normalize: bool = True,
) -> Callable[[], Any]:
    """A function without arguments that computes the attention once (and its gradients).

    mode: one of `IMPLEMENTATIONS`, or `cumsum`, which has no normaliser.
    """
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
        if mode == "cumsum":
            return draft_program(q * config["width"] ** -0.5, k, v)
        return linear_attention(q, k, v, mode=mode, chunk_size=chunk_size, normalize=normalize)

    if backward:
        return lambda: torch.autograd.grad(forward(), (q, k, v), do)
    return torch.no_grad()(forward)


def draft_program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The draft's `cumsum(V.T @ K)`, as it must be meant: one outer product a token.

    q, k [B, T, H, K], v [B, T, H, V]. It stores T states of K x V numbers a head.
    """
    S = (k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(1)
    return (q.unsqueeze(-2) @ S).squeeze(-2)


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


def in_time(
    calls: dict[str, Callable[[], Any]], config: dict[str, Any], session: Session
) -> dict[str, Callable[[], Any]]:
    """The calls of which the first took at most `config.longest_call` seconds."""

    def seconds(call: Callable[[], Any]) -> float:
        began = time.perf_counter()
        call()
        synchronize(session.device)
        return time.perf_counter() - began

    return {name: call for name, call in calls.items() if seconds(call) <= config["longest_call"]}


def sweep(config: dict[str, Any], length: int, pass_name: str, session: Session) -> list[dict]:
    """Time chunked mode at every chunk size, in turns; a row a size."""
    calls = {
        str(size): attention_call(
            "chunked", config, length, pass_name != "forward", session.device, size
        )
        for size in config["chunk_sizes"]
    }
    timings = measure_in_turns(in_time(calls, config, session), session.device)
    return [
        {"pass": pass_name, "length": length, "chunk_size": int(size), **timing.columns}
        for size, timing in timings.items()
    ]


def printed(config: dict[str, Any], length: int, pass_name: str, session: Session) -> list[dict]:
    """Time the draft's program beside two modes, in turns; a row a program."""
    calls = {
        mode: attention_call(
            mode, config, length, pass_name != "forward", session.device, normalize=False
        )
        for mode in PRINTED
    }
    timings = measure_in_turns(in_time(calls, config, session), session.device)
    return [
        {
            "mode": mode,
            "pass": pass_name,
            "length": length,
            **timing.columns,
            "peak": peak_bytes(calls[mode], session.device),
        }
        for mode, timing in timings.items()
    ]


def _measured(table: Mapping[str, list]) -> set[tuple[int, str]]:
    """Lengths and passes of a table's rows."""
    return {*zip(table.get("length", ()), table.get("pass", ()), strict=True)}


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`: the limits, and all points that are missing."""
    if not (tables := session.go_on()):
        tables = {"limits": limits(config, session.device), "rows": {}}
    doubled = doublings(config["shortest"], config["longest"])
    swept = config["chunk_lengths"] if config["chunk_sizes"] else []
    stages = [
        ("rows", in_turns, doubled),
        ("chunks", sweep, swept),
        ("draft", printed, config.get("draft_lengths", [])),
    ]
    points = [
        (name, time_point, length, pass_name)
        for name, time_point, its_lengths in stages
        for length in its_lengths
        for pass_name in PASSES
    ]
    measured = {name: _measured(tables.get(name, {})) for name, *_ in stages}
    for i, (name, time_point, length, pass_name) in enumerate(points):
        if (length, pass_name) in measured[name]:
            continue
        if session.out_of_time():
            return Outcome(tables, complete=False)
        for row in time_point(config, length, pass_name, session):
            append(tables, name, row)
        session.save(tables)
        session.show(i + 1, len(points), f"{name}: {length} tokens, {pass_name}")
    return Outcome(tables)


EXPERIMENT = Experiment(
    "mode_speed", "one attention layer: softmax and the three modes", TABLES, runs, perform
)
