"""Time linear attention on one core: compiled, in plain torch; softmax; and the core's limit.

All implementations of one shape take turns on one thread. Each timed call follows an untimed one of
the same implementation, so that it does not depend on the caches and memory of another. Just
before, a large product of matrices is timed, which gives the core's limit. `steps` goes from plain
torch to the compiled body step by step, at one shape, in turns. A separate run times one token,
from one state to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import torch

from lsa import linear_attention, softmax_attention
from lsa.attention import compiled
from lsa.attention.api import LinearState
from lsa.attention.feature_maps import elu_plus_one

from .harness.bench.timing import TIMING, copy_rate, matmul_rate, measure_in_turns
from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import PASS, PASSES, Tables, append, table
from .priorities import LATE

SHAPE = {
    "heads": ("count", "H"),
    "width": ("numbers", "of a head, K = V"),
    "length": ("tokens", "T"),
    "matmul": ("FLOP/s", "of a square product of side `config.matmul_side`, just before"),
}
TABLES = {
    "limits": table(
        copy=("B/s", "of a copy of `config.copy_bytes`, read and written, in this run"),
        instructions=("name", "that the compiled body uses; empty where none was built"),
    ),
    "rows": table(
        implementation=(
            "name",
            "`softmax`; linear attention `compiled`, `decayed` (the same with a decay a token) "
            "and in plain `torch`",
        ),
        **PASS,
        **SHAPE,
        **TIMING,
        optional="empty in the run of one token",
    ),
    "steps": table(
        step=("name", "`torch` or an instruction set, and the mode"),
        **SHAPE,
        **TIMING,
    ),
}
# Heads, width and lengths.
GRID = (
    (1, 64, (16, 64, 256, 1024, 8192, 65536)),
    (16, 64, (16, 64, 256, 2048)),
    (1, 32, (1024, 8192)),
    (1, 128, (1024, 8192)),
)
LONGEST_SOFTMAX = 8192  # half a second a call, and two with gradients


def runs(kind: str, smoke: bool) -> list[Run]:
    """On a CPU, one run of whole texts and one of a single token."""
    if kind != "cpu":
        return []
    config: dict[str, Any] = {
        "grid": [[1, 16, [16, 64]]] if smoke else [[*shape, [*n]] for *shape, n in GRID],
        "step": [1, 16, 64] if smoke else [1, 64, 4096],
        "matmul_side": 64 if smoke else 1024,
        "copy_bytes": 2**20 if smoke else 2**28,
        "seed": 0,
    }
    token = {**config, "grid": [], "step": [1, 16, 1] if smoke else [16, 64, 1], "state": True}
    return [
        Run("cpu_speed", "one-thread", config, LATE),
        Run("cpu_speed", "one-token", token, LATE),
    ]


def library(name: str) -> compiled.Library | str:
    """The compiled body of an instruction set, or the reason why there is none."""
    try:
        return compiled.open_body(name)
    except ValueError as error:
        return str(error)


def call_of(
    shape: tuple[int, int, int], seed: int, body: compiled.Library | str,
    *, mode: str = "chunked", decays: bool = False, backward: bool = False, state: bool = False,
) -> Callable[[], Any]:  # fmt: skip
    """A function without arguments that computes the attention once (and its gradients).

    body: an instruction set, or plain torch. mode: of linear attention, or softmax. state: continue
        from a state, and return the one after the last token.
    """
    heads, width, length = shape
    generator = torch.Generator().manual_seed(seed)
    q, k, v, do = (torch.randn(1, length, heads, width, generator=generator) for _ in range(4))
    g = -0.1 * torch.rand(1, length, heads, generator=generator) if decays else None
    q, k = elu_plus_one(q), elu_plus_one(k)
    inputs = [x.requires_grad_(backward) for x in (q, k, v)]
    S = torch.randn(1, heads, width, width, generator=generator)
    before = LinearState(S, torch.ones(1, heads, width))

    def forward() -> Any:
        if mode == "softmax":
            return softmax_attention(*inputs)
        if state:
            return linear_attention(*inputs, mode=mode, initial_state=before, return_state=True)
        return linear_attention(*inputs, mode=mode, log_decay=g)

    def call() -> Any:
        compiled.BODY, compiled.AVAILABLE = body, isinstance(body, compiled.Library)
        if backward:
            return torch.autograd.grad(forward(), inputs, do)
        with torch.no_grad():
            return forward()

    return call


def in_turns(shape: tuple[int, int, int], direction: str, config: dict[str, Any]) -> dict[str, Any]:
    """Time all implementations of one shape, in turns."""
    backward, seed, best = direction != "forward", config["seed"], library("compiled")
    calls = {"torch": call_of(shape, seed, "", backward=backward)}
    if isinstance(best, compiled.Library):
        calls["compiled"] = call_of(shape, seed, best, backward=backward)
        calls["decayed"] = call_of(shape, seed, best, decays=True, backward=backward)
    if shape[-1] <= LONGEST_SOFTMAX:
        calls["softmax"] = call_of(shape, seed, "", mode="softmax", backward=backward)
    return calls


def steps(shape: tuple[int, int, int], config: dict[str, Any]) -> dict[str, Any]:
    """Time the steps from plain torch, token by token, to chunks with widest vectors; forward."""
    state = config.get("state", False)
    bodies = {name: library(name) for name in ("avx2", "avx512", "neon")}
    bodies = {n: body for n, body in bodies.items() if isinstance(body, compiled.Library)}
    return {
        f"{name} {mode}": call_of(shape, config["seed"], body, mode=mode, state=state)
        for name, body in {"torch": "", **bodies}.items()
        for mode in ("recurrent", "chunked")
    }


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run on one thread; see `plan.Experiment`."""
    before = torch.get_num_threads(), compiled.BODY, compiled.AVAILABLE
    torch.set_num_threads(1)
    try:
        with mock.patch.multiple(compiled, BODY=before[1], AVAILABLE=before[2]):
            return _measured(config, session)
    finally:
        torch.set_num_threads(before[0])


def _measured(config: dict[str, Any], session: Session) -> Outcome:
    best = library("compiled")
    if not (tables := session.go_on()):
        name = best.name if isinstance(best, compiled.Library) else ""
        rate = copy_rate(session.device, config["copy_bytes"])
        tables: Tables = {"limits": {"copy": [rate], "instructions": [name]}}
    points = [
        ((heads, width, length), direction)
        for heads, width, lengths in config["grid"]
        for length in lengths
        for direction in PASSES
    ]
    points.append((tuple(config["step"]), "steps"))
    there = tables.get("rows", {})
    columns = [there.get(name, ()) for name in ("heads", "width", "length", "pass")]
    done = {(tuple(shape), direction) for *shape, direction in zip(*columns, strict=True)}
    for shape, direction in session.through(points, tables, str, done):
        heads, width, length = shape
        rate = matmul_rate(session.device, torch.float32, config["matmul_side"])
        same = {"heads": heads, "width": width, "length": length, "matmul": rate}
        is_step = direction == "steps"
        calls = steps(shape, config) if is_step else in_turns(shape, direction, config)
        for name, timing in measure_in_turns(calls, session.device, settle=True).items():
            own = {"step": name} if is_step else {"implementation": name, "pass": direction}
            append(tables, "steps" if is_step else "rows", own | same | timing.columns)
    return Outcome(tables, session.whole)


EXPERIMENT = Experiment(
    "cpu_speed", "linear attention on one core, beside its limit", TABLES, runs, perform
)
