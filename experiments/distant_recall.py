"""Can something that was met once be found again, far back? What stands between decides.

A text opens with eight keys and their values; something else follows; then the keys are asked
for. Either noise stands between, tokens that are never asked for and can be told by what they
are, or pairs of other keys, which only the question tells from those that matter. Small models
are trained with noise between, at distances up to `LONGEST_TRAINED`, and then asked with either,
at up to 16,384: their machine reads on and is asked for every key from the same state.

The models, the way to choose a learning rate and the end of training are those of
`synthetic_tasks`, fixed before the runs. All states but the cache of softmax have the same size.
"""

from __future__ import annotations

from math import log
from typing import Any

import torch

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import Tables, append, table
from .harness.learning.task_training import (
    PIECE,
    TEST_SEED,
    TRAINED,
    Answers,
    TaskTraining,
    state_bytes,
    train_with_the_best_rate,
)
from .harness.learning.tasks import draw

HALF_LIFE = 64  # tokens, of the state that fades at a fixed rate
MODELS: dict[str, dict[str, Any]] = {
    "softmax": {"attention": "softmax", "attention_options": {}},
    "linear": {"attention": "linear", "attention_options": {}},
    "fades": {"attention": "linear", "attention_options": {"log_decay": [-log(2) / HALF_LIFE]}},
    "gated": {"attention": "gated", "attention_options": {}},
    "delta": {"attention": "delta", "attention_options": {"gated": False}},
    "gated delta": {"attention": "delta", "attention_options": {"gated": True}},
    "no attention": {"attention": "none", "attention_options": {}},
}
PAIRS = 8
DISTANCES = [4, 16, 64, 256, 1024, 4096, 16384]
LONGEST_TRAINED, LONGEST_OF_GROWING = 240, 4096
BETWEEN = ("noise", "pairs")
BASE = {
    "task": "distant recall",
    "vocab": 128,
    "n_positions": None,
    "n_layer": 1,
    "n_head": 1,
    "d_model": 32,
    "front_width": 4,
    "cases": [
        {"length": 4 * PAIRS + between, "pairs": PAIRS} for between in (8, 64, LONGEST_TRAINED)
    ],
    "join": [0, 240, 400],
    "learning_rates": [1e-2, 3e-3, 2e-2],
    "probe_updates": 400,  # after 240 most of them had not begun to learn, at any rate
    "updates": 1200,
    "solved": 0.995,
    "validate_every": 40,
    "tokens": 2048,  # an update reads so many, in texts of one length
    "warmup_updates": 20,
    "weight_decay": 0.01,
    "held_out": 32,  # texts of a length, for validation and again for the test
}
SEEDS = (0, 1, 2)
SMOKE = {
    "probe_updates": 2,
    "updates": 4,
    "validate_every": 2,
    "tokens": 64,
    "held_out": 2,
    "d_model": 16,
    "cases": BASE["cases"][:1],
    "join": [0],
    "distances": [4, 16],
}
TABLES = {
    **TRAINED,
    "test": table(
        optional="empty where the first loss was not finite",
        between=("name", "what stands between: `noise`, or `pairs` of other keys"),
        distance=("tokens", "between the last pair and the questions"),
        questions=("number", "asked in all"),
        accuracy=("share", "answered right, by the rate chosen"),
        loss=("nats/answer", "mean over the questions"),
        state=("B", "states in float32 after the text, the first convolution's aside"),
    ),
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """Every model, all first seeds before the second."""
    seeds, rest = (SEEDS[:1], SMOKE) if smoke else (SEEDS, {})
    return [
        _run(model, seed, 250 + 100 * seed + place, rest)
        for seed in seeds
        for place, model in enumerate(MODELS)
    ]


def _run(model: str, seed: int, priority: int, rest: dict[str, Any]) -> Run:
    longest = LONGEST_OF_GROWING if model == "softmax" else DISTANCES[-1]
    distances = [distance for distance in DISTANCES if distance <= longest]
    config = {
        "model": model,
        **MODELS[model],
        **BASE,
        "distances": distances,
        "seed": seed,
        **rest,
    }
    return Run("distant_recall", f"{model.replace(' ', '-')}-seed{seed}", config, priority)


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """One run, as `plan.Experiment` asks. One that is stopped starts anew: it takes minutes."""
    tables: Tables = {"curve": {}}
    with session.stop.deferred():
        best = train_with_the_best_rate(config, session, tables)
        if best is None:
            return Outcome({}, complete=False)
        for between in BETWEEN if best.curve else ():
            if not _test(best, config, between, session, tables):
                return Outcome({}, complete=False)
    return Outcome(tables)


@torch.no_grad()
def _test(
    best: TaskTraining, config: dict[str, Any], between: str, session: Session, tables: Tables
) -> bool:
    """New texts, read on and on, with every key asked for at each distance. False: out of time."""
    pairs = config["cases"][0]["pairs"]
    inputs, _ = draw(
        config["task"], seed=TEST_SEED + config["seed"], update=-1, batch=config["held_out"],
        length=4 * pairs + config["distances"][-1], pairs=pairs, vocab=config["vocab"],
        others=BETWEEN.index(between),
    )  # fmt: skip
    keys, values = inputs[:, 0 : 2 * pairs : 2], inputs[:, 1 : 2 * pairs : 2]
    machine = best.model.machine()
    state, read = machine.initial_state, 0
    for distance in config["distances"]:
        for piece in inputs[:, read : 2 * pairs + distance].split(PIECE, dim=1):
            if session.out_of_time():
                return False
            state, _ = machine.read(state, piece)
        read = 2 * pairs + distance
        answers = Answers()
        for key, value in zip(keys.unbind(1), values.unbind(1), strict=True):
            _, logits = machine.read(state, key[:, None])
            answers.add(logits, value)
        told = {"state": state_bytes(best.model, read)}
        append(tables, "test", {"between": between, "distance": distance, **answers.row, **told})
    return True


EXPERIMENT = Experiment(
    "distant_recall", "what can be found again, by distance and by what stands between",
    TABLES, runs, perform,
)  # fmt: skip
