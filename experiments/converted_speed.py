"""Time and memory per token of a trained model in which all, some or none of the heads look back.

A model of SmolLM2-135M's shape, batch 1. All heads attend with softmax, or with a window and the
first tokens, or with these and a state. Or the first 8 or 24 heads of the ranking attend with
softmax and the others with the window. Tokens are timed at positions up to 65,536, in all variants
in turns. Weights and the text before are random, since the time of a token does not depend on them.
The caches of a group of three heads are kept whole if one of the three looks back.
"""

from __future__ import annotations

import time
from copy import deepcopy
from typing import Any

import torch

from lsa.llama import Llama, LlamaConfig
from lsa.machines import state_bytes

from .harness.bench.long_states import state_at
from .harness.bench.timing import TICKS, doublings, summarize
from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import append, table
from .recipes import attention_of, first_heads

NEAR = {"window": 64, "first": 4}
WINDOW = {"kind": "window", **NEAR}
STATE = {"kind": "window-state", "feature_map": "hedgehog", **NEAR}
WAYS: dict[str, dict[str, Any]] = {
    "softmax": {"all": {"kind": "softmax"}, "first": 0},
    "softmax in 24": {"all": WINDOW, "first": 24},
    "softmax in 8": {"all": WINDOW, "first": 8},
    "window": {"all": WINDOW, "first": 0},
    "window and state": {"all": STATE, "first": 0},
}
TABLES = {
    "rows": table(
        way=("name", "how the heads attend"),
        position=("tokens", "how many tokens the text has when the ticks begin"),
        **TICKS,
        state=("B", "of caches and states after them, all layers, float32"),
    ),
}
BASE: dict[str, Any] = {
    "model": "SmolLM2-135M-Instruct",
    "order": "gradient",
    "ways": WAYS,
    "shape": {},
    "longest": 65536,
    "ticks": 24,
    "seed": 0,
}
SMALL = {"n_layer": 2, "d_model": 36, "head_width": 4, "d_mlp": 24, "vocab_size": 64}
SMOKE = {"order": "counted", "shape": SMALL, "longest": 128, "ticks": 3}
SMOKE["ways"] = {name: {**way, "first": way["first"] // 3} for name, way in WAYS.items()}


def runs(kind: str, smoke: bool) -> list[Run]:
    """One run; takes some minutes on a quiet computer."""
    if smoke:
        return [Run("converted_speed", "batch-1", {**BASE, **SMOKE}, 0)]
    return [Run("converted_speed", "batch-1", BASE, 600)] if kind == "cpu" else []


@torch.no_grad()
def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`. It continues after the last complete position."""
    tables = session.go_on()
    timed = set(tables.get("rows", {}).get("position", []))
    torch.manual_seed(config["seed"])
    model = Llama(LlamaConfig(**config["shape"])).requires_grad_(False)
    positions = doublings(32, config["longest"])
    models: dict[str, Llama] = {}
    for name, way in config["ways"].items():
        models[name] = deepcopy(model, {id(p): p for p in model.parameters()})  # the same weights
        heads = first_heads(config, way["first"], session)
        models[name].attend(attention_of(way["all"], heads))
    for position in session.through(positions, tables, "{:,} tokens".format, timed):
        for name, row in _timed(models, position, config["ticks"]).items():
            append(tables, "rows", {"way": name, "position": position, **row})
    return Outcome(tables, session.whole)


def _timed(models: dict[str, Llama], position: int, ticks: int) -> dict[str, dict[str, Any]]:
    """Seconds and bytes of each model; each ticks once a round, and the first round is dropped."""
    machines = {name: model.machine() for name, model in models.items()}
    states = {name: state_at(model, position) for name, model in models.items()}
    seconds: dict[str, list[float]] = {name: [] for name in models}
    token = torch.zeros(1, dtype=torch.long)
    for i in range(ticks + 1):
        for name, machine in machines.items():
            began = time.perf_counter()
            states[name], _ = machine.step(states[name], token)
            if i:
                seconds[name].append(time.perf_counter() - began)
    return {
        name: {**summarize(seconds[name]).columns, "state": state_bytes(states[name])}
        for name in models
    }


EXPERIMENT = Experiment(
    "converted_speed", "one token of a trained model's shape when few heads may look back, or none",
    TABLES, runs, perform,
)  # fmt: skip
