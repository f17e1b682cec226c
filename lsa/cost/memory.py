"""The least memory that training a GPT needs, B on each of several devices."""

from __future__ import annotations

from dataclasses import replace

from ..checks import boolean, instance, whole
from ..gpt import GPT, GPTConfig
from ..meta import on_meta

WEIGHT = 16  # B a weight in float32: itself, its gradient, the two moments of AdamW
# B that a block stores of a token and feature for its gradient, in bfloat16 with float32 norms and
# residuals. From the runs of experiments/loss_curves.py that fitted into 80 GB and that did not.
KEPT = 36
INPUT = 4  # B of a feature of a block's input, float32: stored if the rest is recomputed
LOGIT = 8  # B of a logit and its gradient in float32


def training_memory(
    config: GPTConfig, tokens: int, *, devices: int = 1, recompute: bool = False
) -> int:
    """Least B on each of `devices`, which share the weights and hold `tokens` at a time.

    Weights, gradients and moments are sharded evenly. Each of several devices gathers a block's
    weights and their gradients. recompute: a block stores its input alone and is computed again
    for its gradient. Scratch memory is left out, so this is a lower bound.
    """
    instance("config", config, GPTConfig)
    whole("tokens", tokens, 0)
    whole("devices", devices)
    boolean("recompute", recompute)
    with on_meta():  # blocks are alike, and one is made in a moment
        model = GPT(replace(config, n_layer=min(config.n_layer, 1)))
    block = sum(p.numel() for p in model.blocks[0].parameters())
    weights = sum(p.numel() for p in model.parameters()) + (config.n_layer - 1) * block
    gathered = 0 if devices == 1 else WEIGHT // 2 * block
    feature = INPUT * config.n_layer + KEPT if recompute else KEPT * config.n_layer
    kept = config.d_model * feature + config.vocab_size * LOGIT
    return -(-weights * WEIGHT // devices) + gathered + tokens * kept
