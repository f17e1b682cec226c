"""Time the selective scan of one layer: in order, as a tree, by the kernels, and by mamba_ssm.

One run is one length. Everything that can run there takes turns on the same inputs, so that ratios
hold when the device's speed drifts. A CPU runs a narrow layer in plain torch. CUDA runs the width
of Mamba-130M in 16 bits, with the Triton kernels and, if installed, Mamba's own. First the results
of all are compared with float64. The limit is the time to read the inputs and write the results
once, at the copy speed of the same run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from lsa.scans import selective_scan

from .harness.bench.errors import error_rows, outputs_and_gradients
from .harness.bench.timing import TIMING, copy_rate, measure_in_turns, timed_call
from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import PASS, PASSES, Tables, append, table
from .priorities import REST

TABLES = {
    "limits": table(
        copy=("B/s", "of a copy of `config.copy_bytes`, read and written, in this run")
    ),
    "errors": table(
        implementation=(
            "name",
            "`steps`, `tree`: plain torch; `kernel`: Triton, on CUDA; `mamba_ssm`: Mamba's own",
        ),
        tensor=("name", "`y`, and the gradients `du`, `ddelta`, `dA`, `dB`, `dC`"),
        error=("relative RMS", "of the difference from float64, in `config.compared` tokens"),
    ),
    "rows": table(
        implementation=("name", "as in `errors`"),
        **PASS,
        length=("tokens", "T"),
        **TIMING,
        rate=("B/s", "least bytes over the time: u, Δ, B, C and y, and those of the gradients"),
        share=("of the limit", "the same over the copy's rate"),
    ),
}
LENGTHS = {"cpu": (256, 1024, 4096, 16384), "cuda": (256, 1024, 4096, 16384, 65536)}
# Past this, the graph that plain torch differentiates stores more states than memory can hold.
LONGEST_PLAIN = {"forward": 65536, "forward+backward": 16384}
TENSORS = ("y", "du", "ddelta", "dA", "dB", "dC")
Scan = Callable[..., Tensor]


def runs(kind: str, smoke: bool) -> list[Run]:
    """One run a length."""
    gpu = kind == "cuda"
    shape = {"channels": 1536 if gpu else 256, "state": 16}
    if smoke:
        shape = {"channels": 4, "state": 2}
    config = {
        "batch": 1,
        **shape,
        "dtype": "bfloat16" if gpu else "float32",
        "input_rule": "euler",
        "compared": 8 if smoke else 1024 if gpu else 256,
        "copy_bytes": 2**20 if smoke else 2**30 if gpu else 2**28,
        "seed": 0,
    }
    lengths = (16,) if smoke else LENGTHS[kind]

    return [
        Run("scan_speed", f"t{length}", {**config, "length": length}, (REST if gpu else 6) + i)
        for i, length in enumerate(lengths)
    ]


def implementations(device: torch.device, session: Session) -> dict[str, Scan]:
    """All implementations that run here, by name; all take u, delta, A, B, C and return y."""
    found: dict[str, Scan] = {
        mode: partial(_by_mode, mode=mode)
        for mode in ("steps", "tree", *(["kernel"] if device.type == "cuda" else []))
    }
    if device.type == "cuda":
        peer = session.attempt(
            lambda: import_module("mamba_ssm.ops.selective_scan_interface"), "mamba_ssm"
        )
        if peer:
            found["mamba_ssm"] = partial(_by_mamba, peer.selective_scan_fn)
    return found


def _by_mode(u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, mode: str) -> Tensor:
    return selective_scan(u, delta, A, B, C, mode=mode)[0]


def _by_mamba(scan: Scan, u: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor) -> Tensor:
    """Mamba's own scan. Its layout has time last; `draw` makes inputs of which it gets views."""
    return scan(*(x.transpose(1, 2) for x in (u, delta)), A, B.transpose(1, 2), C.transpose(1, 2))


def draw(
    config: dict[str, Any], length: int, device: torch.device, *, time_last: bool = False
) -> list[Tensor]:
    """Draw u, Δ, A, B, C and the gradient of y; Δ and A as a Mamba block initialises them."""
    batch, D, N = config["batch"], config["channels"], config["state"]
    generator = torch.Generator(device).manual_seed(config["seed"])

    def new(width: int) -> Tensor:
        return torch.randn(batch, length, width, generator=generator, device=device)

    u, B, C, dy = new(D), new(N), new(N), new(D)
    low, high = math.log(1e-3), math.log(1e-1)
    steps = torch.rand(D, generator=generator, device=device) * (high - low) + low
    delta = steps.exp() * (1 + 0.1 * new(D)).abs()
    A = -torch.arange(1.0, N + 1, device=device).repeat(D, 1)
    dtype = getattr(torch, config["dtype"])
    rows = [x.to(dtype) for x in (u, delta, B, C, dy)]
    if time_last:
        rows = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in rows]
        rows[4] = rows[4].transpose(1, 2)
    return [rows[0], rows[1], A, *rows[2:]]


def compare(
    names: dict[str, Scan], config: dict[str, Any], session: Session
) -> list[dict[str, Any]]:
    """The errors of every implementation against float64."""
    length = min(config["length"], config["compared"])
    inputs = draw(config, length, session.device)
    exact = outputs_and_gradients(partial(_by_mode, mode="steps"), [x.double() for x in inputs])
    rows = []
    for name, call in names.items():
        given = draw(config, length, session.device, time_last=name == "mamba_ssm")
        found = session.attempt(partial(outputs_and_gradients, call, given), name)
        if found:
            y, *gradients = found
            y = y.transpose(1, 2) if name == "mamba_ssm" else y
            rows += error_rows(name, TENSORS, (y, *gradients), exact, session)
    return rows


def least_bytes(config: dict[str, Any], backward: bool) -> float:
    """Bytes of a call's inputs and results: 3 D + 2 N numbers a token, 8 D + 6 N with gradients."""
    size = getattr(torch, config["dtype"]).itemsize
    D, N, tokens = config["channels"], config["state"], config["batch"] * config["length"]
    return size * tokens * (8 * D + 6 * N if backward else 3 * D + 2 * N)


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`. Compare, then time forwards, then with gradients."""
    device, tables = session.device, Tables()
    copy = copy_rate(device, config["copy_bytes"])
    append(tables, "limits", {"copy": copy})
    names = implementations(device, session)
    for row in compare(names, config, session):
        append(tables, "errors", row)
    for pass_name in session.through(PASSES, tables, str):
        backward = pass_name != "forward"
        calls = {}
        for name, call in names.items():
            plain = name in ("steps", "tree")
            if plain and config["length"] > LONGEST_PLAIN[pass_name]:
                continue
            inputs = draw(config, config["length"], device, time_last=name == "mamba_ssm")
            ready = timed_call(call, inputs, backward)
            # The first call compiles, and shows whether the implementation works.
            if session.attempt(lambda ready=ready: (ready(), True), f"{name} {pass_name}"):
                calls[name] = ready
        for name, timing in measure_in_turns(calls, device).items() if calls else ():
            rate = least_bytes(config, backward) / timing.median
            row = {"implementation": name, "pass": pass_name, "length": config["length"]}
            row |= {**timing.columns, "rate": round(rate), "share": round(rate / copy, 5)}
            append(tables, "rows", row)
    return Outcome(tables, session.whole)


EXPERIMENT = Experiment(
    "scan_speed", "the selective scan: in order, as a tree, by kernels", TABLES, runs, perform
)
