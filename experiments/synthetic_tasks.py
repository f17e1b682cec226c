"""Four made-up tasks that every layer learns: what can a state keep, and can it choose what?

Recall (multi-query associative recall) asks for the value of one of 8 to 64 keys; copying for
what stood at known places; selective copying for what stood anywhere; induction heads for what
followed a special token, at lengths never trained on. Every model is the same small GPT: a short
convolution first, so that a token knows its neighbours, then the layer in question, once or, for
copying, twice. Texts with many pairs, or few questions, join when easier ones have been seen for
a while (`join`). Layers whose state has a size to choose get about 1,000 numbers of it a layer;
for recall some have more and fewer too.

A run chooses its learning rate: three rates train `probe_updates` each, and the one with the
least held-out loss goes on to `updates`. Training ends early once held-out texts are answered
right to the share `solved`. These rules are fixed before the runs and stand in `config`.
"""

from __future__ import annotations

import itertools
from typing import Any

from lsa.layers import LAYERS

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import Tables, append, table
from .harness.learning.task_training import (
    TEST_SEED,
    TRAINED,
    Answers,
    TaskTraining,
    ask,
    ask_at_length,
    state_bytes,
    train_with_the_best_rate,
)

PAIRS = (8, 16, 32, 64)
HEADS = 1
TASKS: dict[str, dict[str, Any]] = {
    "recall": {
        "vocab": 136,
        "n_positions": None,
        "n_layer": 1,
        "cases": [{"length": 4 * pairs, "pairs": pairs} for pairs in PAIRS],
        "join": [0, 240, 320, 400],
    },
    "selective copying": {
        "vocab": 16,
        "n_positions": 64,
        "n_layer": 2,
        "cases": [{"length": 64, "tokens": 8}],
        "join": [0],
    },
    "induction": {
        "vocab": 16,
        "n_positions": None,
        "n_layer": 1,
        "cases": [{"length": 256, "questions": n} for n in (16, 4, 1)],
        "join": [0, 160, 240],
    },
    "copying": {
        "vocab": 16,
        "n_positions": 64,
        "n_layer": 2,
        "cases": [{"length": 64, "tokens": 16}],
        "join": [0],
    },
}
BASE = {
    "d_model": 32,
    "n_head": HEADS,
    "front_width": 4,
    "learning_rates": [1e-2, 3e-3, 2e-2],
    "probe_updates": 160,
    "updates": 800,
    "solved": 0.995,
    "validate_every": 40,
    "tokens": 1024,  # an update reads so many, in texts of one length
    "warmup_updates": 20,
    "weight_decay": 0.01,
    "held_out": 32,  # texts of a length, for validation and again for the test
}
# Most telling first, then whatever else there is: a new layer needs no line here.
TELLING = (
    "softmax", "linear", "s6", "delta", "s4d", "gated", "none", "mamba", "rwkv", "power",
    "aft-simple", "s4", "conv", "taylor", "rnn", "kgram", "aft-local", "aft-full",
)  # fmt: skip
ORDER = (*TELLING, *(name for name in LAYERS if name not in TELLING))
# About 1,000 numbers of state a layer of width 32 with one head, where the size can be chosen.
STATE = {name: {"d_state": 32} for name in ("s6", "s4", "s4d")} | {"mamba": {"d_state": 16}}
# Of recall alone: smaller and larger states of the layers that keep keys and values in one.
SIZES = (
    ("linear", 4, {}), ("s6", HEADS, {"d_state": 8}), ("delta", 4, {}), ("linear", 8, {}),
    ("s6", HEADS, {"d_state": 4}), ("delta", 8, {}), ("gated", 8, {}), ("gated", 4, {}),
)  # fmt: skip
SEEDS = (0, 1, 2)
# Asked for one answer at the end of each text; a layer whose state grows would need hours.
LENGTHS = [64, 256, 1024, 4096, 16384, 65536, 262144, 1048576]
LONGEST_OF_GROWING, LONGEST_OF_OTHER_SEEDS = 4096, 65536
BATCHES = {64: 256, 256: 256, 1024: 128, 4096: 64, 16384: 16, 65536: 8, 262144: 4, 1048576: 4}
GIVEN_UP = 0.5  # share right at a length, below which no longer one is asked
SMOKE = {
    "probe_updates": 2,
    "updates": 4,
    "validate_every": 2,
    "tokens": 64,
    "held_out": 2,
    "d_model": 16,
}
TABLES = {
    **TRAINED,
    "test": table(
        optional="empty where the first loss was not finite",
        length=("tokens", "of a text"),
        pairs=("number", "asked for in a text: keys, symbols, or one"),
        questions=("number", "asked in all"),
        accuracy=("share", "answered right, by the rate chosen"),
        loss=("nats/answer", "mean over the questions"),
        state=("B", "states in float32 after the text, the first convolution's aside"),
    ),
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """Every layer at every task, all first seeds before the second. smoke: the tasks in turn."""
    if smoke:
        turns = zip(ORDER, itertools.cycle(TASKS))
        return [_run(task, name, HEADS, {}, 0, 0, SMOKE) for name, task in turns]
    plan = []
    for seed in SEEDS:
        for place, name in enumerate(ORDER):
            for task in TASKS:
                plan.append(_run(task, name, HEADS, {}, seed, 200 + 100 * seed + 2 * place, {}))
        for place, (name, heads, options) in enumerate(SIZES):
            priority = 200 + 100 * seed + 4 * place + 9
            plan.append(_run("recall", name, heads, options, seed, priority, {}))
    return plan


def _run(
    task: str,
    layer: str,
    heads: int,
    options: dict[str, Any],
    seed: int,
    priority: int,
    rest: dict[str, Any],
) -> Run:
    """One layer, of a size that its heads and options give, at one task."""
    size = f"-heads{heads}" if heads != HEADS else ""
    size += "".join(f"-n{number}" for number in options.values())
    options = {**STATE.get(layer, {}), **options}
    config = {
        "task": task,
        "attention": layer,
        **BASE,
        **TASKS[task],
        "n_head": heads,
        "seed": seed,
        **rest,
    }
    if layer == "aft-full":
        options["max_length"] = max(case["length"] for case in config["cases"])
    if rest:
        config |= {"cases": config["cases"][:1], "join": [0]}
    config["attention_options"] = options
    config["lengths"] = _lengths(config, smoke=bool(rest)) if task == "induction" else []
    name = f"{task}-{layer}{size}-seed{seed}".replace(" ", "-")
    return Run("synthetic_tasks", name, config, priority)


def _lengths(config: dict[str, Any], *, smoke: bool) -> list[int]:
    """Where a model of this layer is asked: not where its state could not go."""
    if smoke:
        return [16, 64]
    if "max_length" in config["attention_options"]:
        return [length for length in LENGTHS if length <= config["attention_options"]["max_length"]]
    longest = LENGTHS[-1] if config["seed"] == 0 else LONGEST_OF_OTHER_SEEDS
    if config["attention"] == "softmax":
        longest = LONGEST_OF_GROWING
    return [length for length in LENGTHS if length <= longest]


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """One run, as `plan.Experiment` asks. One that is stopped starts anew: it takes minutes."""
    tables: Tables = {"curve": {}}
    with session.stop.deferred():
        best = train_with_the_best_rate(config, session, tables)
        if best is None or (best.curve and not _test(best, config, session, tables)):
            return Outcome({}, complete=False)
    return Outcome(tables)


def _test(best: TaskTraining, config: dict[str, Any], session: Session, tables: Tables) -> bool:
    """Ask the trained model new texts, or new lengths. False: out of time."""

    def keep(length: int, asked: int, answers: Answers) -> None:
        state = {"state": state_bytes(best.model, length)}
        append(tables, "test", {"length": length, "pairs": asked, **answers.row, **state})

    trained = [case["length"] for case in config["cases"]]
    for length in config["lengths"]:
        answers = ask_at_length(best.model, config, length, BATCHES.get(length, 2), session)
        if answers is None:
            return False
        keep(length, 1, answers)
        if length > max(trained) and answers.share < GIVEN_UP:
            break
    for case in () if config["lengths"] else config["cases"]:
        asked = case.get("pairs", case.get("tokens"))
        keep(case["length"], asked, ask(best.model, config, case, TEST_SEED))
    return True


EXPERIMENT = Experiment(
    "synthetic_tasks", "recall, copying and induction by every layer", TABLES, runs, perform
)
