"""Train GPT-2 twice, with softmax and with linear attention, and record the loss of every update.

Everything but the attention is the same: initial weights by seed, text in the same order, the time
budget, AdamW, a short warm-up. After it the learning rate is constant, so every point of a curve is
a run that could have ended there. The seconds of an update include drawing its text, forward,
backward and the step; compilation, warm-up and validation are not included.
"""

from __future__ import annotations

from typing import Any

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.team import here
from .harness.learning.shapes import memory_needed
from .harness.learning.training import TABLES, Training, train_through
from .priorities import CURVES
from .recipes import NEAR

BASE = {
    "corpus": "novels",
    "seed": 0,
    "warmup_updates": 10,
    "weight_decay": 0.1,
    "micro_batches": 1,
    "validation_span": 16384,  # tokens of each held-out novel, the same at every context
    "updates": 0,  # stop after this many; 0: by train_seconds
    "train_seconds": 0,  # stop after this many seconds of updates; 0: by updates
}
# One GPU does not split a window. Past these contexts, the 36 bytes that a model stores a token,
# feature and layer for its gradient do not fit into 80 GB beside its weights.
LONGEST = {"nano": 131072, "124M": 131072, "355M": 65536, "774M": 16384, "1.5B": 16384}


def runs(kind: str, smoke: bool) -> list[Run]:
    """Both attentions at every scale and context, most informative first."""
    if smoke:
        tiny = {"updates": 3, "learning_rate": 1e-3, "validate_every": 2, "validation_span": 256}
        plan = _pair("nano", 64, 0, tokens=256, **tiny)
        if kind == "cuda":
            plan += _pair("nano", 64, 0, form="-fades", tokens=256, **tiny, **_fading(2))
        return plan
    return _cpu_runs() if kind == "cpu" else _cuda_runs()


def _pair(
    scale: str, context: int, priority: int, tokens: int, form: str = "", **rest: Any
) -> list[Run]:
    """Both attentions. tokens: the least that an update reads, in windows of the context."""
    draw = {"span": context, "spans": max(1, tokens // context)}
    return [
        Run(
            "loss_curves",
            f"{scale}-{attention}-{context}{form}",
            {"scale": scale, "attention": attention, "context": context, **BASE, **draw, **rest},
            priority,
        )
        for attention in ("softmax", "linear")
    ]


def _fading(heads: int) -> dict[str, Any]:
    """Half of the heads decay, to a half in 4.03 tokens as in `race`; there are no positions."""
    slopes = [NEAR] * (heads // 2) + [0.0] * (heads - heads // 2)
    return {"n_positions": None, "attention_options": {"log_decay": slopes}}


def _cpu_runs() -> list[Run]:
    """Runs with small updates, 2048 bytes or one window: a CPU has time for a few thousand.

    2048 and 4096 get the most time. Learning gets past letter pairs at an update that is
    proportional to the context. Half an hour is enough for both attentions at 2048, an hour at 4096
    for the quicker.
    """
    nano = {"tokens": 2048, "learning_rate": 1e-3}
    return [
        *_pair("nano", 256, 10, train_seconds=180, validate_every=100, **nano),
        *_pair("nano", 1024, 11, train_seconds=180, validate_every=100, **nano),
        *_pair("nano", 2048, 12, train_seconds=1800, validate_every=200, **nano),
        *_pair("nano", 4096, 13, train_seconds=3600, validate_every=200, **nano),
        *_pair("nano", 16384, 14, train_seconds=480, validate_every=16, **nano),
    ]


def _cuda_runs() -> list[Run]:
    """Runs with 131072 bytes an update, most informative contexts first."""
    shared = {"tokens": 131072, "validation_span": 131072}
    nano = {**shared, "learning_rate": 2e-3, "validate_every": 50}
    small = {**shared, "learning_rate": 6e-4, "validate_every": 25}
    medium = {**shared, "learning_rate": 3e-4, "validate_every": 20, "micro_batches": 2}
    large = {**shared, "learning_rate": 2e-4, "validate_every": 20, "micro_batches": 4}
    largest = {**large, "micro_batches": 8}
    plan = [
        *_pair("124M", 4096, CURVES, train_seconds=75, **small),
        *_pair("124M", 65536, 21, train_seconds=75, **small),
        *_pair("124M", 16384, 22, train_seconds=75, **small),
        *_pair("124M", 1024, 23, train_seconds=75, **small),
        *_pair("124M", 131072, 24, train_seconds=75, **small),
        *_pair("124M", 4096, 25, form="-fades", train_seconds=75, **small, **_fading(12)),
        *_pair("124M", 16384, 26, form="-fades", train_seconds=75, **small, **_fading(12)),
    ]
    for i, context in enumerate((4096, 65536, 1024, 16384, 131072)):
        plan += _pair("nano", context, 30 + i, train_seconds=30, **nano)
        plan += _pair("355M", context, 40 + i, train_seconds=120, **medium)
        plan += _pair("774M", context, 50 + i, train_seconds=180, **large)
        plan += _pair("1.5B", context, 60 + i, train_seconds=240, **largest)
    several = here().size > 1  # they share a window; `run` refuses what does not fit
    return [run for run in plan if several or run.config["context"] <= LONGEST[run.config["scale"]]]


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`."""
    training = Training(config, session.corpus(config["corpus"]), session.device)
    return train_through(training, session)


EXPERIMENT = Experiment(
    "loss_curves", "loss by update and by time, softmax and linear", TABLES, runs, perform,
    spreads=True, memory=memory_needed,
)  # fmt: skip
