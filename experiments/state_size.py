"""Loss against the bytes of a layer's state, after the same updates on the same text.

Nano GPT-2 in which only the layer that weighs the past changes. More heads make a smaller state: H
heads of width K keep H K (K + 1) numbers. Taylor sums and powers of the score make a larger one.
Softmax's grows with the text. Controls have no attention, or no head that sees far. There are two
recipes. In `fades`, that of `race` at 1,024 bytes, half of the heads decay with distance. In
`plain`, that of `variants` at 256 bytes, none does. The maps themselves must favour near tokens.

In `variants` a Taylor sum of degree 2 has a far larger state than elu + 1 and ends behind it. Runs
with a `change` test one suspect each, in both models. Suspects are chance (three seeds), rounding
to bfloat16, the learning rate, the size of the scores, the lack of a decaying head, and Taylor's
floor: its weight is never below half the weight of a score of zero. Power 2 has nearly as large a
state and no floor. Every run measures the effective number of tokens of the heads, at the start and
at the end.

The rule for stopping is fixed before the runs: with one recipe all make the same number of updates.
A run whose loss stops being a finite number ends there, and records it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import append, table
from .harness.learning.probes import WINDOW, attended
from .harness.learning.shapes import SMOKE
from .harness.learning.sizes import MODEL, model_row
from .harness.learning.training import END, Training, train_or_diverge
from .harness.learning.training import TABLES as CURVES
from .recipes import NEAR

SEEDS = (0, 1, 2)
BASE: dict[str, Any] = {
    "scale": "nano",
    "corpus": "novels",
    "weight_decay": 0.1,
    "micro_batches": 1,
    "train_seconds": 0,
    "validation_span": WINDOW,  # of each held-out novel, as for the n-gram models
}
# Fixed before the runs, at an estimate of 0.1 to 0.4 s for an update of 2,048 bytes. So a run takes
# two to eight minutes on one quiet CPU thread, and three seeds of all runs fit into a night.
RECIPES: dict[str, dict[str, Any]] = {
    "fades": {
        "context": 1024, "span": 1024, "spans": 2, "n_positions": None, "learning_rate": 2e-3,
        "warmup_updates": 100, "updates": 512, "validate_every": 128,
    },
    "plain": {
        "context": 256, "span": 256, "spans": 8, "n_positions": 256, "learning_rate": 1e-3,
        "warmup_updates": 10, "updates": 1000, "validate_every": 250,
    },
}  # fmt: skip
# The layer that weighs the past: one of `lsa.layers`, and its options.
WEIGHTS: dict[str, tuple[str, dict[str, Any]]] = {
    "softmax": ("softmax", {}),
    "elu + 1": ("linear", {"feature_map": "elu_plus_one"}),
    "relu": ("linear", {"feature_map": "relu"}),
    "softplus": ("linear", {"feature_map": "softplus"}),
    "exp": ("linear", {"feature_map": "exp"}),
    "Taylor 1": ("taylor", {"degree": 1}),
    "Taylor 2": ("taylor", {"degree": 2}),
    "Taylor 4": ("taylor", {"degree": 4}),
    "power 2": ("power", {"degree": 2}),
    "none": ("none", {}),
}
LARGER_SCORES = {"scale": 1.0}  # of q·k, instead of 1 / sqrt(K) = 1/8; an option of the layer
CHANGES: dict[str, dict[str, Any]] = {
    "": {},
    "float32": {"autocast": False},
    "half the rate": {"learning_rate": 5e-4},
    "twice the rate": {"learning_rate": 2e-3},
    "four times the rate": {"learning_rate": 4e-3},
    "larger scores": {},
    "a head fades": {},
    "near only": {},
}


class Arm(NamedTuple):
    """An arm: the layer that weighs the past, its recipe, its heads, and other changes."""

    weights: str
    recipe: str
    heads: int = 2
    change: str = ""


ARMS = [  # most informative first
    Arm("Taylor 2", "plain"),
    Arm("elu + 1", "plain"),
    Arm("power 2", "plain"),
    Arm("Taylor 2", "plain", change="larger scores"),
    Arm("softmax", "plain"),
    Arm("elu + 1", "fades"),
    Arm("Taylor 2", "fades"),
    Arm("softmax", "fades"),
    Arm("elu + 1", "fades", 8),
    Arm("none", "fades"),
    Arm("elu + 1", "fades", change="near only"),
    Arm("Taylor 2", "plain", change="a head fades"),
    Arm("elu + 1", "plain", change="a head fades"),
    Arm("Taylor 4", "plain"),
    Arm("Taylor 2", "plain", change="float32"),
    Arm("elu + 1", "plain", change="float32"),
    Arm("Taylor 2", "plain", change="twice the rate"),
    Arm("elu + 1", "plain", change="twice the rate"),
    Arm("elu + 1", "plain", 8),
    Arm("elu + 1", "plain", 1),
    Arm("Taylor 2", "plain", 8),
    Arm("none", "plain"),
    Arm("power 2", "fades"),
    Arm("Taylor 2", "fades", 4),
    Arm("Taylor 4", "fades"),
    Arm("exp", "fades"),
    Arm("elu + 1", "fades", 4),
    Arm("elu + 1", "fades", 16),
    Arm("Taylor 2", "plain", change="half the rate"),
    Arm("elu + 1", "plain", change="half the rate"),
    Arm("Taylor 2", "plain", change="four times the rate"),
    Arm("elu + 1", "plain", change="four times the rate"),
    Arm("softmax", "plain", 8),
    Arm("softmax", "fades", 8),
    Arm("exp", "plain"),
    Arm("relu", "fades"),
    Arm("softplus", "fades"),
    Arm("Taylor 1", "fades"),
    Arm("Taylor 1", "plain"),
]
TABLES = {
    **CURVES,
    **MODEL,
    "attended": table(
        optional="empty for layers whose weights may be negative, and for the control",
        update=("updates", "after how many updates: before the first, and after the last"),
        layer=("number", "from 0"),
        head=("number", "from 0; where heads fade, the first half of them do"),
        effective=(
            "tokens",
            "exponential of the entropy of a query's weights, queries in the second half of a "
            "window; geometric mean over them",
        ),
        alike=("tokens", "the same if all scores were equal"),
        moved=("number", "share of the weight that lies elsewhere than with equal scores; mean"),
    ),
    **END,
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """Every arm with every seed; all arms of one seed before the next."""
    if smoke:
        arms = [
            Arm("elu + 1", "plain", change="a head fades"),
            Arm("Taylor 2", "fades", 8),
            Arm("none", "fades"),
        ]
        return [_run(arm, 0, 300, SMOKE) for arm in arms]
    return [
        _run(arm, seed, 300 + len(ARMS) * seed + place, {})
        for seed in SEEDS
        for place, arm in enumerate(ARMS)
    ]


def _run(arm: Arm, seed: int, priority: int, rest: dict[str, Any]) -> Run:
    attention, options = WEIGHTS[arm.weights]
    if arm.change == "larger scores":
        options = {**options, **LARGER_SCORES}
    if attention != "none" and (arm.recipe == "fades" or arm.change == "a head fades"):
        near = arm.heads if arm.change == "near only" else arm.heads // 2
        options = {**options, "log_decay": [NEAR] * near + [0.0] * (arm.heads - near)}
    config = {
        **BASE,
        **RECIPES[arm.recipe],
        **arm._asdict(),
        "seed": seed,
        "shape": {"n_head": arm.heads},
        "attention": attention,
        "attention_options": options,
        **CHANGES[arm.change],
        **rest,
    }
    weights = arm.weights.replace(" + ", "-plus-")
    words = f"{weights} {arm.heads} {arm.recipe} {arm.change}".strip()
    return Run("state_size", f"{words.replace(' ', '-').lower()}-seed{seed}", config, priority)


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`."""
    corpus = session.corpus(config["corpus"])
    training = Training(config, corpus, session.device)

    def look(training: Training) -> None:
        if training.updates not in (0, config["updates"]):
            return
        context = config["context"]
        for row in attended(training.model, corpus, context=context, device=session.device):
            append(training.tables, "attended", {"update": training.updates, **row})

    outcome = train_or_diverge(training, session, look)
    if outcome.complete:
        append(outcome.tables, "model", model_row(training.model, config["context"]))
    return outcome


EXPERIMENT = Experiment("state_size", "loss against the bytes of a state", TABLES, runs, perform)
