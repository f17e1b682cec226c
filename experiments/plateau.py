"""What ends the plateau: a nano GPT-2 at 1,024 bytes, with one thing changed at a time.

Where nothing tells near from far, a model of a long context stays at what counting letter pairs
achieves. Here every remedy gets the same updates, with both attentions and three seeds: another
learning rate, no table of positions, a head whose weights fade with distance at several rates.
Controls tell whether the attention does the learning: every head near-sighted, the token before
alone, and no attention at all.

The rule for stopping is fixed before the runs: every run makes the same number of updates.
"""

from __future__ import annotations

from typing import Any

from .harness.plan import Experiment, Outcome, Run, Session
from .harness.training import TABLES, Training, train_through

BASE = {
    "scale": "nano",
    "corpus": "novels",
    "context": 1024,
    "span": 1024,
    "spans": 2,
    "n_positions": None,  # no table of positions, unless a remedy says so
    "learning_rate": 2e-3,
    "warmup_updates": 100,
    "weight_decay": 0.1,
    "micro_batches": 1,
    "updates": 400,
    "train_seconds": 0,
    "validate_every": 25,
    "validation_span": 4096,  # of each held-out novel
}
SMOKE = {
    "context": 64,
    "span": 64,
    "spans": 1,
    "updates": 3,
    "validate_every": 2,
    "validation_span": 256,
}
NEAR = -0.171875  # a weight halves in log 2 / 0.171875 = 4.03 bytes; exact in bf16
# Half-lives of a weight in bytes, nearly, and the slope of its logarithm.
HALF_LIVES = {1: 4 * NEAR, 4: NEAR, 16: NEAR / 4, 64: NEAR / 16, 256: NEAR / 64}
EITHER: dict[str, dict[str, Any]] = {
    "as it was": {"n_positions": 1024, "learning_rate": 1e-3, "warmup_updates": 10},
    "higher rate": {"n_positions": 1024},
    "no positions": {},
    **{f"fades in {n}": {"log_decay": [slope, 0.0]} for n, slope in HALF_LIVES.items()},
    "near only": {"log_decay": [NEAR, NEAR]},
}
CONTROLS: dict[str, dict[str, Any]] = {
    "none": {"attention": "none", "attention_options": {}},
    "token before": {"attention": "conv", "attention_options": {"width": 2}},
}
SEEDS = (0, 1, 2)


def runs(kind: str, smoke: bool) -> list[Run]:
    """Every remedy with both attentions, and the controls; all of one seed before the next."""
    plan = []
    for seed in SEEDS[:1] if smoke else SEEDS:
        priority = 200 + seed
        for remedy, change in (
            {"fades in 4": EITHER["fades in 4"]}.items() if smoke else EITHER.items()
        ):
            for attention in ("softmax", "linear"):
                rest = {key: value for key, value in change.items() if key != "log_decay"}
                options = {"log_decay": change["log_decay"]} if "log_decay" in change else {}
                rest |= {"attention": attention, "attention_options": options}
                plan.append(_run(remedy, seed, priority, {**rest, **(SMOKE if smoke else {})}))
        for remedy, change in CONTROLS.items():
            plan.append(_run(remedy, seed, priority, {**change, **(SMOKE if smoke else {})}))
    return plan


def _run(remedy: str, seed: int, priority: int, change: dict[str, Any]) -> Run:
    name = f"{change['attention']}-{remedy.replace(' ', '-')}-seed{seed}"
    return Run("plateau", name, {**BASE, "remedy": remedy, "seed": seed, **change}, priority)


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """One run, as `plan.Experiment` asks."""
    return train_through(
        Training(config, session.corpus(config["corpus"]), session.device), session
    )


EXPERIMENT = Experiment(
    "plateau", "what ends the plateau of a long context, one change at a time", TABLES, runs,
    perform,
)  # fmt: skip
