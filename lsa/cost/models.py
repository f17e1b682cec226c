"""What a whole GPT costs: one tick of its machine, one update of its training."""

from __future__ import annotations

from ..gpt import GPTConfig
from .modes import mode_cost
from .rooflines import STATE_BYTES, Cost


def tick_cost(attention: str, t: int, config: GPTConfig, *, itemsize: int = 2) -> Cost:
    """One tick of a whole GPT's machine when t tokens are in its state, batch of one.

    Every weight is read once; the state is read (a KV cache) or read and written (a recurrent
    state). `state` is the state's size after the tick. Raises ValueError for unknown attention.
    """
    D, L = config.d_model, config.n_layer
    weights = L * 12 * D * D + config.vocab_size * D
    if attention == "softmax":
        cache = 2 * (t + 1) * D * L * itemsize
        return Cost(2 * weights + 4 * (t + 1) * D * L, weights * itemsize + cache, L, cache)
    if attention == "linear":
        width = D // config.n_head
        state = L * config.n_head * (width * width + width) * STATE_BYTES
        flops = 2 * weights + 4 * L * config.n_head * width * width
        return Cost(flops, weights * itemsize + 2 * state, L, state)
    raise ValueError(f"attention: expected softmax or linear, got {attention!r}")


def update_flops(attention: str, config: GPTConfig, T: int, *, chunk_size: int = 64) -> int:
    """FLOPs a token of one training update (forward, and twice that backward) at context T.

    Linear attention is computed in `config.mode`.
    """
    D, L = config.d_model, config.n_layer
    weights = L * 12 * D * D + config.vocab_size * D
    width = D // config.n_head
    mode = config.mode if attention == "linear" else "softmax"
    heads = L * config.n_head * mode_cost(mode, T, width, width, chunk_size=chunk_size).flops
    return 3 * (2 * weights + heads // T)
