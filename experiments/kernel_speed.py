"""Race the chunked kernels against other libraries' and against the machine's own limits.

First the results of all are compared with float64 on fresh inputs, gradients included. Then
every implementation is timed on the same inputs, called from Python and replayed as a CUDA
graph. The limit is the time that reading the inputs and writing the results once would take at
the copy speed measured in the same run: 8 D bytes a token and head in bf16, 22 D with gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch

from lsa import linear_attention, softmax_attention
from lsa.linear_attention.feature_maps import elu_plus_one

from .harness.plan import Experiment, Outcome, Run, Session
from .harness.tables import PASS, Tables, append, table
from .harness.timing import (
    ENOUGH_SECONDS,
    TIMING,
    Timing,
    copy_rate,
    matmul_rate,
    measure,
    summarize,
)

TABLES = {
    "limits": table(
        cache=("B", "of the last cache; inputs that fit into it may pass the limit"),
        copy=("B/s", "of a copy of 1 GiB, read and written, in this run"),
        matmul=("FLOP/s", "of an 8192 x 8192 x 8192 product in bf16, in this run"),
    ),
    "errors": table(
        implementation=("name", "whose results"),
        tensor=("name", "`o`, `dq`, `dk`, `dv`"),
        error=("relative RMS", "of the difference from float64"),
    ),
    "rows": table(
        implementation=("name", "`ours`: the sum alone, as the others compute it"),
        **PASS,
        launch=("name", "`eager`: called from Python; `graph`: replayed as a CUDA graph"),
        batch=("sequences", "B"),
        length=("tokens", "T"),
        heads=("heads", "H"),
        width=("features", "K = V"),
        **TIMING,
        rate=("B/s", "least bytes (8 D a token and head, 22 D with gradients) over the time"),
        share=("of the limit", "the same over the copy's rate"),
    ),
}
LADDER = [  # the shapes of a published comparison of such kernels
    (1, 8192, 96, 128),
    (2, 16384, 16, 128),
    (4, 2048, 16, 128),
    (4, 4096, 64, 128),
    (8, 2048, 32, 256),
    (8, 1024, 8, 64),
    (1, 131072, 12, 64),
    (1, 65537, 12, 64),
]
GPT2 = [(1, 1024 * 2**i, 12, 64) for i in range(8)]
PASSES = ("forward", "forward+backward")
REPLAYS = 5  # of a graph, between two looks at the clock
GRAPH_FEWEST, GRAPH_MOST = 3, 20
Inputs = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
Attention = Callable[..., torch.Tensor]


def runs(kind: str, smoke: bool) -> list[Run]:
    """Two runs on a GPU, none elsewhere."""
    if kind != "cuda":
        return []
    shapes = {"ladder": [(2, 512, 2, 64)]} if smoke else {"ladder": LADDER, "gpt2": GPT2}
    return [
        Run(
            "kernel_speed",
            name,
            {"shapes": [list(shape) for shape in each], "dtype": "bfloat16", "seed": 0},
            4,
        )
        for name, each in shapes.items()
    ]


def implementations(session: Session) -> dict[str, Attention]:
    """Everything that can be raced here, by name; all take q, k, v [B, T, H, D]."""
    found: dict[str, Attention] = {
        "ours": lambda q, k, v: linear_attention(q, k, v, normalize=False),
        "ours, normalised": linear_attention,
        "softmax, flash": softmax_attention,
    }
    peers = attempt(lambda: import_module("fla.ops.linear_attn"), "fla", session)
    for name in ("chunk", "fused_chunk", "fused_recurrent") if peers else ():
        operation = getattr(peers, f"{name}_linear_attn", None)
        if operation is None:
            session.warn(f"fla {name}: this version has none")
        else:
            found[f"fla {name}"] = _without_normalizer(operation)
    return found


def _without_normalizer(operation: Callable) -> Attention:
    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return operation(q, k, v, normalize=False)[0]

    return call


def draw(shape: list[int], config: dict[str, Any], device: torch.device) -> list[torch.Tensor]:
    """q, k (mapped), v and the gradient of o."""
    generator = torch.Generator(device).manual_seed(config["seed"])
    q, k, v, do = (torch.randn(shape, generator=generator, device=device) for _ in range(4))
    dtype = getattr(torch, config["dtype"])
    return [x.to(dtype) for x in (elu_plus_one(q), elu_plus_one(k), v, do)]


def gradients(call: Attention, inputs: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """o, dq, dk, dv."""
    *qkv, do = inputs
    leaves = [x.detach().requires_grad_() for x in qkv]
    o = call(*leaves)
    return o.detach(), *torch.autograd.grad(o, leaves, do)


def relative_rms(found: torch.Tensor, exact: torch.Tensor) -> float:
    """Root mean square of the error over that of the exact values."""
    error = (found.double() - exact).square().mean().sqrt()
    return (error / exact.square().mean().sqrt()).item()


def compare(
    shape: list[int], names: dict[str, Attention], config: dict[str, Any], session: Session
) -> list[dict[str, Any]]:
    """The errors of every linear implementation against float64, on inputs of their own."""
    inputs = draw(shape, {**config, "seed": config["seed"] + 1}, session.device)
    wide = [x.double() for x in inputs]
    exact = {
        normalize: gradients(
            lambda q, k, v, n=normalize: linear_attention(q, k, v, normalize=n), wide
        )
        for normalize in (False, True)
    }
    rows = []
    for name, call in names.items():
        if name.startswith("softmax"):
            continue
        found = attempt(lambda call=call: gradients(call, inputs), f"{name} {shape}", session)
        for tensor, x, y in zip(
            ("o", "dq", "dk", "dv"), found or (), exact["normalised" in name], strict=False
        ):
            where = dict(zip(("batch", "length", "heads", "width"), shape, strict=True))
            error = relative_rms(x, y)
            if not math.isfinite(error):
                session.warn(f"{name} {shape}: the error of {tensor} is {error}")
                continue
            rows.append({"implementation": name, **where, "tensor": tensor, "error": error})
    return rows


def attempt(call: Callable[[], Any], what: str, session: Session) -> Any:
    """What `call` returns, or None with a warning: one that fails must not end the race."""
    try:
        return call()
    except Exception as error:
        message = (str(error).splitlines() or [""])[0]
        session.warn(f"{what}: {type(error).__name__}: {message}")
        return None


def measure_graph(call: Callable[[], Any], device: torch.device) -> Timing:
    """Capture `call` as a CUDA graph and time its replays: the GPU's time without Python's."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    graph.replay()
    seconds: list[float] = []
    while len(seconds) < GRAPH_FEWEST or (
        len(seconds) < GRAPH_MOST and REPLAYS * sum(seconds) < ENOUGH_SECONDS[device.type]
    ):
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        began.record()
        for _ in range(REPLAYS):
            graph.replay()
        ended.record()
        torch.cuda.synchronize(device)
        seconds.append(began.elapsed_time(ended) * 1e-3 / REPLAYS)
    return summarize(seconds)


def limits(device: torch.device) -> dict[str, float]:
    """Bytes a second of a copy, read and written, FLOP a second of a bf16 product, and bytes of
    the last cache: inputs that fit into it are not read from memory again, so a share of the
    limit can pass one there.
    """
    return {
        "cache": getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0),
        "copy": copy_rate(device, 2**30),
        "matmul": matmul_rate(device, torch.bfloat16, 8192),
    }


def timed_call(call: Attention, inputs: list[torch.Tensor], backward: bool) -> Callable[[], Any]:
    """A function of no arguments that computes the attention once (and its gradients)."""
    *qkv, do = inputs
    if not backward:
        return torch.no_grad()(lambda: call(*qkv))
    leaves = [x.detach().requires_grad_() for x in qkv]
    return lambda: torch.autograd.grad(call(*leaves), leaves, do)


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Compare, then time, shape by shape."""
    names = implementations(session)
    tables: Tables = {}
    ceiling = limits(session.device)
    append(tables, "limits", ceiling)
    shapes = config["shapes"]
    for i, shape in enumerate(shapes):
        for row in attempt(
            lambda shape=shape: compare(shape, names, config, session), f"{shape}", session
        ) or ():  # fmt: skip
            append(tables, "errors", row)
        inputs = draw(shape, config, session.device)
        for name, call in names.items():
            for pass_name in PASSES:
                once = timed_call(call, inputs, pass_name != "forward")
                for launch, timer in (("eager", measure), ("graph", measure_graph)):
                    if session.out_of_time():
                        return Outcome(tables, complete=False)
                    what = f"{name} {pass_name} {launch} {shape}"
                    timing = attempt(
                        lambda t=timer, c=once: t(c, session.device), what, session
                    )  # fmt: skip
                    if timing is not None:
                        row = describe(name, pass_name, launch, shape, timing, ceiling["copy"])
                        append(tables, "rows", row)
            session.save(tables)
            session.show(i + (list(names).index(name) + 1) / len(names), len(shapes), str(shape))
    return Outcome(tables)


def describe(
    name: str, pass_name: str, launch: str, shape: list[int], timing: Timing, copy: float
) -> dict[str, Any]:
    """One row: a timing beside the limit of its shape."""
    B, T, H, D = shape
    least = (8 if pass_name == "forward" else 22) * D * B * T * H
    return {
        "implementation": name,
        "pass": pass_name,
        "launch": launch,
        "batch": B,
        "length": T,
        "heads": H,
        "width": D,
        **timing.columns,
        "rate": round(least / timing.median),
        "share": round(least / copy / timing.median, 4),
    }


EXPERIMENT = Experiment(
    "kernel_speed", "the kernels against others and the machine's limits", TABLES, runs, perform
)
