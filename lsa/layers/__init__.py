"""One file a layer; each has two faces: `layer(x)`, and `layer.machine()` for one token a tick."""

from .linear import LinearAttention
from .softmax import KVCache, SoftmaxAttention

__all__ = ["KVCache", "LinearAttention", "SoftmaxAttention"]
