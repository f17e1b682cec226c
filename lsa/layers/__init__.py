"""One file a layer; each has two faces: `layer(x)`, and `layer.machine()` for one token a tick."""

from .bidirectional import BidirectionalAttention
from .kgram import KGram
from .linear import LinearAttention
from .rnn import RNN, DeepRNN
from .softmax import KVCache, SoftmaxAttention, softmax_attention
from .taylor import TaylorAttention

__all__ = [
    "RNN",
    "BidirectionalAttention",
    "DeepRNN",
    "KGram",
    "KVCache",
    "LinearAttention",
    "SoftmaxAttention",
    "TaylorAttention",
    "softmax_attention",
]
