"""Time every layer at equal width: one tick at different positions, and one step of training.

Only the layers are timed, without norm, residual and MLP, which are the same for all. Calls are
interleaved, so drift affects all layers and positions equally. A tick is timed after its machine
has read the text before it, the last token in the same turn: after a layer with a long cache, a
first tick would find the processor's caches cold. A training step is forward and backward of one
sequence.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn

from lsa.layers import LAYERS, Layer, make_layer
from lsa.machines import state_bytes

from .harness.bench.timing import TICKS, TIMING, measure_in_turns, summarize, synchronize
from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import Tables, append, table

TABLES = {
    "ticks": table(
        optional="in the runs named `tick`",
        layer=("name", "as in `lsa.layers.LAYERS`"),
        position=("tokens", "how many tokens the text has at the first tick, its own among them"),
        **TICKS,
        state=("B", "the state's size after them, the whole batch"),
    ),
    "updates": table(
        optional="in the runs named `update`",
        layer=("name", "as in `lsa.layers.LAYERS`"),
        length=("tokens", "of the sequence"),
        **TIMING,
    ),
}
BLOCK = 1024  # tokens read at once on the way to a position
LENGTHS = (256, 1024, 4096, 16384)
# On longer sequences, training these forms more products of two tokens than memory can hold. The
# machine of the last one has as many parameters, too.
SQUARE, LONGEST_SQUARE = ("taylor", "power", "aft-full"), 4096


def runs(kind: str, smoke: bool) -> list[Run]:
    """Ticks with one text and with many, and a training step at each length."""
    shape = {"d_model": 256, "n_head": 4, "layers": list(LAYERS), "seed": 0}
    if smoke:
        shape |= {"d_model": 16, "layers": ["softmax", "linear", "aft-full", "mamba"]}
    lengths = (16,) if smoke else LENGTHS
    ticks = {"positions": [1, 8] if smoke else [1, *LENGTHS], "ticks": 2 if smoke else 24}
    plan = [
        Run("layer_speed", f"tick-b{batch}", {**shape, "batch": batch, **ticks}, 30)
        for batch in (1, 16)
    ]
    for i, length in enumerate(lengths):
        config = {**shape, "batch": 1, "length": length}
        plan.append(Run("layer_speed", f"update-{length}", config, 31 + i))
    return plan


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`."""
    return updates(config, session) if "length" in config else ticks(config, session)


def _layers(config: dict[str, Any], longest: int, device: torch.device) -> dict[str, nn.Module]:
    """Every layer, with the same seed; one that needs a maximum length gets what memory allows."""
    made = {}
    for name in config["layers"]:
        torch.manual_seed(config["seed"])
        length = min(longest, LONGEST_SQUARE)
        layer = make_layer(name, config["d_model"], config["n_head"], max_length=length)
        made[name] = cast("nn.Module", layer).to(device)
    return made


def updates(config: dict[str, Any], session: Session) -> Outcome:
    """Time forward and backward of every layer, in turns."""
    layers = _layers(config, config["length"], session.device)
    if config["length"] > LONGEST_SQUARE:
        layers = {name: layer for name, layer in layers.items() if name not in SQUARE}
    shape = (config["batch"], config["length"], config["d_model"])
    x = torch.randn(shape, device=session.device)

    def step(layer: nn.Module) -> Callable[[], None]:
        def call() -> None:
            layer.zero_grad(set_to_none=True)
            layer(x).square().mean().backward()

        return call

    timed = measure_in_turns({n: step(layer) for n, layer in layers.items()}, session.device)
    tables: Tables = {}
    for name, timing in timed.items():
        row = {"layer": name, "length": config["length"], **timing.columns}
        append(tables, "updates", row)
    return Outcome(tables)


@torch.no_grad()
def ticks(config: dict[str, Any], session: Session) -> Outcome:
    """Time ticks of every layer's machine after each position, all in turns."""
    longest = config["positions"][-1] + 2 * config["ticks"]
    layers = _layers(config, longest, session.device)
    machines = {name: cast("Layer", layer).machine() for name, layer in layers.items()}

    def inputs(n: int) -> Tensor:
        return torch.randn(config["batch"], n, config["d_model"], device=session.device)

    states: dict[tuple[int, str], Any] = {}
    for i, (name, machine) in enumerate(machines.items()):
        state, read = machine.initial_state, 0
        for position in config["positions"]:
            if (machine.max_length or longest) < position + 2 * config["ticks"]:
                break
            while read < position - 1:
                if session.out_of_time():
                    return Outcome({}, complete=False)
                n = min(BLOCK, position - 1 - read)
                state, _ = machine.prefill(state, inputs(n))
                read += n
            states[position, name] = state
        session.show(i + 1, len(machines), f"read by {name}")
    seconds: dict[tuple[int, str], list[float]] = {turn: [] for turn in sorted(states)}
    for _ in range(config["ticks"]):
        x = inputs(1)[:, 0]
        for turn, taken in seconds.items():
            step = machines[turn[1]].step
            # Not timed: it brings weights and state back into the processor's caches.
            states[turn], _ = step(states[turn], x)
            synchronize(session.device)
            began = time.perf_counter()
            states[turn], _ = step(states[turn], x)
            synchronize(session.device)
            taken.append(time.perf_counter() - began)
    tables: Tables = {}
    for position in config["positions"]:
        for name in machines:
            if taken := seconds.get((position, name)):
                size = {"state": state_bytes(states[position, name])}
                row = {"layer": name, "position": position, **summarize(taken).columns, **size}
                append(tables, "ticks", row)
    return Outcome(tables)


EXPERIMENT = Experiment(
    "layer_speed", "every layer's tick and training step, at equal width", TABLES, runs, perform
)
