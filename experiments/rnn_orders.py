"""A deep RNN in two orders: through all layers tick by tick, or layer by layer.

Both compute the same function. Time-major takes each token through all layers before the next one;
layer-major takes all tokens through a layer before the next layer. A third variant has layer-major
order but performs exactly the operations of time-major, one vector at a time. It differs from
time-major only in the use of the cache. It differs from layer-major because there all outputs of a
layer are multiplied by their matrix at once. All three take turns at each shape inside one run, on
one core of a CPU. So they differ in the order of the work, not in how cores share it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from lsa import DeepRNN, unroll

from .harness.bench.timing import TIMING, measure_in_turns
from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import Tables, append, table
from .priorities import LATE

TABLES = {
    "rows": table(
        order=("name", "`time-major`; `layer-major, tick by tick`; `layer-major`"),
        layers=("layers", "one above the other"),
        width=("features", "of every layer"),
        length=("tokens", "T"),
        **TIMING,
        weights=("B", "of all layers"),
        difference=(
            "of the largest output",
            "largest difference from layer-major's outputs; past 1e-4 the run stops",
        ),
    ),
}
TOLERANCE = 1e-4  # float32 sums in another order; a real error has the size of the outputs


def runs(kind: str, smoke: bool) -> list[Run]:
    """One run: every number of layers at every width and length."""
    config = {
        "batch": 1,
        "dtype": "float32",
        "threads": 1,
        "layers": [1, 2] if smoke else [1, 2, 4, 8, 16],
        "widths": [8] if smoke else [64, 256, 512, 1024],
        "lengths": [4] if smoke else [32, 128],
        "seed": 0,
    }
    return [Run("rnn_orders", "b1", config, 4 if kind == "cpu" else LATE)]


def orders(deep: DeepRNN) -> dict[str, Callable[[Tensor], Tensor]]:
    """The three programs, by name."""

    def tick_by_tick(x: Tensor) -> Tensor:
        for layer in deep:
            x = unroll(layer.machine())(x)
        return x

    return {
        "time-major": unroll(deep.machine()),
        "layer-major, tick by tick": tick_by_tick,
        "layer-major": deep,
    }


@torch.no_grad()
def measure_shape(
    layers: int, width: int, length: int, config: dict[str, Any], device: torch.device
) -> list[dict[str, Any]]:
    """A row an order. Raises ArithmeticError if they do not compute the same function."""
    torch.manual_seed(config["seed"])
    dtype = getattr(torch, config["dtype"])
    deep = DeepRNN(width, layers).to(device, dtype)
    x = torch.randn(config["batch"], length, width, dtype=dtype).to(device)
    programs = orders(deep)
    expected = deep(x)
    differences = {
        name: ((program(x) - expected).abs().max() / expected.abs().max()).item()
        for name, program in programs.items()
    }
    for name, difference in differences.items():
        if not difference < TOLERANCE:
            raise ArithmeticError(f"{name}: not the same function, off by {difference:.1e}")
    timings = measure_in_turns(
        {name: lambda program=program: program(x) for name, program in programs.items()}, device
    )
    return [
        {
            "order": name,
            "layers": layers,
            "width": width,
            "length": length,
            **timing.columns,
            "weights": sum(p.nbytes for p in deep.parameters()),
            "difference": differences[name],
        }
        for name, timing in timings.items()
    ]


def measure_here(
    layers: Sequence[int] = (1, 2, 4, 8), width: int = 1024, length: int = 128
) -> list[dict[str, Any]]:
    """The same rows, measured on a reader's computer; nothing is stored."""
    config = {"batch": 1, "dtype": "float32", "seed": 0}
    cpu = torch.device("cpu")
    return [row for n in layers for row in measure_shape(n, width, length, config, cpu)]


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run, with its own number of threads; see `plan.Experiment`."""
    threads = torch.get_num_threads()
    torch.set_num_threads(config["threads"])
    try:
        return measure_all(config, session)
    finally:
        torch.set_num_threads(threads)


def measure_all(config: dict[str, Any], session: Session) -> Outcome:
    """Measure every shape of the plan, until the budget ends."""
    tables: Tables = {}
    shapes = list(itertools.product(config["widths"], config["lengths"], config["layers"]))
    for width, length, layers in session.through(shapes, tables, str):
        for row in measure_shape(layers, width, length, config, session.device):
            append(tables, "rows", row)
    return Outcome(tables, session.whole)


EXPERIMENT = Experiment(
    "rnn_orders", "a deep RNN through time and layer by layer", TABLES, runs, perform
)
