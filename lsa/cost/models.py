"""What a whole GPT costs: one tick of its machine, one update of its training."""

from __future__ import annotations

import torch

from ..gpt import GPTConfig
from ..layers import Layer
from .rooflines import STATE_BYTES, Cost


def tick_cost(config: GPTConfig, t: int, *, itemsize: int = 2) -> Cost:
    """One tick of a whole GPT's machine when t tokens are in its state, batch of one.

    Every weight is read once; a state that grows (a KV cache) is read, one of fixed size read and
    written. `state` is the state's size after the tick.
    """
    D, L = config.d_model, config.n_layer
    weights = L * 12 * D * D + config.vocab_size * D
    layer = described(config)
    grows = layer.state_numbers(t + 1) > layer.state_numbers(t)
    state = L * layer.state_numbers(t + 1) * (itemsize if grows else STATE_BYTES)
    flops = 2 * weights + L * layer.tick_flops(t + 1)
    return Cost(flops, weights * itemsize + (1 if grows else 2) * state, L, state)


def update_flops(config: GPTConfig, T: int) -> int:
    """FLOPs a token of one training update (forward, and twice that backward) at context T."""
    D, L = config.d_model, config.n_layer
    weights = L * 12 * D * D + config.vocab_size * D
    return 3 * (2 * weights + L * described(config).sequence_flops(T) // T)


def described(config: GPTConfig) -> Layer:
    """The attention layer of a model, without room for its weights: it tells what it costs."""
    with torch.device("meta"):
        return config.attention_layer()
