"""Recall by layers with a gate, whose first half-life is set instead of drawn with the seed.

A layer with one head draws one first decay for each seed. In `made_up_tasks` one seed of the gated
delta rule never left chance. Here every seed starts at every half-life; all else is as there, at
its middle learning rate. So the first decay and what else a seed draws are told apart.
"""

from __future__ import annotations

from itertools import product
from math import expm1, log
from typing import Any

import torch

from lsa.gpt import GPT
from lsa.layers.gated import HeadDecay

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import Tables, append, table
from .harness.learning.answers import TEST_SEED, ask
from .harness.learning.task_training import ENDING, SMOKE, TASKS, TRAINING, TaskTraining

HALF_LIVES = (0.25, 0.5, 1, 4, 16, 64)  # tokens; the texts have up to 256
SEEDS = (0, 1, 2)
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "gated-delta": ("delta", {"gated": True}),
    "gated": ("gated", {"decay": "head"}),
}
TABLES = {
    "end": table(
        **ENDING,
        half_life=("tokens", "of the state after training, where the input of the gate is zero"),
    ),
    "test": table(
        optional="empty where a loss was not finite",
        length=("tokens", "of a text"),
        pairs=("number", "asked for in a text"),
        questions=("number", "asked in all"),
        accuracy=("share", "answered right"),
        loss=("nats/answer", "mean over the questions"),
    ),
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """A run for each model, half-life and seed. None on a GPU: such models train on a CPU."""
    if smoke:
        few = {**SMOKE, "cases": TASKS["recall"]["cases"][:1], "join": [0], "asked": 2}
        return [_run("gated-delta", 4, 0, few)]
    turns = product(MODELS, SEEDS, HALF_LIVES) if kind == "cpu" else ()
    return [_run(model, half_life, seed, {}) for model, seed, half_life in turns]


def _run(model: str, half_life: float, seed: int, rest: dict[str, Any]) -> Run:
    attention, options = MODELS[model]
    config = {
        "task": "recall", "model": model, "attention": attention, "attention_options": options,
        **TRAINING, **TASKS["recall"], "asked": 128, "n_head": 1, "learning_rate": 3e-3,
        "half_life": half_life, "seed": seed, **rest,
    }  # fmt: skip
    return Run("gate_starts", f"{model}-half-life-{half_life}-seed{seed}", config, 290)


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`. A stopped one continues from its checkpoint."""
    training = TaskTraining(config)
    start(training.model, config["half_life"])
    with session.stop.deferred():
        if not training.train(session):
            training.save(session)
            return Outcome({}, complete=False)
    tables: Tables = {}
    end = {"updates": training.updates, "ending": training.ending}
    append(tables, "end", {**end, "half_life": half_life(training.model)})
    for case in config["cases"] if training.ending != "not finite" else ():
        answers = ask(training.model, config, case, TEST_SEED, config["asked"])
        append(tables, "test", {"length": case["length"], "pairs": case["pairs"], **answers.row})
    return Outcome(tables)


def gate_of(model: GPT) -> HeadDecay:
    """The gate of a model's one layer that has one."""
    [gate] = [part for part in model.modules() if isinstance(part, HeadDecay)]
    return gate


def half_life(model: GPT) -> float:
    """Tokens after which a state has halved, where the input of the gate is zero."""
    gate = gate_of(model)
    with torch.no_grad():
        rate = gate.a.exp() * torch.nn.functional.softplus(gate.proj.bias)
    return log(2) / rate.item()


def start(model: GPT, tokens: float) -> None:
    """Set the bias of a model's gate so that a state halves in so many tokens."""
    gate = gate_of(model)
    with torch.no_grad():
        rate = log(2) / tokens / gate.a.exp().item()
        gate.proj.bias.fill_(log(expm1(rate)))


EXPERIMENT = Experiment(
    "gate_starts", "recall by layers with a gate, by the half-life it starts with",
    TABLES, runs, perform,
)  # fmt: skip
