"""Loss against training compute: GPTs of several sizes, with softmax and with linear attention.

One recipe for all sizes, that of `race` at 1,024 bytes: two heads, one of which decays with
distance, the same learning rate after a warm-up. The learning rate is constant, so every point of a
curve is a run that was stopped there, and one curve serves as many runs.

The rule for stopping is fixed before the runs: every size makes the same number of updates, and so
reads the same text in the same order. (Equal tokens per parameter would give the largest size
twenty times the updates of the smallest, more than a CPU has time for, and other text as well.)

One rate for all may suit one of the attentions better. So the largest size is trained again at half
and at twice the rate, with either.

Compute is counted, not timed: updates times tokens times `lsa.cost.update_flops`. On a GPU the
sizes go on to GPT-2's own, with larger updates and the learning rates usual at their width.
"""

from __future__ import annotations

from typing import Any

from lsa.gpt import SCALES

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import append
from .harness.learning.probes import WINDOW
from .harness.learning.shapes import SMOKE, memory_needed
from .harness.learning.sizes import MODEL, model_row
from .harness.learning.training import TABLES as CURVES
from .harness.learning.training import Training, train_through
from .recipes import NEAR

SEEDS = (0, 1, 2)
ATTENTIONS = ("softmax", "linear")
# By number of parameters, with bytes for tokens: three below nano (0.8M), two above. Two heads
# each.
SIZES: dict[str, dict[str, int]] = {
    "0.1M": {"n_layer": 2, "d_model": 64},
    "0.2M": {"n_layer": 4, "d_model": 64},
    "0.5M": {"n_layer": 4, "d_model": 96},
    "0.8M": {"n_layer": 4, "d_model": 128},
    "1.6M": {"n_layer": 5, "d_model": 160},
    "2.7M": {"n_layer": 6, "d_model": 192},
}
ORDER = ("0.8M", "0.1M", "0.5M", "0.2M", "1.6M", "2.7M")  # most informative first
BASE: dict[str, Any] = {
    "corpus": "novels",
    "context": 1024,
    "span": 1024,
    "n_positions": None,
    "warmup_updates": 100,
    "weight_decay": 0.1,
    "updates": 512,
    "train_seconds": 0,
    "validate_every": 64,
    "validation_span": WINDOW,  # of each held-out novel, as for the n-gram models
}
# The largest size again, to see whether the comparison depends on the learning rate.
AGAIN = "2.7M"
CHANGES = {"half the rate": {"learning_rate": 1e-3}, "twice the rate": {"learning_rate": 4e-3}}
SMALL = {"spans": 2, "learning_rate": 2e-3, "micro_batches": 1}  # 2,048 bytes an update
# On a GPU: 131,072 bytes an update, and GPT-2's sizes with the learning rates of `loss_curves`.
LARGE = {"spans": 128}
RATES = {"124M": 6e-4, "355M": 3e-4, "774M": 2e-4, "1.5B": 2e-4}
PARTS = {"124M": 1, "355M": 2, "774M": 4, "1.5B": 8}  # an update is computed in so many parts
TABLES = {**CURVES, **MODEL}


def runs(kind: str, smoke: bool) -> list[Run]:
    """Both attentions at every size; all sizes of one seed before the next."""
    if smoke:
        return [_run("0.1M", name, 0, 500, {**SMALL, **SMOKE}) for name in ATTENTIONS]
    rest = SMALL if kind == "cpu" else {**SMALL, **LARGE}
    plan = [
        _run(size, name, seed, 500 + 20 * seed + place, rest)
        for seed in SEEDS
        for place, size in enumerate(ORDER)
        for name in ATTENTIONS
    ]
    plan += [
        _run(AGAIN, name, seed, 510 + 20 * seed, {**rest, **changed, "change": change})
        for seed in SEEDS
        for change, changed in CHANGES.items()
        for name in ATTENTIONS
    ]
    if kind != "cpu":
        for place, (scale, rate) in enumerate(RATES.items()):
            large = {**LARGE, "learning_rate": rate, "micro_batches": PARTS[scale]}
            plan += [_run(scale, name, 0, 600 + place, large) for name in ATTENTIONS]
    return plan


def _run(size: str, attention: str, seed: int, priority: int, rest: dict[str, Any]) -> Run:
    """A run of a size of `SIZES`, or of GPT-2's own scales."""
    scale = size if size in SCALES else "nano"
    heads = SCALES[scale]["n_head"]
    near = heads // 2
    config = {
        **BASE,
        "size": size,
        "scale": scale,
        "shape": SIZES.get(size, {}),
        "attention": attention,
        "attention_options": {"log_decay": [NEAR] * near + [0.0] * (heads - near)},
        "seed": seed,
        **rest,
    }
    parts = [attention, size.lower(), *rest.get("change", "").split(), f"seed{seed}"]
    return Run("scaling", "-".join(parts), config, priority)


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`."""
    training = Training(config, session.corpus(config["corpus"]), session.device)
    outcome = train_through(training, session)
    if outcome.complete:
        append(outcome.tables, "model", model_row(training.model, config["context"]))
    return outcome


EXPERIMENT = Experiment(
    "scaling", "loss against training compute at six sizes", TABLES, runs,
    perform, spreads=True, memory=memory_needed,
)  # fmt: skip
