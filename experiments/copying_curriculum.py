"""Learning to look back: which memory copies a passage, and from how far, if copying pays?

Models of the race's size learn to look back late or never, since in novels the far past helps
little. Here a quarter of the windows reward it: 64 bytes come again after 64 to 4,096 others,
replacing the text there. Each kind of memory is trained on the same text in the same order. Some
store tokens: a cache of all (softmax), or a window of 128 and the first. Some store a sum: linear
attention, Mamba-2's decay from the input, the gated delta rule. One has a window and a sum of all
tokens that have left it. If no decay is learned, one head of two decays by half in four bytes, as
in `race`.

The control is the same model on the same novels without planted passages. The rule for stopping is
fixed before the runs: all make the same updates. At intervals a model reads held-out novels in
which a passage comes again after a given number of bytes. Its loss there is stored, and its gain
over the same text with another passage in the first place.
"""

from __future__ import annotations

from typing import Any

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import append
from .harness.learning.passages import AGAIN, passage_gains
from .harness.learning.shapes import NANO
from .harness.learning.training import TABLES as CURVES
from .harness.learning.training import Training, train_through
from .recipes import NEAR

FAR = {"log_decay": [NEAR, 0.0]}
SEEN = {"window": 128, "first": 1}
MODELS: dict[str, dict[str, Any]] = {
    "cache": {"attention": "softmax", "attention_options": FAR},
    "sum": {"attention": "linear", "attention_options": FAR},
    "window": {"attention": "window", "attention_options": {**FAR, **SEEN}},
    "gate": {"attention": "gated", "attention_options": {}},
    "delta": {"attention": "delta", "attention_options": {"gated": True}},
    "window and sum": {"attention": "window-state", "attention_options": {**FAR, **SEEN}},
}
CONTROLLED = ("cache", "sum")
UPDATES, MARK = 1200, 200
BASE: dict[str, Any] = {
    **NANO,
    "context": 4224,
    "span": 4224,
    "spans": 2,
    "updates": UPDATES,
    "validate_every": MARK,
    "validation_span": 16896,
    "returns": {"share": 0.25, "passage": 64, "nearest": 64, "farthest": 4096},
    "asked": [0, MARK // 2, *range(MARK, UPDATES + 1, MARK)],
    "passage": 64,
    "lead": 8,
    "places": 40,
    "distances": [64, 128, 256, 512, 1024, 2048, 4096],
}
SMOKE: dict[str, Any] = {
    "context": 64,
    "span": 64,
    "spans": 2,
    "updates": 4,
    "validate_every": 2,
    "validation_span": 256,
    "returns": {"share": 0.25, "passage": 8, "nearest": 8, "farthest": 32},
    "asked": [0, 2, 4],
    "passage": 16,
    "places": 5,
    "distances": [16, 32],
}
SEEDS = (0, 1)
TABLES = {**CURVES, "again": AGAIN}


def runs(kind: str, smoke: bool) -> list[Run]:
    """Every memory, then two controls without planted passages; first seeds before second ones."""
    if smoke:
        return [_run(model, 0, 0, SMOKE) for model in MODELS]
    plan = []
    for seed in SEEDS:
        plan += [_run(model, seed, 720 + 10 * seed, {}) for model in MODELS]
        plan += [_run(model, seed, 721 + 10 * seed, {"returns": {}}) for model in CONTROLLED]
    return plan


def _run(model: str, seed: int, priority: int, rest: dict[str, Any]) -> Run:
    config = {**BASE, "model": model, **MODELS[model], "seed": seed, **rest}
    text = "planted" if config["returns"] else "novels"
    name = f"{model.replace(' ', '-')}-{text}-seed{seed}"
    return Run("copying_curriculum", name, config, priority)


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`."""
    corpus = session.corpus(config["corpus"])

    def ask(training: Training) -> None:
        if training.updates in config["asked"]:
            for row in passage_gains(training.model, corpus, config, session.device):
                append(training.tables, "again", {"update": training.updates, **row})

    return train_through(Training(config, corpus, session.device), session, ask)


EXPERIMENT = Experiment(
    "copying_curriculum", "which memory copies a passage, from how far", TABLES, runs, perform
)
