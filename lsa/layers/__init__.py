"""The layers, one file each: `layer(x)` for a sequence, `layer.machine()` for one token a tick."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..attention.api import LinearState
from ..checks import one_of
from ..scans import ExponentialSums
from .aft import AFTFull, AFTLocal, AFTSimple, LocalState
from .bidirectional import BidirectionalAttention
from .bidirectional_linear import BidirectionalLinearAttention
from .convolution import CausalConv
from .delta import DeltaNet
from .gated import GatedLinearAttention
from .kgram import KGram
from .layer import Layer, checking, checking_input
from .layer import ResidualLinear as ResidualLinear
from .layer import StartingLinear as StartingLinear
from .linear import LinearAttention
from .mamba import S6, Mamba
from .none import NoAttention
from .power import PowerAttention
from .rnn import RNN
from .rnn import DeepRNN as DeepRNN
from .rwkv import RWKVChannelMixing, RWKVTimeMixing, TimeMixingState
from .s4 import S4
from .s4d import S4D
from .softmax import KVBuffer, SoftmaxAttention
from .softmax import KVCache as KVCache
from .softmax import softmax_attention as softmax_attention
from .taylor import TaylorAttention
from .window import RingCache, WindowAttention
from .window import window_attention as window_attention
from .window_state import WindowState, WindowStateAttention

# All layers that can be a GPT's attention. A new one is its file and a line here.
LAYERS: dict[str, Callable[..., Layer]] = {
    "softmax": SoftmaxAttention,
    "linear": LinearAttention,
    "taylor": TaylorAttention,
    "none": NoAttention,
    "rnn": RNN,
    "kgram": KGram,
    "aft-simple": AFTSimple,
    "aft-local": AFTLocal,
    "aft-full": AFTFull,
    "rwkv": RWKVTimeMixing,
    "s4": S4,
    "s4d": S4D,
    "s6": S6,
    "mamba": Mamba,
    "conv": CausalConv,
    "gated": GatedLinearAttention,
    "delta": DeltaNet,
    "power": PowerAttention,
    "window": WindowAttention,
    "window-state": WindowStateAttention,
}
for _layer in LAYERS.values():
    checking(_layer)
for _other in (BidirectionalAttention, BidirectionalLinearAttention, RWKVChannelMixing):
    checking_input(_other)

# The states of machines: what has read a prompt may be saved, and loaded with torch's defaults.
torch.serialization.add_safe_globals(
    [
        LinearState, ExponentialSums, LocalState, TimeMixingState, RingCache, WindowState, KVCache,
        KVBuffer,
    ]
)  # fmt: skip


def layer_options(name: str) -> list[str]:
    """Options of a layer's constructor besides widths. Raises ValueError for an unknown layer."""
    one_of("attention", name, LAYERS)
    taken = inspect.signature(LAYERS[name]).parameters
    return [option for option in taken if option not in ("d_model", "n_heads", "bias")]


def make_layer(
    name: str,
    d_model: int,
    n_heads: int,
    *,
    bias: bool = True,
    max_length: int | None = None,
    options: Mapping[str, Any] = {},
) -> Layer:
    """A layer by its name in LAYERS. Heads and biases go to the layers that have them.

    max_length: the longest sequence to come, or None; only layers that need it receive it. Raises
    ValueError for an unknown name or option, or a required option that is missing.
    """
    known = layer_options(name)
    if not isinstance(options, Mapping):
        raise ValueError(f"attention_options: expected names and values, got {options!r:.60}")
    for option in options:
        if option not in known:
            raise ValueError(
                f"attention_options: expected {name}'s {', '.join(known) or 'none'}, got {option!r}"
            )
    taken = inspect.signature(LAYERS[name]).parameters
    offered: dict[str, Any] = {"n_heads": n_heads, "bias": bias}
    required = [key for key in known if taken[key].default is inspect.Parameter.empty]
    if max_length is not None and "max_length" in required:
        offered["max_length"] = max_length
    given = {key: value for key, value in offered.items() if key in taken} | dict(options)
    for option in required:
        if option not in given:
            got = ", ".join(options) or "none"
            raise ValueError(f"attention_options: expected {name}'s {option}, got {got}")
    return LAYERS[name](d_model, **given)
