"""Softmax attention with the exponential cut after n terms: error and size of the state.

Queries and keys are normal, scaled so that the scores q·k / sqrt(K) have the standard deviation
`scale`; values are standard normal. Softmax and Taylor attention then see the same scores, in
float64, so they differ by the cut alone. The machine is that of `lsa.TaylorAttention`, with one
head in float32, for every state that is small enough for timing a tick.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from lsa import TaylorAttention
from lsa.layers.taylor import taylor_exp

from .harness.bench.timing import TIMING, measure
from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import Tables, append, table
from .priorities import LATE

TABLES = {
    "rows": table(
        scale=("standard deviation of the scores", "of q·k / sqrt(K), over all pairs"),
        degree=("terms after the 1", "n"),
        features=("features", "(K + n choose n): monomials, each once whatever its order"),
        rms=("relative RMS", "of the outputs' difference, over the RMS of softmax's outputs"),
        worst=("of the outputs' RMS", "the same for the output that is furthest off"),
        negative=("of the weights", "share of the causal weights below zero; none for an even n"),
        balance=(
            "of the weights' absolute sum",
            "the smallest normaliser over the sum of the absolute weights; 1 where none is < 0",
        ),
        state=("numbers", "that a head keeps, S and z"),
    ),
    "ticks": table(
        optional="for every state of at most `config.largest_state` numbers",
        degree=("terms after the 1", "n"),
        state=("numbers", "counted in real tensors"),
        **TIMING,
    ),
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """One run a key width: every scale and degree."""
    return [
        Run(
            "taylor_error",
            f"k{width}",
            {
                "width": width,
                "heads": 2 if smoke else 16,
                "length": 16 if smoke else 512,
                "scales": [0.5, 1.0, 2.0, 4.0],
                "degrees": list(range(3 if smoke else 9)),
                # A state with more float32 numbers than this is counted, but its tick is not timed.
                "largest_state": 10**4 if smoke else 6 * 10**7,
                "seed": 0,
            },
            3 if kind == "cpu" else LATE,
        )
        for width in ([4] if smoke else [8, 16, 32, 64])
    ]


def state_numbers(width: int, degree: int) -> tuple[int, int]:
    """Number of features, (K + n choose n), and numbers that a head stores: S and z, V = K."""
    features = math.comb(width + degree, degree)
    return features, features * (width + 1)


def scores_and_values(config: dict[str, Any], scale: float) -> tuple[Tensor, Tensor]:
    """Scores [H, T, T] of the given standard deviation, and v [H, T, K], in float64."""
    generator = torch.Generator().manual_seed(config["seed"])
    shape = (config["heads"], config["length"], config["width"])
    q, k, v = (torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(3))
    scores = q @ k.mT / config["width"] ** 0.5
    return scores * (scale / scores.std()), v


def errors(scores: Tensor, v: Tensor, degree: int) -> dict[str, float]:
    """Errors of Taylor attention of a degree against softmax attention, both causal."""
    past = torch.ones_like(scores[0], dtype=torch.bool).tril()
    expected = scores.masked_fill(~past, -math.inf).softmax(-1) @ v
    weights = taylor_exp(scores, degree) * past
    total, absolute = weights.sum(-1), weights.abs().sum(-1)
    gap = (weights @ v) / total[..., None] - expected
    size = expected.square().mean().sqrt()
    return {
        "rms": float(f"{gap.square().mean().sqrt() / size:.6g}"),
        "worst": float(f"{gap.square().mean(-1).sqrt().max() / size:.6g}"),
        "negative": round(((weights < 0).sum() / past.sum() / len(weights)).item(), 6),
        # 1 if all weights are positive; near 0, or below, if they cancel in the normaliser.
        "balance": round((total / absolute).min().item(), 6),
    }


@torch.no_grad()
def tick(config: dict[str, Any], degree: int, device: torch.device) -> dict[str, Any]:
    """Time one tick of the layer's machine, projections included, and count its actual state."""
    torch.manual_seed(config["seed"])
    width = config["width"]
    machine = TaylorAttention(width, 1, degree=degree).to(device).machine()
    x = torch.randn(1, width).to(device)
    state, _ = machine.step(machine.initial_state, x)
    timing = measure(lambda: machine.step(state, x), device)
    return {
        "degree": degree,
        "state": sum(part.numel() for part in state),
        **timing.columns,
    }


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`."""
    tables: Tables = {"rows": {}, "ticks": {}}
    for degree in session.through(config["degrees"], tables, "degree {}".format):
        features, state = state_numbers(config["width"], degree)
        for scale in config["scales"]:
            found = errors(*scores_and_values(config, scale), degree)
            row = {"scale": scale, "degree": degree, "features": features, **found, "state": state}
            append(tables, "rows", row)
        if state <= config["largest_state"]:
            append(tables, "ticks", tick(config, degree, session.device))
    return Outcome(tables, session.whole)


EXPERIMENT = Experiment(
    "taylor_error", "the exponential cut after n terms: error and state", TABLES, runs, perform
)
