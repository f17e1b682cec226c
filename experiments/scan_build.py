"""Compiled kernels of the selective scan: registers, instructions, bytes.

Needs no GPU: every kernel that a call and its gradient launch, in segments and with states at both
ends, is compiled for Ampere and for Hopper. The instructions are counted in the machine code.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import torch

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import Tables, append, table
from .priorities import LATE

TABLES = {
    "rows": table(
        kernel=("name", "the kernel launched; R: backwards in time"),
        input_rule=("name", "how B is discretised: `euler` or `zoh`"),
        dtype=("name", "of u and y; Δ, A, B and C are float32, as in the layer"),
        state=("numbers", "N, of a channel"),
        programs=("programs", "how many the launch starts"),
        warps=("warps", "of a program"),
        registers=("registers a thread", "as the compiler allots them"),
        spilled=("B a thread", "registers spilled to memory"),
        shared=("B", "shared memory of a program"),
        resident=("programs a multiprocessor", "by registers, shared memory and warps"),
        instructions=(
            "instructions",
            "of a warp, for one number of the state of 32 channels at one token, in the main loop",
        ),
        warnings=("name", "codes of ptxas's warnings, or none"),
    ),
    "sources": table(
        file=("name", "a module of the kernels"),
        digest=("name", "of its code, comments and docstrings aside"),
    ),
}
# Launches of the book's layers: Mamba's state, in both precisions, by both rules, and a wider one.
CASES = [
    ("euler", "float32", 16),
    ("euler", "bfloat16", 16),
    ("zoh", "float32", 16),
    ("euler", "float32", 32),
]


def runs(kind: str, smoke: bool) -> list[Run]:
    """One run per compute capability, the same on every device; none without a compiler."""
    if not find_spec("triton"):
        return []
    config = {
        "batch": 4,
        "length": 4096,
        "channels": 1536,
        "segments": 4,
        "cases": [["euler", "float32", 4]] if smoke else [list(case) for case in CASES],
        "seed": 0,
    }
    priority = 3 if kind == "cpu" else LATE
    return [Run("scan_build", f"sm{arch}", {"arch": arch, **config}, priority) for arch in (90, 80)]


def call(config: dict[str, Any], rule: str, dtype: str, N: int) -> None:
    """One call and its gradient on tensors without storage."""
    from lsa.scans.kernels import selective

    B, T, D = config["batch"], config["length"], config["channels"]

    def new(*shape: int) -> torch.Tensor:
        return torch.empty(shape, device="meta")

    u = new(B, T, D).to(getattr(torch, dtype))
    x = (u, new(B, T, D), new(D, N), new(B, T, N), new(B, T, N), new(B, D, N))
    problem = selective.Problem(*x, rule)
    cut = (config["segments"], T // config["segments"])
    y, last, kept = selective.forward(problem, keep=True, cut=cut)
    selective.backward(problem, kept, y, last, cut=cut)


def instructions(launched: Any, built: Any, state: int) -> float:
    """Instructions of a warp for one number of state of 32 channels; 0 for other launches."""
    from .harness.bench.compiling import loop_length

    arguments = launched.arguments
    if "CHUNK" not in arguments:
        return 0.0
    channels = arguments.get("BD") or arguments["R"] * arguments["BL"]
    numbers = arguments["CHUNK"] * state * channels / 32
    return loop_length(built.cubin) * launched.options["num_warps"] / numbers


def compiled(config: dict[str, Any], rule: str, dtype: str, N: int) -> Iterator[dict[str, Any]]:
    """A row for each launch of a call and its gradient."""
    from .harness.bench.compiling import build, record_launches, resources

    for launched in record_launches(lambda: call(config, rule, dtype, N)):
        built = build(launched, config["arch"])
        yield {
            "kernel": launched.name,
            "input_rule": rule,
            "dtype": dtype,
            "state": N,
            **resources(launched, built),
            "instructions": round(instructions(launched, built, N), 3),
        }


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run: record launches, compile and count; see `plan.Experiment`."""
    from lsa.scans import kernels

    from .harness.bench.compiling import kernel_digests

    tables: Tables = {}
    for rule, dtype, N in session.through(config["cases"], tables, str):
        for row in compiled(config, rule, dtype, N):
            append(tables, "rows", row)
    for file, digest in kernel_digests(kernels).items():
        append(tables, "sources", {"file": file, "digest": digest})
    return Outcome(tables, session.whole)


EXPERIMENT = Experiment(
    "scan_build", "registers and instructions of the scan kernels", TABLES, runs, perform
)
