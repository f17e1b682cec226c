"""Race the chunked kernels against other libraries' and against the device's own limits.

One run is one shape. First the results of all are compared with float64 on fresh inputs, gradients
included. Then all implementations take turns on the same inputs, called from Python and replayed as
CUDA graphs. Before each call the GPU's last cache is filled with other numbers. Softmax runs with
every backend that the device has. The limit is the time to read the inputs and write the results
once, at the copy speed measured in the same run. That is 8 D bytes a token and head in bf16, 22 D
with gradients.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from importlib import import_module
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from lsa import linear_attention, softmax_attention
from lsa.attention.feature_maps import elu_plus_one

from .harness.bench.errors import error_rows, outputs_and_gradients
from .harness.bench.graphs import capture, replay_in_turns
from .harness.bench.timing import (
    TIMING,
    Timing,
    cache_filler,
    copy_rate,
    matmul_rate,
    measure_in_turns,
    timed_call,
)
from .harness.core.plan import DeviceLostError, Experiment, Outcome, Run, Session
from .harness.core.tables import PASS, PASSES, Tables, append, table
from .priorities import RACE, REST

TABLES = {
    "limits": table(
        cache=("B", "of the last cache; a call whose tensors fit into it may pass the limit"),
        copy=("B/s", "of a copy of 1 GiB of random bytes, read and written, in this run"),
        matmul=("FLOP/s", "of an 8192 x 8192 x 8192 product in bf16, in this run"),
    ),
    "peers": table(
        optional="empty where no other library is installed",
        library=("name", "as it is imported"),
        version=("name", "that the library reports"),
    ),
    "errors": table(
        implementation=("name", "whose results"),
        tensor=("name", "`o`, `dq`, `dk`, `dv`"),
        error=("relative RMS", "of the difference from float64"),
    ),
    "rows": table(
        implementation=(
            "name",
            "`ours`: the sum alone; `normalised`: over its normaliser, fla's from 0.5.1 on; "
            "`fading`: with a decay of every token and head, whose gradient is not asked for",
        ),
        **PASS,
        launch=(
            "name",
            "`eager`: called from Python; `graph`: replayed as a CUDA graph, whose `repeats` are "
            "each the mean of five replays",
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
        optional="empty unless the device was lost, for example by an illegal access",
        implementation=("name", "whose call the device did not survive; not called again"),
        during=("text", "which call that was"),
    ),
}
LADDER = [  # the shapes [B, T, H, D] of a published comparison of such kernels
    (1, 8192, 96, 128),
    (2, 16384, 16, 128),
    (4, 2048, 16, 128),
    (4, 4096, 64, 128),
    (8, 2048, 32, 256),
    (8, 1024, 8, 64),
]
# GPT-2's heads at doubling lengths, the most informative first, and an indivisible length.
GPT2 = [(1, T, 12, 64) for T in (8192, 1024, 65536, 131072, 16384, 4096, 2048, 32768, 65537)]
BETWEEN = GPT2[4:]  # timed last
SMALL = (2, 512, 2, 64)
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION}
LAUNCHES = ("eager", "graph")
# flash-linear-attention, pull request 875: before it, k's gradient lacked the normaliser's part.
FLA_NORMALISES = [0, 5, 1]
Attention = Callable[..., torch.Tensor]


def runs(kind: str, smoke: bool) -> list[Run]:
    """One run a shape on a GPU, none elsewhere."""
    if kind != "cuda":
        return []
    shapes = {"ladder": [SMALL]} if smoke else {"ladder": LADDER, "gpt2": GPT2}
    return [
        Run(
            "kernel_speed",
            f"{group}-{'x'.join(map(str, shape))}",
            {"shape": list(shape), "dtype": "bfloat16", "seed": 0},
            RACE if shape not in BETWEEN else REST,
        )
        for group, each in shapes.items()
        for shape in each
    ]


def implementations(session: Session) -> dict[str, Attention]:
    """All implementations available here, by name; all take q, k, v [B, T, H, D]."""
    found: dict[str, Attention] = {
        "ours": lambda q, k, v: linear_attention(q, k, v, normalize=False),
        "ours, normalised": linear_attention,
        "ours, fading": _fading,
        **{f"softmax, {name}": _softmax_by(backend) for name, backend in BACKENDS.items()},
    }
    newest = session.attempt(lambda: import_module("flash_attn_interface"), "softmax, flash 3")
    if newest:
        found["softmax, flash 3"] = partial(newest.flash_attn_func, causal=True)
    peers = session.attempt(lambda: import_module("fla.ops.linear_attn"), "fla")
    for name in ("chunk", "fused_chunk", "fused_recurrent") if peers else ():
        operation = getattr(peers, f"{name}_linear_attn", None)
        if operation is None:
            session.warn(f"fla {name}: this version has none")
        else:
            found[f"fla {name}"] = _of_fla(operation, normalize=False)
    if peers and session.attempt(_fla_normalises, "fla chunk, normalised"):
        found["fla chunk, normalised"] = _of_fla(peers.chunk_linear_attn, normalize=True)
    fading = session.attempt(lambda: import_module("fla.ops.simple_gla"), "fla") if peers else None
    if fading:
        found["fla simple_gla, fading"] = lambda q, k, v: fading.chunk_simple_gla(
            q, k, v, decay(q.shape[:3], q.device)
        )[0]
    return found


@lru_cache(maxsize=2)
def decay(shape: torch.Size, device: torch.device) -> torch.Tensor:
    """The log of the decay of every token and head, [B, T, H]: half is left after 14 tokens."""
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


def _of_fla(operation: Callable, normalize: bool) -> Attention:
    def call(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return operation(q, k, v, normalize=normalize)[0]

    return call


def _fla_normalises() -> bool:
    """Whether fla normalises. Raises ValueError if its version computes that gradient wrongly."""
    version = import_module("fla").__version__
    if [int(part) for part in re.findall(r"\d+", version)[:3]] < FLA_NORMALISES:
        raise ValueError(f"version {version}, whose gradient of k is wrong; 0.5.1 mended it")
    return True


def peer_versions() -> list[dict[str, str]]:
    """A row for each other library that `implementations` found."""
    return [
        {"library": name, "version": str(getattr(sys.modules[name], "__version__", "unknown"))}
        for name in ("fla", "flash_attn_interface")
        if name in sys.modules
    ]


def draw(shape: list[int], config: dict[str, Any], device: torch.device) -> list[torch.Tensor]:
    """Draw q, k (mapped), v and the gradient of o."""
    generator = torch.Generator(device).manual_seed(config["seed"])
    q, k, v, do = (torch.randn(shape, generator=generator, device=device) for _ in range(4))
    dtype = getattr(torch, config["dtype"])
    return [x.to(dtype) for x in (elu_plus_one(q), elu_plus_one(k), v, do)]


def compare(
    names: dict[str, Attention], config: dict[str, Any], session: Session, tables: Tables
) -> None:
    """Store the errors of every linear implementation against float64, on inputs of their own."""
    compared = tables.get("errors", {}).get("implementation", ())
    names = {n: call for n, call in names.items() if "softmax" not in n and n not in compared}
    if not names:
        return
    shape = config["shape"]
    inputs = draw(shape, {**config, "seed": config["seed"] + 1}, session.device)
    wide = [x.double() for x in inputs]
    kinds: dict[str, Attention] = {"normalised": linear_attention, "fading": _fading}
    kinds[""] = lambda q, k, v: linear_attention(q, k, v, normalize=False)
    exact = {kind: outputs_and_gradients(call, wide) for kind, call in kinds.items()}
    for name, call in names.items():
        wanted = exact[next(kind for kind in kinds if kind in name)]
        once = partial(outputs_and_gradients, call, inputs)
        if found := attempt(name, once, str(shape), session, tables):
            for row in error_rows(name, ("o", "dq", "dk", "dv"), found, wanted, session):
                append(tables, "errors", row)
        session.save(tables)


def attempt(name: str, call: Callable[[], Any], what: str, session: Session, tables: Tables) -> Any:
    """`session.attempt`; an implementation that loses the device is noted, and skipped later."""
    try:
        return session.attempt(call, f"{name} {what}")
    except DeviceLostError:
        append(tables, "lost", {"implementation": name, "during": what})
        session.save(tables)
        raise


def limits(device: torch.device) -> dict[str, Any]:
    """The limits of a device: B/s of a copy, FLOP/s of a bf16 product, bytes of the last cache.

    A copy counts as read and written. If all tensors fit in the cache, they may still be there at
    the next call, so a share of the limit can exceed one.
    """
    return {
        "cache": getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0),
        "copy": copy_rate(device, 2**30),
        "matmul": matmul_rate(device, torch.bfloat16, 8192),
    }


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`. Compare, then time eager calls, then graphs."""
    device, shape, tables = session.device, config["shape"], session.go_on()
    lost = tables.get("lost", {}).get("implementation", ())
    names = {n: call for n, call in implementations(session).items() if n not in lost}
    if "limits" not in tables:
        append(tables, "limits", limits(device))
        for row in peer_versions():
            append(tables, "peers", row)
    copy, cache = (tables["limits"][name][0] for name in ("copy", "cache"))
    session.attempt(lambda: compare(names, config, session, tables), f"{shape}")
    rows = tables.get("rows", {})
    timed = {*zip(rows.get("pass", ()), rows.get("launch", ()), strict=True)}
    inputs = draw(shape, config, device)
    fill_cache = cache_filler(device, cache)
    for i, pass_name in enumerate(PASSES):
        calls = {n: timed_call(call, inputs, pass_name != "forward") for n, call in names.items()}
        for j, launch in enumerate(LAUNCHES):
            if (pass_name, launch) in timed:
                continue
            if session.out_of_time():
                return Outcome(tables, complete=False)
            what = f"{pass_name} {launch} {shape}"
            # The first call compiles, and shows whether the implementation works.
            first = capture if launch == "graph" else _once
            tried = {
                n: attempt(n, partial(first, call), what, session, tables)
                for n, call in calls.items()
            }
            ready = {name: it for name, it in tried.items() if it is not None}
            timer = replay_in_turns if launch == "graph" else measure_in_turns
            for name, timing in timer(ready, device, fill_cache).items() if ready else ():
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
    """A row: a timing beside the limit of its shape."""
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
    "kernel_speed", "the kernels against others and the device's limits", TABLES, runs, perform
)
