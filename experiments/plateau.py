"""Ending the plateau: a nano GPT-2 at 1,024 bytes, with one change at a time.

GPT-2 at a long context stays at the loss of counted letter pairs for thousands of updates. Here
every remedy gets the same updates, with both attentions and three seeds. Remedies of the recipe:
another learning rate, four times the text an update, larger first weights. Remedies of the model:
positions of several kinds, a token shift, a head that decays with distance at several rates.
Controls show whether the attention does the learning: every head near-sighted, the token before
alone, the shift alone, and no attention at all.

The rule for stopping is fixed before the runs: every run makes the same number of updates.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lsa import GPT

from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.learning.shapes import NANO, SMOKE
from .harness.learning.training import TABLES, Training, train_through
from .recipes import NEAR, Projection, change_projections, token_shift

BASE = {
    **NANO,  # no table of positions, unless a remedy adds one
    "context": 1024,
    "span": 1024,
    "spans": 2,
    "attention_options": {},
    "updates": 400,
    "validate_every": 25,
    "validation_span": 4096,  # of each held-out novel
}
# Approximate half-lives of a weight in bytes, and the slopes of its logarithm.
HALF_LIVES = {1: 4 * NEAR, 4: NEAR, 16: NEAR / 4, 64: NEAR / 16, 256: NEAR / 64}
EITHER: dict[str, dict[str, Any]] = {
    "as it was": {"n_positions": 1024, "learning_rate": 1e-3, "warmup_updates": 10},
    "higher rate": {"n_positions": 1024},
    "no positions": {},
    "four times the bytes": {"spans": 8},
    "larger weights": {"meets": "larger weights"},
    "sinusoids": {"n_positions": 1024, "meets": "sinusoids"},
    "rotation": {"meets": "rotation"},
    "token shift": {"meets": "token shift"},
    **{
        f"fades in {n}": {"attention_options": {"log_decay": [slope, 0.0]}}
        for n, slope in HALF_LIVES.items()
    },
    "near only": {"attention_options": {"log_decay": [NEAR, NEAR]}},
}
CONTROLS: dict[str, dict[str, Any]] = {
    "none": {"attention": "none"},
    "token before": {"attention": "conv", "attention_options": {"width": 2}},
    "shift alone": {"attention": "none", "meets": "token shift"},
}
SEEDS = (0, 1, 2)


def runs(kind: str, smoke: bool) -> list[Run]:
    """Every remedy with both attentions, and the controls; all runs of one seed before the next."""
    rest = {**SMOKE, "spans": 1} if smoke else {}
    remedies = ["fades in 4"] if smoke else EITHER
    changes = [
        *(
            (remedy, {"attention": attention, **EITHER[remedy]})
            for remedy in remedies
            for attention in ("softmax", "linear")
        ),
        *CONTROLS.items(),
    ]
    return [
        _run(remedy, seed, {**change, **rest})
        for seed in (SEEDS[:1] if smoke else SEEDS)
        for remedy, change in changes
    ]


def _run(remedy: str, seed: int, change: dict[str, Any]) -> Run:
    name = f"{change['attention']}-{remedy.replace(' ', '-')}-seed{seed}"
    return Run("plateau", name, {**BASE, "remedy": remedy, "seed": seed, **change}, 200 + seed)


def sinusoids(model: GPT) -> None:
    """Start the table of positions as in Vaswani et al. (2017), 3.5; it is still learned.

    Scaled to the size of GPT-2's initial positions, since tokens have that size too.
    """
    assert model.wpe is not None
    T, D = model.wpe.weight.shape
    angle = torch.arange(T)[:, None] * 10_000.0 ** (-torch.arange(0, D, 2) / D)
    with torch.no_grad():
        drawn = model.wpe.weight.std()
        model.wpe.weight.copy_(torch.stack((angle.sin(), angle.cos()), -1).flatten(1))
        model.wpe.weight.mul_(drawn / model.wpe.weight.square().mean().sqrt())


def larger_weights(model: GPT) -> None:
    """Redraw the first weights at 1/√D, which is GPT-2's 0.02 in a model of width 2,500.

    Initial scores of a narrow model then differ as much as those of a wide one.
    """
    model.initialise(std=model.config.d_model**-0.5)


def rotated(x: Tensor) -> Tensor:
    """Pairs of features rotated by an angle that grows with the position. x [B, T, H, K].

    Rotary positions, Su et al. (2021), eq. 15: products of two such vectors depend on their
    distance.
    """
    T, half = x.shape[1], x.shape[-1] // 2
    turn = 10_000.0 ** (-torch.arange(half, device=x.device) / half)
    angle = (torch.arange(T, device=x.device)[:, None] * turn)[:, None]  # [T, 1, K / 2]
    a, b = x.float().chunk(2, -1)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1).to(x.dtype)


def rotation(model: GPT) -> None:
    """Make every layer rotate its queries and keys: before the feature map, if there is one."""

    def rotating(qkv: Projection) -> Projection:
        def projected(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            q, k, v = qkv(x)
            return rotated(q), rotated(k), v

        return projected

    change_projections(model, rotating)


# Changes to how tokens of a fresh model interact.
MEETS = {
    "sinusoids": sinusoids,
    "rotation": rotation,
    "token shift": token_shift,
    "larger weights": larger_weights,
}


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`."""
    training = Training(config, session.corpus(config["corpus"]), session.device)
    if "meets" in config:
        MEETS[config["meets"]](training.model)
    return train_through(training, session)


EXPERIMENT = Experiment(
    "plateau", "what ends the plateau of a long context, one change at a time", TABLES, runs,
    perform,
)  # fmt: skip
