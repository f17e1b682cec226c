"""Time the program that the draft of 2024 prints, beside the modes of the package.

The draft computes recurrent mode as a running sum of one outer product a token, in plain torch. It
stores the state after every token. Chunks of one token read and write as many states, but keep one.
All programs take turns at each length, one call each, without a normaliser. Inputs are q, k, v
after the feature map. The same run measures the speed of a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from lsa import linear_attention
from lsa.attention.feature_maps import elu_plus_one

from .harness.bench.timing import TIMING, copy_rate, measure_in_turns, peak_bytes, timed_call
from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import PASS, PASSES, append, table
from .priorities import LATE

TABLES = {
    "limits": table(copy=("B/s", "of a copy of `config.copy_bytes`, read and written")),
    "rows": table(
        program=(
            "name",
            "`cumsum`, the draft's; `attention`, `recurrent`, `chunked`; `chunks of one token`",
        ),
        **PASS,
        length=("tokens", "T"),
        **TIMING,
        peak=("B", "most bytes of tensors alive at once beyond the inputs"),
    ),
}
PACKAGE = {
    "attention": {"mode": "attention"},
    "recurrent": {"mode": "recurrent"},
    "chunked": {"mode": "chunked"},
    "chunks of one token": {"mode": "chunked", "chunk_size": 1},
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """One run: every program at every length. Kernels for CUDA have no chunks of one token."""
    programs = ["cumsum", *(name for name in PACKAGE if kind == "cpu" or "one" not in name)]
    config = {
        "programs": programs,
        "batch": 1,
        "heads": 1,
        "width": 64,
        "dtype": "float32",
        "lengths": [64] if smoke else [256, 1024, 4096],
        "copy_bytes": 2**20 if smoke else 2**28,
        "seed": 0,
    }
    return [Run("draft_speed", "b1-h1-d64", config, 5 if kind == "cpu" else LATE)]


def draft_program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The draft's `cumsum(V.T @ K)`, as it must be meant: one outer product a token.

    q, k [B, T, H, K], v [B, T, H, V]. It stores T states of K x V numbers a head.
    """
    S = (k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(1)
    return (q.unsqueeze(-2) @ S).squeeze(-2)


def program_call(
    program: str, config: dict[str, Any], length: int, backward: bool, device: torch.device
) -> Callable[[], Any]:
    """A function without arguments that computes the outputs once (and their gradients)."""
    shape = (config["batch"], length, config["heads"], config["width"])
    generator = torch.Generator(device).manual_seed(config["seed"])
    q, k, v, do = (torch.randn(shape, generator=generator, device=device) for _ in range(4))
    call: Callable[..., Any] = draft_program
    if program != "cumsum":
        call = partial(linear_attention, normalize=False, scale=1.0, **PACKAGE[program])
    return timed_call(call, (elu_plus_one(q), elu_plus_one(k), v, do), backward)


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`."""
    tables = {"limits": {"copy": [copy_rate(session.device, config["copy_bytes"])]}, "rows": {}}
    points = [(length, of) for length in config["lengths"] for of in PASSES]
    for length, of in session.through(points, tables, str):
        calls = {
            program: program_call(program, config, length, of != "forward", session.device)
            for program in config["programs"]
        }
        for program, timing in measure_in_turns(calls, session.device).items():
            peak = peak_bytes(calls[program], session.device)
            point = {"program": program, "pass": of, "length": length, **timing.columns}
            append(tables, "rows", {**point, "peak": peak})
    return Outcome(tables, session.whole)


EXPERIMENT = Experiment(
    "draft_speed", "the draft's printed program beside the package's modes", TABLES, runs, perform
)
