"""Of the chapter on the relatives."""

from ..figures.relatives import synthetic_tasks
from ..figures.relatives.layer_speed import BATCH, LONG, SHORT, ahead, tick

FIXED = ("linear", "rwkv", "s6", "gated", "delta")  # layers with a state of fixed size


def seconds(layer: str, batch: int, position: int) -> float:
    """Of a tick."""
    return tick(layer, batch, position)["seconds"]


VERDICTS = {
    "most of the runs stopped before they had learned the task": lambda: (
        synthetic_tasks.unsolved("recall") > 0.5
    ),
    "With its cache softmax attention samples": lambda: all(
        seconds(name, BATCH, LONG) < seconds("softmax", BATCH, LONG) / 5
        and seconds(name, 1, LONG) < 1.5 * seconds(name, 1, 1)
        for name in FIXED
    ),
    "After the first token linear attention gains nothing": lambda: (
        seconds("softmax", BATCH, 1) < seconds("linear", BATCH, 1)
    ),
    "the time of softmax, which is one fused call": lambda: (
        ahead("linear", "softmax", SHORT) < 1 < ahead("linear", "softmax", LONG)
    ),
    "the time of softmax there, and the Mamba block": lambda: all(
        ahead(name, "softmax", LONG) < 1 for name in ("s4d", "mamba")
    ),
}
