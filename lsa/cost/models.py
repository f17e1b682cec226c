"""Costs of a whole GPT: one tick of its machine, one update of its training."""

from __future__ import annotations

import torch
from torch import nn

from ..checks import instance, whole
from ..gpt import GPTConfig
from ..layers import Layer
from .rooflines import STATE_BYTES, Cost


def tick_cost(config: GPTConfig, t: int, *, itemsize: int = 2) -> Cost:
    """One tick of a whole GPT's machine when t tokens are in its state, batch of one.

    Every weight is read once; a state that grows (a KV cache) is read, one of fixed size read and
    written. `state` is the state's size after the tick, in float32, or in `itemsize` bytes a number
    if it grows (AFT-full, which keeps keys in float32, has twice that in bfloat16).
    """
    instance("config", config, GPTConfig)
    whole("t", t, 0)
    whole("itemsize", itemsize)
    L, layer, weights = config.n_layer, described(config), matrix_weights(config)
    grows = layer.state_numbers(t + 1) > layer.state_numbers(t)
    state = L * layer.state_numbers(t + 1) * (itemsize if grows else STATE_BYTES)
    flops = 2 * weights + L * layer.tick_flops(t + 1)
    return Cost(flops, weights * itemsize + (1 if grows else 2) * state, L, state)


def update_flops(config: GPTConfig, T: int) -> int:
    """FLOPs a token of one training update (forward, and twice that backward) at context T >= 1."""
    instance("config", config, GPTConfig)
    whole("T", T)
    mixing = config.n_layer * described(config).sequence_flops(T)
    return 3 * (2 * matrix_weights(config) + mixing // T)


def matrix_weights(config: GPTConfig) -> int:
    """Weights of all matrices that a token meets: each layer's projections, MLPs, and the head."""
    D = config.d_model
    return (
        config.n_layer * (projection_weights(described(config)) + 8 * D * D) + config.vocab_size * D
    )


def projection_weights(layer: Layer) -> int:
    """Weights that each token is multiplied by, which a layer's own counts leave out."""
    return sum(m.weight.numel() for m in layer.modules() if isinstance(m, nn.Linear))


def described(config: GPTConfig) -> Layer:
    """The attention layer of a model, without room for its weights: it tells what it costs."""
    with torch.device("meta"):
        return config.attention_layer()
