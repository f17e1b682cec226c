"""Compiled kernels: their registers, their instructions, and the bytes that they should move.

Needs no GPU: every kernel that a call and its gradient launch is compiled for Ampere and for
Hopper, planned as on an A100 and on an H100. Bytes are counted from the launch, each input and
output of a program's tile once; instructions in the machine code. Each version of Triton has runs
of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from .harness.bench.traffic import traffic
from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.provenance import installed_triton
from .harness.core.tables import Tables, append, table
from .priorities import LATE

TABLES = {
    "rows": table(
        mode=("name", "the mode called"),
        kernel=("name", "the kernel launched, and in which role"),
        width=("features", "K = V"),
        feature_map=("name", "applied to q and k as they are loaded"),
        normalized=("yes or no", "whether the sum is divided by the normaliser"),
        decay=("yes or no", "whether the state fades, and its gradient is asked for"),
        programs=("programs", "how many the launch starts"),
        warps=("warps", "of a program"),
        registers=("registers a thread", "as the compiler allots them"),
        spilled=("B a thread", "registers spilled to memory"),
        shared=("B", "shared memory of a program"),
        resident=(
            "programs a multiprocessor",
            "how many a multiprocessor holds, by registers, shared memory and warps",
        ),
        instructions=(
            "instructions a token and head",
            "of all warps, in the main loop; in attention mode for each tile of tokens before",
        ),
        warnings=(
            "name",
            "codes of ptxas's warnings, or none; C7515: a wgmma waits for the one before",
        ),
        wgmma=("instructions", "tensor-core products of Hopper in the code"),
        mma=("instructions", "tensor-core products of Ampere in the code"),
        traffic=("B a token and head", "inputs and outputs of the launch, each once; states aside"),
    ),
    "sources": table(
        file=("name", "a module of the kernels"),
        digest=("name", "of its code, comments and docstrings aside"),
    ),
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """One run per compute capability, the same on every device; none without a compiler."""
    triton = installed_triton()
    if triton is None:
        return []
    config = {
        "triton": triton,
        "dtype": "bfloat16",
        "batch": 2,
        "length": 4096,
        "heads": 16,
        "widths": [64] if smoke else [64, 128, 256],
        "modes": ["chunked"] if smoke else ["attention", "recurrent", "chunked"],
        "feature_maps": ["identity"] if smoke else ["identity", "elu_plus_one"],
        "decay": [False] if smoke else [False, True],
        "seed": 0,
    }
    priority = 3 if kind == "cpu" else LATE
    return [
        Run("kernel_build", f"sm{arch}-triton-{triton}", {"arch": arch, **config}, priority)
        for arch in (90, 80)
    ]


def instructions(launched: Any, built: Any, config: dict[str, Any]) -> float:
    """Instructions of all warps for one token of one head in the main loop.

    One round takes C tokens (one in recurrent mode); in attention mode it takes them through C
    earlier tokens. 0 for launches that do not loop over tokens.
    """
    from .harness.bench.compiling import loop_length

    arguments, kernel = launched.arguments, launched.name.split(":")[0]
    if kernel in ("scan_kernel", "delta_kernel", "decay_gradient_kernel"):
        return 0.0
    C = arguments.get("C", 1)
    tiles = -(-config["length"] // C) if kernel == "tile_kernel" else arguments.get("G", 1)
    programs = launched.programs / (config["batch"] * config["heads"] * tiles)
    return loop_length(built.cubin) * launched.options["num_warps"] * programs / C


@dataclass(frozen=True)
class Case:
    """A call to compile. K = V is its width; decay: for every token, with its gradient."""

    mode: str
    width: int
    feature_map: str
    normalize: bool
    decay: bool = False


def call(case: Case, config: dict[str, Any]) -> None:
    """One call and its gradient on tensors without storage."""
    from importlib import import_module

    from lsa.attention.call import Call

    file = "chunked.passes" if case.mode == "chunked" else case.mode
    module = import_module(f"lsa.attention.triton.{file}")
    shape = (config["batch"], config["length"], config["heads"], case.width)
    dtype = getattr(torch, config["dtype"])
    q, k, v, do = (torch.empty(shape, dtype=dtype, device="meta") for _ in range(4))
    g = torch.empty(shape[:3], device="meta") if case.decay else None
    made = Call(
        q, k, v, g=g, scale=case.width**-0.5, normalize=case.normalize,
        feature_map=case.feature_map, with_dg=case.decay,
    )  # fmt: skip
    module.backward(made, module.forward(made), do, None, None)


def compiled(case: Case, config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A row for each launch of a call and its gradient."""
    from lsa.attention.triton.tuning.gpu import AMPERE, HOPPER, planned_for

    from .harness.bench.compiling import build, record_launches, resources

    with planned_for({80: AMPERE, 90: HOPPER}[config["arch"]]):
        made = record_launches(lambda: call(case, config))
    for launched in made:
        built = build(launched, config["arch"])
        yield {
            "mode": case.mode,
            "kernel": launched.name,
            "width": case.width,
            "feature_map": case.feature_map,
            "normalized": "yes" if case.normalize else "no",
            "decay": "yes" if case.decay else "no",
            **resources(launched, built),
            "instructions": instructions(launched, built, config),
            "wgmma": built.wgmma,
            "mma": built.mma,
            "traffic": traffic(launched.arguments, launched.name),
        }


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run: record launches, compile and count; see `plan.Experiment`."""
    from .harness.bench.compiling import kernel_digests

    tables: Tables = {}
    cases = [
        Case(mode, width, feature_map, normalize, decay)
        for mode in config["modes"]
        for width in config["widths"]
        for feature_map in config["feature_maps"]
        for normalize in (False, True)
        for decay in config["decay"]
    ]
    for case in session.through(cases, tables, str):
        for row in compiled(case, config):
            append(tables, "rows", row)
    for file, digest in kernel_digests().items():
        append(tables, "sources", {"file": file, "digest": digest})
    return Outcome(tables, session.whole)


EXPERIMENT = Experiment(
    "kernel_build", "registers, shared memory and bytes of every kernel", TABLES, runs, perform
)
