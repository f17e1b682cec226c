"""How many pairs a state can hold, and whether it matters how long the text is.

Multi-query associative recall, as in `synthetic_tasks`, with pairs and window told apart: 4, 16
or 64 keys and their values open a text of 128 to 1,024 tokens, and each key comes again among
noise. One small model is trained on these texts and asked for each. Dense ones come first, of 8
pairs in 32 tokens and so on: without them softmax had hardly begun to learn after 1,200 updates
of a trial (one rate, not stored), and nothing else was decided by one. What answers all of them
before the others join, as softmax may, is done. All have one head of 32, so the states of those
that add up differ by their feature maps alone: elu + 1 keeps 32 features of a key, Taylor 2 561
and Taylor 4 58,905.

The way to choose a learning rate and the end of training are those of `synthetic_tasks`, fixed
before the runs.
"""

from __future__ import annotations

from typing import Any

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import Tables, append, table
from .harness.learning.task_training import (
    TEST_SEED,
    TRAINED,
    ask,
    state_bytes,
    train_with_the_best_rate,
)

MODELS: dict[str, dict[str, Any]] = {
    "softmax": {"attention": "softmax", "attention_options": {}},
    "linear": {"attention": "linear", "attention_options": {}},
    "delta": {"attention": "delta", "attention_options": {"gated": False}},
    "Taylor 2": {"attention": "taylor", "attention_options": {"degree": 2}},
    "gated": {"attention": "gated", "attention_options": {}},
    "no attention": {"attention": "none", "attention_options": {}},
    "Taylor 4": {"attention": "taylor", "attention_options": {"degree": 4}},
}
PAIRS = (4, 16, 64)
WINDOWS = (128, 256, 512, 1024)
DENSE = {8: 0, 16: 240, 64: 400}  # pairs in four times as many tokens, after so many updates
JOIN = 560  # the rest
CASES = [{"length": 4 * pairs, "pairs": pairs} for pairs in DENSE] + [
    {"length": window, "pairs": pairs}
    for pairs in PAIRS
    for window in WINDOWS
    if window >= 4 * pairs and (window > 4 * pairs or pairs not in DENSE)
]
BASE = {
    "task": "recall",
    "vocab": 136,
    "n_positions": None,
    "n_layer": 1,
    "n_head": 1,
    "d_model": 32,
    "front_width": 4,
    "cases": CASES,
    "join": [*DENSE.values()] + [JOIN] * (len(CASES) - len(DENSE)),
    "learning_rates": [1e-2, 3e-3, 2e-2],
    "probe_updates": 320,
    "updates": 1600,
    "solved": 0.995,
    "validate_every": 80,
    "tokens": 2048,  # an update reads so many, in texts of one length
    "warmup_updates": 20,
    "weight_decay": 0.01,
    "held_out": 16,  # texts of a case, for validation and again for the test
}
SEEDS = (0, 1, 2)
SMOKE = {
    "probe_updates": 2,
    "updates": 4,
    "validate_every": 2,
    "tokens": 128,
    "held_out": 2,
    "d_model": 16,
    "cases": CASES[:1],
    "join": [0],
}
TABLES = {
    **TRAINED,
    "test": table(
        optional="empty where the first loss was not finite",
        length=("tokens", "of a text"),
        pairs=("number", "keys in a text, each asked for once"),
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
        _run(model, seed, 260 + 100 * seed + place, rest)
        for seed in seeds
        for place, model in enumerate(MODELS)
    ]


def _run(model: str, seed: int, priority: int, rest: dict[str, Any]) -> Run:
    config = {"model": model, **MODELS[model], **BASE, "seed": seed, **rest}
    return Run("recall", f"{model.lower().replace(' ', '-')}-seed{seed}", config, priority)


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """One run, as `plan.Experiment` asks. One that is stopped starts anew: it takes minutes."""
    tables: Tables = {"curve": {}}
    with session.stop.deferred():
        best = train_with_the_best_rate(config, session, tables)
        if best is None:
            return Outcome({}, complete=False)
        for case in config["cases"] if best.curve else ():
            answers = ask(best.model, config, case, TEST_SEED)
            state = {"state": state_bytes(best.model, case["length"])}
            append(tables, "test", {**case, **answers.row, **state})
    return Outcome(tables)


EXPERIMENT = Experiment(
    "recall", "recall by pairs, by the length of the text and by the size of the state",
    TABLES, runs, perform,
)  # fmt: skip
