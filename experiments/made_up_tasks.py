"""Made-up tasks: what can a state store, can it select, and can it replace a value by another?

Recall (multi-query associative recall) asks for the value of one of 8 to 64 keys. Selective copying
asks for the symbols at random places of a text, copying for those at known places. Overwriting asks
for the newest value of keys that were written up to eight times. Induction heads asks for the token
after a special one, at lengths never trained on. Every model is the same small GPT. A short
convolution comes first, so that a token knows its neighbours, then the layer in question, once or,
for both kinds of copying, twice. Texts with many pairs, or few questions, join after some time with
easier ones (`join`). Layers whose state has an adjustable size get about 1,000 numbers of it a
layer.

Two more ask what recall depends on. In windows: 4, 16 or 64 pairs open a text of 128 to 1,024
tokens. Dense texts come first, since without them softmax learns next to nothing; a model that
answers all of them before the others join is done. At a distance: eight pairs, then noise, or pairs
of other keys, then the questions, up to 16,384 tokens later; trained with noise at distances up to
240.

A run trains one model at one learning rate, to `updates` or until held-out texts are answered right
to the share `solved`; its ending is stored. Each model and task has three rates. The book uses the
rate with the best validation over the seeds; the test asks other texts. A short probe cannot
choose: after 160 updates most models are at chance, and the largest rate looks best.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import cycle
from math import log
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lsa.layers import LAYERS
from lsa.layers.delta import DeltaNet

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import INCREASING, Tables, append, table
from .harness.learning import task_training
from .harness.learning.answers import (
    BETWEEN,
    TEST_SEED,
    ask,
    ask_at_distances,
    ask_at_length,
    state_bytes,
)
from .harness.learning.task_training import ENDING, TaskTraining

# The layers that the chapters compare, and their controls: the delta rule that adds instead of
# erasing, and the short convolution alone.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "softmax": ("softmax", {}),
    "linear": ("linear", {}),
    "delta": ("delta", {}),
    "delta-adds": ("delta", {"erase": False}),
    "gated": ("gated", {"decay": "head"}),
    "gla": ("gated", {"decay": "channel"}),
    "gated-delta": ("delta", {"gated": True}),
    "power": ("power", {}),
    "s6": ("s6", {"d_state": 32}),
    "mamba": ("mamba", {"d_state": 16}),
    "none": ("none", {}),
}
CONTROLS = ("delta-adds", "none")
# Linear attention on its way to the delta rule that adds: the output norm in place of the
# denominator, keys of any sign, silu, and then unit length or the write gate. Then other features:
# elu is elu + 1 without the one, and raised silu is silu above zero. Of normal inputs lowered silu
# lies as far below zero, in the mean, as raised silu above it, with some features of either sign.
NORMED, ADDS = {"normalize": False, "output_norm": True}, {"erase": False}
OF_PARTS: dict[str, tuple[str, dict[str, Any]]] = {
    "linear-normed": ("linear", NORMED),
    "identity-normed": ("linear", {**NORMED, "feature_map": "identity"}),
    "silu-normed": ("delta", {**ADDS, "unit": False, "write_gate": False}),
    "unit": ("delta", {**ADDS, "write_gate": False}),
    "write-gate": ("delta", {**ADDS, "unit": False}),
    **{f"{f}-normed": ("linear", {**NORMED, "feature_map": f}) for f in ("relu", "exp")},
    **{
        f"{f}-normed": ("delta", {**ADDS, "unit": False, "write_gate": False})
        for f in ("elu", "raised-silu", "lowered-silu", "absolute-silu", "tanh")
    },
    # Gates read plain queries and keys; do they recall more with silu, as Mamba-2 has it?
    "gated-silu": ("gated", {"decay": "head", "feature_map": "silu"}),
    "gla-silu": ("gated", {"decay": "channel", "feature_map": "silu"}),
}
FEATURES: dict[str, Callable[[Tensor], Tensor]] = {
    "elu-normed": F.elu,
    "raised-silu-normed": lambda x: F.silu(x) + 0.2785,  # its least value is -0.27846
    "lowered-silu-normed": lambda x: F.silu(x) - 0.6917,  # its mean is 0.2066
    "absolute-silu-normed": lambda x: F.silu(x).abs(),
    "tanh-normed": torch.tanh,
}
# Models that did best at an end of the range, at a rate beyond it.
BEYOND = {"linear-normed": 3e-4, "relu-normed": 3e-4, "exp-normed": 3e-4, "identity-normed": 3e-2}
# All other layers: a new layer needs no line here.
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    name: (name, {"d_state": 32} if name in ("s4", "s4d") else {})
    for name in LAYERS
    if name not in MODELS
}
# For recall alone: smaller and larger states. Model, heads, further options.
SIZES = (
    ("linear", 4, {}), ("linear", 8, {}), ("delta", 4, {}), ("delta", 8, {}),
    ("gated", 4, {}), ("gated", 8, {}), ("s6", 1, {"d_state": 8}), ("s6", 1, {"d_state": 4}),
    ("delta-adds", 4, {}), ("delta-adds", 8, {}), ("silu-normed", 4, {}), ("linear-normed", 4, {}),
)  # fmt: skip
# All keep 32 features of a key, but Taylor 561 up to degree 2 and 58,905 up to degree 4.
OF_WINDOWS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: MODELS[name] for name in ("softmax", "linear", "delta", "gated", "none")},
    "taylor-2": ("taylor", {"degree": 2}),
    "taylor-4": ("taylor", {"degree": 4}),
}
HALF_LIFE = 64  # tokens, of the state with a fixed decay
OF_DISTANCES: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: MODELS[name] for name in ("softmax", "linear", "gated", "delta", "gated-delta")},
    "none": MODELS["none"],
    "fades": ("linear", {"log_decay": [-log(2) / HALF_LIFE]}),
}

WRITES = (1, 2, 4, 8)
WINDOWS = {4: (128, 256, 512, 1024), 16: (128, 256, 512, 1024), 64: (512, 1024)}
FAR = 8  # pairs that are asked for at a distance
TASKS: dict[str, dict[str, Any]] = {
    "recall": task_training.TASKS["recall"],
    "selective copying": task_training.TASKS["selective copying"],
    "overwriting": {
        "vocab": 136,
        "n_positions": 144,  # without positions softmax cannot tell new from old
        "n_layer": 1,
        "cases": [{"length": 16 * n + 16, "pairs": 8, "writes": n} for n in WRITES],
        "join": [0, 240, 320, 400],
    },
    "induction": {
        **task_training.TASKS["induction"],
        "lengths": [64, 256, 1024, 4096, 16384, 65536],
    },
    "copying": task_training.TASKS["copying"],
    "recall in windows": {
        "vocab": 136,
        "n_positions": None,
        "n_layer": 1,
        "cases": [
            {"length": length, "pairs": pairs}
            for length, pairs in (
                *((4 * pairs, pairs) for pairs in (8, 16, 64)),
                *((length, pairs) for pairs, lengths in WINDOWS.items() for length in lengths),
            )
        ],
        "join": [0, 240, 400, *10 * [560]],
        "tokens": 2048,
    },
    "distant recall": {
        "vocab": 128,
        "n_positions": None,
        "n_layer": 1,
        "cases": [{"length": 4 * FAR + between, "pairs": FAR} for between in (8, 64, 240)],
        "join": [0, 240, 400],
        "tokens": 2048,
        "distances": [4, 16, 64, 256, 1024, 4096, 16384],
    },
}
# Half a decade apart, around the rate at which gates learn, which a probe's choice missed.
RATES = (3e-3, 1e-3, 1e-2)
MIDDLE = RATES[0]
SEEDS = (0, 1, 2)
FIRST = 200  # priority of the first tier
BASE: dict[str, Any] = {
    **task_training.TRAINING,
    "asked": 128,  # other texts of a case for the test
    "lengths": [],
    "distances": [],
}
LONGEST_OF_GROWING = 4096  # tokens: beyond this, a growing state would take hours
# Number of texts by length; fewer if they are long.
TEXTS = {64: 256, 256: 256, 1024: 128, 4096: 64, 16384: 16, 65536: 8}
GIVEN_UP = 0.5  # share right at a length, below which longer ones are skipped
SMOKE = {**task_training.SMOKE, "asked": 2}
TABLES = {
    "curve": table(
        optional="empty where the first loss was not finite",
        update=("updates", "after how many updates", INCREASING),
        loss=("nats/answer", "mean over held-out texts"),
        accuracy=("share", "of the questions in held-out texts"),
    ),
    "end": table(
        **ENDING,
    ),
    "test": table(
        optional="empty where a loss was not finite, and in distant recall",
        length=("tokens", "of a text"),
        pairs=("number", "asked for in a text: keys, symbols, or one"),
        writes=("number", "of each key in a text"),
        questions=("number", "asked in all"),
        accuracy=("share", "answered right"),
        loss=("nats/answer", "mean over the questions"),
        state=("B", "states in float32 after the text, the first convolution's aside"),
    ),
    "distances": table(
        optional="in distant recall only, where losses were finite",
        between=("name", "what stands between: `noise`, or `pairs` of other keys"),
        distance=("tokens", "between the last pair and the questions"),
        questions=("number", "asked in all"),
        accuracy=("share", "answered right"),
        loss=("nats/answer", "mean over the questions"),
        state=("B", "states in float32 after the text, the first convolution's aside"),
    ),
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """Two tiers, in the order in which the chapters' messages need them.

    The first, of priority `FIRST`: recall and selective copying by the layers that the chapters
    compare. The second: their two controls, overwriting, then induction and copying, then what
    recall depends on; last, layers that no chapter compares, and other sizes. Within each, all
    models at the middle rate and the first seed come first, then the other rates, then other seeds.
    smoke: the tasks in turn. Nothing on a GPU: models this small train on the processor.
    """
    if smoke:
        turns = zip(MODELS | OTHERS, cycle(TASKS))
        smoked = [_run(task, name, MIDDLE, 0, smoke=True) for name, task in turns]
        return [*smoked, _run("distant recall", "fades", MIDDLE, 0, smoke=True)]
    if kind != "cpu":
        return []
    compared = [name for name in MODELS if name not in CONTROLS]
    groups = (
        (("recall", "selective copying"), compared),
        (("recall", "selective copying"), CONTROLS),
        (("overwriting",), MODELS),
        (("induction", "copying"), MODELS),
        (("recall in windows",), OF_WINDOWS),
        (("distant recall",), OF_DISTANCES),
        (("recall",), OF_PARTS),
        (("selective copying",), ("gated-silu",)),
        (("recall", "selective copying", "overwriting", "induction", "copying"), OTHERS),
    )
    plan = []
    for priority, (tasks, models) in enumerate(groups, FIRST):
        for seed, rate in _turns():
            plan += [
                _run(task, name, rate, seed, priority=priority) for task in tasks for name in models
            ]
    beyond = FIRST + len(groups)
    for name, rate in BEYOND.items():
        plan += [_run("recall", name, rate, seed, priority=beyond) for seed in SEEDS]
    for seed, rate in _turns():
        for name, heads, options in SIZES:
            plan.append(
                _run("recall", name, rate, seed, heads, options, priority=FIRST + len(groups))
            )
    return plan


def _turns() -> list[tuple[int, float]]:
    return [(seed, rate) for seed in SEEDS for rate in RATES]


def _run(
    task: str,
    model: str,
    rate: float,
    seed: int,
    heads: int = 1,
    size: Mapping[str, Any] = {},
    *,
    priority: int = 0,
    smoke: bool = False,
) -> Run:
    """A run of one model, sized by its heads and options, at one task and learning rate."""
    attention, options = (MODELS | OTHERS | OF_WINDOWS | OF_DISTANCES | OF_PARTS)[model]
    config = {
        "task": task,
        "model": model,
        "attention": attention,
        "attention_options": {**options, **size},
        **BASE,
        **TASKS[task],
        "n_head": heads,
        "learning_rate": rate,
        "seed": seed,
    }
    if smoke:
        config |= SMOKE | {"cases": config["cases"][:1], "join": [0]}
        config |= {"lengths": config["lengths"][:1], "distances": config["distances"][:2]}
    if attention == "aft-full":
        longest = max(case["length"] for case in config["cases"])
        config["attention_options"]["max_length"] = longest
        config["lengths"] = [length for length in config["lengths"] if length <= longest]
    if attention == "softmax":
        for key in ("lengths", "distances"):
            config[key] = [one for one in config[key] if one <= LONGEST_OF_GROWING]
    of_size = "-heads" + str(heads) if heads > 1 else ""
    of_size += "".join(f"-n{number}" for number in size.values())
    name = f"{task}-{model}{of_size}-rate{rate:g}-seed{seed}".replace(" ", "-")
    return Run("made_up_tasks", name, config, priority)


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`. A stopped one continues from its checkpoint."""
    training = TaskTraining(config)
    if config["model"] in FEATURES:
        for layer in training.model.modules():
            if isinstance(layer, DeltaNet):
                layer.phi = FEATURES[config["model"]]
    tables: Tables = {"curve": {}}
    with session.stop.deferred():
        if not training.train(session) or not _test(training, session, tables):
            training.save(session)
            return Outcome({}, complete=False)
    for row in training.curve:
        append(tables, "curve", row)
    append(tables, "end", {"updates": training.updates, "ending": training.ending})
    return Outcome(tables)


def _test(training: TaskTraining, session: Session, tables: Tables) -> bool:
    """Test a trained model on new texts, lengths or distances. False: out of time."""
    model, config = training.model, training.config
    if training.ending == "not finite":
        return True
    if config["distances"]:
        for between in BETWEEN:
            rows = ask_at_distances(model, config, between, session)
            if rows is None:
                return False
            for row in rows:
                append(tables, "distances", row)
        return True
    for case in config["cases"] if not config["lengths"] else ():
        answers = ask(model, config, case, TEST_SEED, config["asked"])
        pairs = case.get("pairs", case.get("tokens", 1))
        row = {"length": case["length"], "pairs": pairs, "writes": case.get("writes", 1)}
        append(tables, "test", {**row, **answers.row, "state": state_bytes(model, case["length"])})
    trained = max(case["length"] for case in config["cases"])
    for length in config["lengths"]:
        answers = ask_at_length(model, config, length, TEXTS[length], session)
        if answers is None:
            return False
        row = {"length": length, "pairs": 1, "writes": 1}
        append(tables, "test", {**row, **answers.row, "state": state_bytes(model, length)})
        if length > trained and answers.share < GIVEN_UP:
            break
    return True


EXPERIMENT = Experiment(
    "made_up_tasks", "recall, copying, overwriting and induction, a learning rate a run",
    TABLES, runs, perform,
)  # fmt: skip
