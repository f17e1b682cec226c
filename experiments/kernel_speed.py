"""Race the chunked kernels against other libraries' and against the machine's own limits.

One run is one shape. First the results of all are compared with float64 on fresh inputs,
gradients included. Then all implementations take turns on the same inputs, called from Python and
replayed as CUDA graphs. Softmax runs by every backend that the machine has. The limit is the time
that reading the inputs and writing the results once would take at the copy speed measured in the
same run: 8 D bytes a token and head in bf16, 22 D with gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from importlib import import_module
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from lsa import linear_attention, softmax_attention
from lsa.linear_attention.feature_maps import elu_plus_one

from .harness.errors import relative_rms
from .harness.plan import RACE, REST, Experiment, Outcome, Run, Session
from .harness.shapes import BETWEEN, GPT2, LADDER, PASSES, SMALL
from .harness.tables import PASS, Tables, append, table
from .harness.timing import (
    ENOUGH_SECONDS,
    TIMING,
    Timing,
    copy_rate,
    matmul_rate,
    measure_in_turns,
    summarize,
)
from .harness.workers import DeviceLostError

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
        implementation=(
            "name",
            "`ours`: the sum alone, as the others compute it; `fading`: with a decay of every "
            "token and head, whose gradient is not asked for",
        ),
        **PASS,
        launch=(
            "name",
            "`eager`: called from Python; `graph`: replayed as a CUDA graph, whose `repeats` are "
            "each the mean of five replays in a row",
        ),
        batch=("sequences", "B"),
        length=("tokens", "T"),
        heads=("heads", "H"),
        width=("features", "K = V"),
        **TIMING,
        rate=("B/s", "least bytes (8 D a token and head, 22 D with gradients) over the time"),
        share=("of the limit", "the same over the copy's rate"),
    ),
    "lost": table(
        optional="unless the device was lost, by an illegal access perhaps",
        implementation=("name", "after whose call it answered no more; not called again"),
        during=("text", "which call that was"),
    ),
}
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION}
LAUNCHES = ("eager", "graph")
REPLAYS = 5  # of a graph, between two looks at the clock
GRAPH_FEWEST, GRAPH_MOST = 3, 20
Inputs = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
Attention = Callable[..., torch.Tensor]


def runs(kind: str, smoke: bool) -> list[Run]:
    """A run a shape on a GPU, none elsewhere."""
    if kind != "cuda":
        return []
    shapes = {"ladder": [SMALL]} if smoke else {"ladder": LADDER, "gpt2": GPT2}
    return [
        Run(
            "kernel_speed",
            f"{group}-{'x'.join(map(str, shape))}",
            {"shape": list(shape), "dtype": "bfloat16", "seed": 0},
            RACE if shape not in BETWEEN else REST,
            30,
        )
        for group, each in shapes.items()
        for shape in each
    ]


def implementations(session: Session) -> dict[str, Attention]:
    """Everything that can be raced here, by name; all take q, k, v [B, T, H, D]."""
    found: dict[str, Attention] = {
        "ours": lambda q, k, v: linear_attention(q, k, v, normalize=False),
        "ours, normalised": linear_attention,
        "ours, fading": _fading,
        **{f"softmax, {name}": _softmax_by(backend) for name, backend in BACKENDS.items()},
    }
    newest = session.attempt(
        lambda: import_module("flash_attn_interface"), "softmax, flash 3"
    )  # fmt: skip
    if newest:
        found["softmax, flash 3"] = partial(newest.flash_attn_func, causal=True)
    peers = session.attempt(lambda: import_module("fla.ops.linear_attn"), "fla")
    for name in ("chunk", "fused_chunk", "fused_recurrent") if peers else ():
        operation = getattr(peers, f"{name}_linear_attn", None)
        if operation is None:
            session.warn(f"fla {name}: this version has none")
        else:
            found[f"fla {name}"] = _without_normalizer(operation)
    fading = session.attempt(lambda: import_module("fla.ops.simple_gla"), "fla") if peers else None
    if fading:
        found["fla simple_gla, fading"] = lambda q, k, v: fading.chunk_simple_gla(
            q, k, v, decay(q.shape[:3], q.device)
        )[0]
    return found


@lru_cache(maxsize=2)
def decay(shape: torch.Size, device: torch.device) -> torch.Tensor:
    """The logarithm of the decay of every token and head, [B, T, H]: half is left after 14."""
    generator = torch.Generator(device).manual_seed(0)
    return -0.1 * torch.rand(shape, generator=generator, device=device)


def _fading(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    g = decay(q.shape[:3], q.device)
    return linear_attention(q, k, v, normalize=False, log_decay=g)


def _softmax_by(backend: SDPBackend) -> Attention:
    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel(backend):
            return softmax_attention(q, k, v)

    return call


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


def compare(
    names: dict[str, Attention], config: dict[str, Any], session: Session, tables: Tables
) -> None:
    """The errors of every linear implementation against float64, on inputs of their own."""
    compared = tables.get("errors", {}).get("implementation", ())
    names = {n: call for n, call in names.items() if "softmax" not in n and n not in compared}
    if not names:
        return
    shape = config["shape"]
    inputs = draw(shape, {**config, "seed": config["seed"] + 1}, session.device)
    wide = [x.double() for x in inputs]
    kinds = {"normalised": linear_attention, "fading": _fading}
    exact = {kind: gradients(call, wide) for kind, call in kinds.items()}
    exact[""] = gradients(lambda q, k, v: linear_attention(q, k, v, normalize=False), wide)
    for name, call in names.items():
        wanted = exact[next((kind for kind in kinds if kind in name), "")]
        once = partial(gradients, call, inputs)
        found = attempt(name, once, str(shape), session, tables)
        for tensor, x, y in zip(("o", "dq", "dk", "dv"), found or (), wanted, strict=False):
            error = relative_rms(x, y)
            if not math.isfinite(error):
                session.warn(f"{name} {shape}: the error of {tensor} is {error}")
                continue
            append(tables, "errors", {"implementation": name, "tensor": tensor, "error": error})
        session.save(tables)


def attempt(name: str, call: Callable[[], Any], what: str, session: Session, tables: Tables) -> Any:
    """`session.attempt`; who loses the device is noted, so that the race goes on without it."""
    try:
        return session.attempt(call, f"{name} {what}")
    except DeviceLostError:
        append(tables, "lost", {"implementation": name, "during": what})
        session.save(tables)
        raise


def capture(call: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    """`call` as a CUDA graph, replayed once: its replays take the GPU's time without Python's."""
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
    return graph


def replay_in_turns(
    graphs: dict[str, torch.cuda.CUDAGraph], device: torch.device
) -> dict[str, Timing]:
    """Time the replays of several graphs interleaved, by the GPU's own clock."""
    seconds: dict[str, list[float]] = {name: [] for name in graphs}
    enough, spent, rounds = ENOUGH_SECONDS[device.type] * len(graphs), 0.0, 0
    while rounds < GRAPH_FEWEST or (spent < enough and rounds < GRAPH_MOST):
        for name, graph in graphs.items():
            began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            began.record()
            for _ in range(REPLAYS):
                graph.replay()
            ended.record()
            torch.cuda.synchronize(device)
            seconds[name].append(began.elapsed_time(ended) * 1e-3 / REPLAYS)
            spent += REPLAYS * seconds[name][-1]
        rounds += 1
    return {name: summarize(each) for name, each in seconds.items()}


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
    """Compare, then time: first from Python, then as graphs; what is there stays."""
    device, shape, tables = session.device, config["shape"], session.go_on()
    lost = tables.get("lost", {}).get("implementation", ())
    names = {n: call for n, call in implementations(session).items() if n not in lost}
    if "limits" not in tables:
        append(tables, "limits", limits(device))
    copy = tables["limits"]["copy"][0]
    session.attempt(lambda: compare(names, config, session, tables), f"{shape}")
    rows = tables.get("rows", {})
    timed = {*zip(rows.get("pass", ()), rows.get("launch", ()), strict=True)}
    inputs = draw(shape, config, device)
    for i, pass_name in enumerate(PASSES):
        calls = {n: timed_call(call, inputs, pass_name != "forward") for n, call in names.items()}
        for j, launch in enumerate(LAUNCHES):
            if (pass_name, launch) in timed:
                continue
            if session.out_of_time():
                return Outcome(tables, complete=False)
            what = f"{pass_name} {launch} {shape}"
            # The first call compiles, and says whether there will be others.
            first = capture if launch == "graph" else _once
            tried = {
                n: attempt(n, partial(first, call), what, session, tables)
                for n, call in calls.items()
            }
            ready = {name: it for name, it in tried.items() if it is not None}
            timer = replay_in_turns if launch == "graph" else measure_in_turns
            for name, timing in timer(ready, device).items() if ready else ():
                row = describe(name, pass_name, launch, shape, timing, copy)
                append(tables, "rows", row)
            del tried, ready
            session.save(tables)
            session.show(len(LAUNCHES) * i + j + 1, len(PASSES) * len(LAUNCHES), str(shape))
    return Outcome(tables)


def _once(call: Callable[[], Any]) -> Callable[[], Any]:
    call()
    return call


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
