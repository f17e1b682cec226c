"""Train GPT-2 twice, with softmax and with linear attention, and keep the loss of every update.

Everything but the attention is the same: initial weights by seed, text in the same order, the
same tokens an update whatever the context, AdamW, a short warm-up and then a constant learning
rate, so that every point of a curve is a place one could have stopped at. The seconds of an
update are those of drawing its text, forward, backward and the step; compilation, warm-up and
validation are apart. At the longest context both attentions get the same seconds instead of the
same updates.
"""

from __future__ import annotations

from typing import Any

from .plan import Experiment, Outcome, Run, Session
from .training import UNITS, Training, train_through

BASE = {
    "corpus": "novels",
    "seed": 0,
    "warmup_updates": 10,
    "weight_decay": 0.1,
    "micro_batches": 1,
    "updates": 0,  # stop after this many; 0: by train_seconds
    "train_seconds": 0,  # stop after this many seconds of updates; 0: by updates
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """Both attentions at every scale and context, most telling first."""
    if smoke:
        tiny = {"span": 256, "spans": 1, "updates": 3, "learning_rate": 1e-3, "validate_every": 2}
        return [_run("nano", attention, 64, 0, **tiny) for attention in ("softmax", "linear")]
    return _cpu_runs() if kind == "cpu" else _cuda_runs()


def _run(scale: str, attention: str, context: int, priority: int, **rest: Any) -> Run:
    config = {"scale": scale, "attention": attention, "context": context, **BASE, **rest}
    return Run("loss_curves", f"{scale}-{attention}-{context}", config, priority)


def _pair(scale: str, context: int, priority: int, **rest: Any) -> list[Run]:
    return [
        _run(scale, attention, context, priority, **rest) for attention in ("softmax", "linear")
    ]


def _cpu_runs() -> list[Run]:
    """16384 bytes an update everywhere; 192 updates are 3.1 million bytes."""
    shared = {"span": 16384, "spans": 1, "learning_rate": 2e-3, "validate_every": 16}
    return [
        *_pair("nano", 1024, 10, updates=192, **shared),
        *_pair("nano", 4096, 11, updates=192, **shared),
        *_pair("nano", 16384, 12, train_seconds=480, **shared),
        *_pair("nano", 256, 13, updates=192, **shared),
    ]


def _cuda_runs() -> list[Run]:
    """131072 bytes an update; the same seconds for both attentions, most telling contexts first."""
    nano = {"span": 131072, "spans": 1, "learning_rate": 2e-3, "validate_every": 50}
    small = {**nano, "learning_rate": 6e-4, "validate_every": 25}
    medium = {**nano, "learning_rate": 3e-4, "validate_every": 20, "micro_batches": 2}
    large = {**nano, "learning_rate": 2e-4, "validate_every": 20, "micro_batches": 4}
    plan = [
        *_pair("124M", 4096, 20, train_seconds=75, **small),
        *_pair("124M", 65536, 21, train_seconds=75, **small),
        *_pair("124M", 16384, 22, train_seconds=75, **small),
        *_pair("124M", 1024, 23, train_seconds=75, **small),
        *_pair("124M", 131072, 24, train_seconds=75, **small),
    ]
    for i, context in enumerate((4096, 65536, 1024, 16384, 131072)):
        plan += _pair("nano", context, 30 + i, train_seconds=30, **nano)
        plan += _pair("355M", context, 40 + i, train_seconds=120, **medium)
        plan += _pair("774M", context, 50 + i, train_seconds=180, **large)
        plan += _pair("1.5B", context, 60 + i, train_seconds=240, **large)
    return plan


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """One run, as `plan.Experiment` asks."""
    training = Training(config, session.corpus(config["corpus"]), session.device)
    return train_through(training, session)


EXPERIMENT = Experiment(
    "loss_curves", "loss by update and by time, softmax and linear", UNITS, runs, perform
)
