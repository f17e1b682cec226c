"""Costs of one tick of each layer's state machine."""

from __future__ import annotations

from functools import lru_cache

from ..checks import one_of, whole
from ..layers import Layer, make_layer
from ..meta import on_meta
from .models import projection_weights
from .rooflines import STATE_BYTES, Cost

MACHINES = {  # and the layer in lsa.layers.LAYERS whose machine or tape it is
    "rnn tape": "rnn",
    "rnn state": "rnn",
    "k-gram state": "kgram",
    "attention tape": "softmax",
    "kv cache": "softmax",
    "linear state": "linear",
    "taylor state": "taylor",
}
SUMS = ("linear", "taylor")  # of features, always kept in float32


def machine_cost(
    machine: str,
    t: int,
    D: int,
    *,
    n_heads: int = 1,
    degree: int = 2,
    k: int = 8,
    hidden: int | None = None,
    itemsize: int = 4,
) -> Cost:
    """Cost of tick t (counted from 1) of the machine of one layer of width D, batch of one.

    machine: one of MACHINES. The tapes run their whole layer over all t inputs again.
    n_heads: of the attention layers. degree: of "taylor state". k, hidden: of "k-gram state";
        hidden is 4 D by default.
    itemsize: bytes of a number in weights and inputs.

    FLOPs are those of the whole layer: mixing the tokens, by the layer's own count, plus its
    projections, which that count leaves out. `state` is the state's size after the tick. Bytes are
    the weights once, a growing state read once, a fixed one read and written. Raises ValueError for
    an unknown machine, or sizes that are no whole numbers or do not fit.
    """
    for name, value in (("t", t), ("D", D), ("n_heads", n_heads), ("k", k)):
        whole(name, value)
    whole("itemsize", itemsize)
    whole("degree", degree, 0)
    hidden = 4 * D if hidden is None else hidden
    whole("hidden", hidden)
    if D % n_heads:
        raise ValueError(f"n_heads: expected a divisor of D {D}, got {n_heads}")
    one_of("machine", machine, MACHINES)
    name = MACHINES[machine]
    options = {"kgram": {"k": k, "hidden": hidden}, "taylor": {"degree": degree}}.get(name, {})
    layer, weights = _layer(name, D, n_heads, **options)

    if machine.endswith("tape"):  # of D numbers a token
        state = t * D * itemsize
        # An RNN's states depend on each other; attention takes all tokens at once.
        steps = t if name == "rnn" else 1
        flops = 2 * weights * t + layer.sequence_flops(t)
        return Cost(flops, weights * itemsize + state, steps, state)
    state = layer.state_numbers(t) * (STATE_BYTES if name in SUMS else itemsize)
    passes = 1 if layer.state_numbers(t + 1) > layer.state_numbers(t) else 2
    flops = 2 * weights + layer.tick_flops(t)
    return Cost(flops, weights * itemsize + passes * state, 1, state)


@lru_cache
def _layer(name: str, D: int, n_heads: int, **options: int) -> tuple[Layer, int]:
    """A layer without memory for its weights, and the number of weights of its projections.

    Cached, because a sum over ticks needs the same layer at each tick.
    """
    with on_meta():
        layer = make_layer(name, D, n_heads, options=options)
    return layer, projection_weights(layer)
