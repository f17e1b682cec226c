"""Linear self-attention: three modes, the layers around them, and the cost of each."""

from .attention import LinearState, backends, linear_attention
from .gpt import GPT, SCALES, GPTConfig, gpt_config
from .layers import (
    LAYERS,
    RNN,
    BidirectionalAttention,
    DeepRNN,
    KGram,
    LinearAttention,
    NoAttention,
    SoftmaxAttention,
    TaylorAttention,
    softmax_attention,
)
from .machines import StateMachine, tape, unroll
from .sampling import sample
from .sequences import all_prefixes, autoregressive, is_causal, is_causal_at, take_last

__version__ = "0.1.0"

__all__ = [
    "GPT",
    "LAYERS",
    "RNN",
    "SCALES",
    "BidirectionalAttention",
    "DeepRNN",
    "GPTConfig",
    "KGram",
    "LinearAttention",
    "LinearState",
    "NoAttention",
    "SoftmaxAttention",
    "StateMachine",
    "TaylorAttention",
    "all_prefixes",
    "autoregressive",
    "backends",
    "gpt_config",
    "is_causal",
    "is_causal_at",
    "linear_attention",
    "sample",
    "softmax_attention",
    "take_last",
    "tape",
    "unroll",
]
