"""Linear self-attention: three modes, the layers around them, and what each of them costs."""

from .attention import LinearState, linear_attention, softmax_attention
from .gpt import GPT, SCALES, GPTConfig, gpt_config
from .layers import LinearAttention, SoftmaxAttention
from .machines import StateMachine, tape, unroll
from .sampling import sample

__version__ = "0.1.0"

__all__ = [
    "GPT",
    "SCALES",
    "GPTConfig",
    "LinearAttention",
    "LinearState",
    "SoftmaxAttention",
    "StateMachine",
    "gpt_config",
    "linear_attention",
    "sample",
    "softmax_attention",
    "tape",
    "unroll",
]
