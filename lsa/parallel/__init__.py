"""One sequence over several ranks of `torch.distributed`: each holds a part; states are exchanged.

A layer whose state is linear in its past needs one small exchange, whose size does not depend on
the length of the sequence. This package imports nothing of torch.distributed that torch does not
import itself.
"""

from .attention import linear_attention
from .by_heads import attention_by_heads
from .ranks import WAYS, Ranks
from .ring import ring_attention
from .transitions import Transition, chain, transition_of

__all__ = [
    "WAYS",
    "Ranks",
    "Transition",
    "attention_by_heads",
    "chain",
    "linear_attention",
    "ring_attention",
    "transition_of",
]
