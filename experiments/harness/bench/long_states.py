"""The state of a Llama's machine far into a text, made without reading the text."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lsa.layers import KVCache
from lsa.layers.window import RingCache
from lsa.llama import Llama


@torch.no_grad()
def state_at(model: Llama, position: int) -> Any:
    """A machine's state at a position, with random keys, values and sums.

    The time of a tick does not depend on their values.
    """
    machine = model.machine()
    token = torch.zeros(1, dtype=torch.long, device=model.embed_tokens.weight.device)
    return _long(machine.step(machine.initial_state, token)[0], position)


def _long(state: Any, position: int) -> Any:
    """A state after one token, extended to one at `position`."""
    if isinstance(state, KVCache):
        B, _, G, K = state.k.shape
        k, v = (state.k.new_empty(B, position, G, K).uniform_() for _ in range(2))
        return KVCache().extend(k, v)
    if isinstance(state, RingCache):
        k, v = (torch.rand_like(x) for x in (state.k, state.v))
        return RingCache(k, v, state.first, position)
    if isinstance(state, Tensor):
        return torch.rand_like(state)
    if isinstance(state, int):
        return position
    parts = [_long(part, position) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)
