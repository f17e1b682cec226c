"""Feature maps instead of the exponential: nano GPT-2 with each of them, normalised three ways.

Everything but the weights of the attention is the same: initial parameters, text in the same order,
updates, learning rate. Nothing is tuned for any of them. A run whose loss stops being a finite
number ends there; that is a finding, and is stored as one.
"""

from __future__ import annotations

from typing import Any

from lsa.attention.feature_maps import FEATURE_MAPS

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.learning.shapes import SMOKE, memory_needed
from .harness.learning.training import END, Training, train_or_diverge
from .harness.learning.training import TABLES as CURVES

TABLES = {**CURVES, **END}
BASE = {
    "scale": "nano",
    "corpus": "novels",
    "context": 256,
    "span": 256,
    "spans": 8,  # 2048 bytes an update, from eight random places
    "learning_rate": 1e-3,
    "warmup_updates": 10,
    "weight_decay": 0.1,
    "micro_batches": 1,
    "updates": 1000,
    "train_seconds": 0,
    "validate_every": 100,
    "validation_span": 16384,  # from each held-out novel, as for the n-gram models
}
# How outputs are normalised: by the sum of the weights; not at all; by their own size.
NORMS = {
    "normalised": {"normalize": True},
    "sum": {"normalize": False},
    "output-norm": {"normalize": False, "output_norm": True},
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """Every feature map with the normaliser, without, and with output normalisation instead.

    Also softmax and Taylor. Last come more seeds of four of them, to measure chance.
    """
    rest = {**SMOKE, "spans": 1} if smoke else {}
    maps = ["elu_plus_one"] if smoke else list(FEATURE_MAPS)
    plan = [_run("softmax", 15, attention="softmax", **rest)]
    for i, feature_map in enumerate(maps):
        plan += [_linear(feature_map, norm, 16 + i, **rest) for norm in NORMS]
    plan.append(_run("taylor-2", 25, attention="taylor", taylor_degree=2, **rest))
    if not smoke:
        for seed in (1, 2):
            plan.append(_run("softmax", 25 + seed, attention="softmax", seed=seed))
            plan += [_linear("elu_plus_one", norm, 25 + seed, seed=seed) for norm in NORMS]
    return plan


def _linear(feature_map: str, norm: str, priority: int, **rest: Any) -> Run:
    changed = {"attention": "linear", "feature_map": feature_map, **NORMS[norm]}
    return _run(f"{feature_map.replace('_', '-')}-{norm}", priority, **changed, **rest)


def _run(name: str, priority: int, *, seed: int = 0, **rest: Any) -> Run:
    config = {**BASE, **rest, "seed": seed}
    return Run("variants", f"{name}-seed{seed}", config, priority)


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`. `end` says whether its loss stayed finite."""
    training = Training(config, session.corpus(config["corpus"]), session.device)
    return train_or_diverge(training, session)


EXPERIMENT = Experiment(
    "variants", "feature maps and the normaliser, each in a nano GPT-2", TABLES, runs, perform,
    spreads=True, memory=memory_needed,
)  # fmt: skip
