"""Costs of a whole GPT: one tick of its machine, one training step."""

from __future__ import annotations

from torch import nn

from ..checks import instance, whole
from ..gpt import GPTConfig
from ..layers import Layer
from ..meta import on_meta
from .rooflines import STATE_BYTES, Cost


def tick_cost(config: GPTConfig, t: int, *, itemsize: int = 2) -> Cost:
    """Cost of one tick of a GPT's machine with t tokens in its state, batch of one.

    Every weight is read once. A growing state (a KV cache) is read, one of fixed size is read and
    written. `state` is the state's size after the tick. A fixed one is float32, a growing one has
    `itemsize` bytes a number (AFT-full keeps keys in float32, twice that of bfloat16).
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
    """FLOPs a token of one training step, forward and twice that backward, at context T >= 1."""
    instance("config", config, GPTConfig)
    whole("T", T)
    mixing = config.n_layer * described(config).sequence_flops(T)
    return 3 * (2 * matrix_weights(config) + mixing // T)


def matrix_weights(config: GPTConfig) -> int:
    """Weights of all matrices that a token is multiplied by: projections, MLPs and the head."""
    D = config.d_model
    return (
        config.n_layer * (projection_weights(described(config)) + 8 * D * D) + config.vocab_size * D
    )


def projection_weights(layer: Layer) -> int:
    """Weights of a layer's projections, which its own counts leave out."""
    return sum(m.weight.numel() for m in layer.modules() if isinstance(m, nn.Linear))


def described(config: GPTConfig) -> Layer:
    """The attention layer of a model, without memory for its weights, for its cost functions."""
    with on_meta():
        return config.attention_layer()
