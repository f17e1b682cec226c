"""Guarded sentences of the chapter on the relatives."""

from ..figures.lib import tasks
from ..figures.relatives import synthetic_tasks
from ..figures.relatives.layer_speed import BATCH, LONG, SHORT, ahead, tick
from ..figures.relatives.overwriting import erasing
from . import every

FIXED = ("linear", "rwkv", "s6", "gated", "delta")  # layers with a state of fixed size


def seconds(layer: str, batch: int, position: int) -> float:
    """Of a tick."""
    return tick(layer, batch, position)["seconds"]


def recalled(model: str) -> float:
    """Share of the most pairs that recall asks for."""
    return synthetic_tasks.share("recall", model)


VERDICTS = {
    "Without it: one learning rate and one seed so far": tasks.is_one_rate_and_seed,
    "Erasing pays where keys are written again, and not in recall": lambda: (
        erasing("overwriting", "writes").mean > 0.1 and erasing("recall", "pairs").mean < 0.02
    ),
    "One learning rate and one seed are stored so far, so the differences have no error yet": (
        tasks.is_one_rate_and_seed
    ),
    "Among the layers with about 4 KiB of state, DeltaNet recalls most of 64 pairs": lambda: every(
        recalled(name) < 0.6 * min(recalled("delta"), recalled("delta-adds"))
        for name in ("linear", "gated", "gla", "gated-delta", "s6", "mamba")
    ),
    "With them the gated delta rule stays at chance": lambda: recalled("gated-delta") < 0.03,
    "It recalls as much or more": lambda: erasing("recall", "pairs").mean < 0,
    "With {view}`many texts at a time <layer-ticks:batch=16>` the gap is largest": lambda: all(
        seconds(name, BATCH, LONG) < seconds("softmax", BATCH, LONG) / 5
        and seconds(name, 1, LONG) < 1.5 * seconds(name, 1, 1)
        for name in FIXED
    ),
    "At the first token softmax is faster": lambda: (
        seconds("softmax", BATCH, 1) < seconds("linear", BATCH, 1)
    ),
    "takes {glue:text}`step_short` the time of softmax, which is one fused call": lambda: (
        ahead("linear", "softmax", SHORT) < 1 < ahead("linear", "softmax", LONG)
    ),
    "the time of softmax there, and the Mamba block": lambda: all(
        ahead(name, "softmax", LONG) < 1 for name in ("s4d", "mamba")
    ),
}
