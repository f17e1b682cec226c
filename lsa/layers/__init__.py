"""One file a layer; each has two faces: `layer(x)`, and `layer.machine()` for one token a tick."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from torch import nn

from .bidirectional import BidirectionalAttention
from .kgram import KGram
from .layer import Layer
from .linear import LinearAttention
from .none import NoAttention
from .rnn import RNN, DeepRNN
from .softmax import KVCache, SoftmaxAttention, softmax_attention
from .taylor import TaylorAttention

# Every layer that can stand in a GPT's attention. A new one is its file and a line here.
LAYERS: dict[str, type[nn.Module]] = {
    "softmax": SoftmaxAttention,
    "linear": LinearAttention,
    "taylor": TaylorAttention,
    "none": NoAttention,
    "rnn": RNN,
    "kgram": KGram,
}


def layer_options(name: str) -> list[str]:
    """What a layer's constructor takes besides its widths. Raises ValueError for no such layer."""
    if name not in LAYERS:
        raise ValueError(f"attention: expected one of {', '.join(LAYERS)}, got {name!r}")
    taken = inspect.signature(LAYERS[name]).parameters
    return [option for option in taken if option not in ("d_model", "n_heads", "bias")]


def make_layer(
    name: str, d_model: int, n_heads: int, *, bias: bool = True, options: Mapping[str, Any] = {}
) -> Layer:
    """A layer by its name in LAYERS. Heads and biases go to the layers that have them.

    Raises ValueError for an unknown name or option.
    """
    known = layer_options(name)
    for option in options:
        if option not in known:
            raise ValueError(
                f"attention_options: expected {name}'s {', '.join(known) or 'none'}, got {option!r}"
            )
    offered = {"n_heads": n_heads, "bias": bias}
    taken = inspect.signature(LAYERS[name]).parameters
    shared = {key: value for key, value in offered.items() if key in taken}
    return LAYERS[name](d_model, **shared, **options)


__all__ = [
    "LAYERS",
    "RNN",
    "BidirectionalAttention",
    "DeepRNN",
    "KGram",
    "KVCache",
    "Layer",
    "LinearAttention",
    "NoAttention",
    "SoftmaxAttention",
    "TaylorAttention",
    "layer_options",
    "make_layer",
    "softmax_attention",
]
