"""Guarded sentences of the chapter on the relatives."""

from ..figures.lib import tasks
from ..figures.lib.records import learned, of_config
from ..figures.relatives import play, synthetic_tasks
from ..figures.relatives.layer_speed import BATCH, LONG, SHORT, ahead, tick
from ..figures.relatives.overwriting import MOST, TASK, erasing, shares
from . import every

FIXED = ("linear", "rwkv", "s6", "gated", "delta")  # layers with a state of fixed size


def seconds(layer: str, batch: int, position: int) -> float:
    """Seconds of a tick."""
    return tick(layer, batch, position)["seconds"]


def recalled(model: str) -> float:
    """Share recalled of the largest number of pairs."""
    return synthetic_tasks.share("recall", model)


def state(task: str, model: str) -> int:
    """Bytes of a model's state after a text of 256 tokens."""
    return shares(task, model, "length")[256].state


def overwritten(model: str, writes: int = MOST) -> float:
    """Share of newest values after this number of writes of each key."""
    return shares(TASK, model, "writes")[writes].mean


def mistaken(model: str) -> int:
    """Number of a model's wrong answers on the first text of recall."""
    runs = learned(play.EXPERIMENT)
    first, *_ = play.texts(
        {name: of_config(runs, task="recall", model=name) for name in play.MODELS}
    )
    return sum(a != b for a, b in zip(first["said"][model], first["wanted"], strict=True))


VERDICTS = {
    "Linear answers from memory, and mixes some numbers up": lambda: (
        mistaken("softmax") == 0 < mistaken("linear")
    ),
    "One learning rate and one seed so far; {ref}`older runs": tasks.is_one_rate_and_seed,
    "At one write, where nothing can be erased, they answer": lambda: (
        overwritten("delta-adds", 1) < overwritten("delta", 1)
    ),
    "One run of each layer, at one learning rate, gives no verdict": tasks.is_one_rate_and_seed,
    "The differences have no error yet": tasks.is_one_rate_and_seed,
    "are stored so far. These do not rank the layers": tasks.is_one_rate_and_seed,
    "All of these keep about 4 KiB": lambda: every(
        4000 < state("recall", model) < 4300
        for model in ("delta", "delta-adds", "gated", "linear", "gla")
    ),
    "One run each does not settle it": tasks.is_one_rate_and_seed,
    "In the one run of each so far": tasks.is_one_rate_and_seed,
    "These two runs do not support": lambda: erasing("recall").mean < 0,
    "With them the gated delta rule stays at chance": lambda: (
        abs(recalled("gated-delta") - recalled("none")) < 0.01
    ),
    "With {view}`many texts at a time <layer-ticks:batch=16>` the gap is largest": lambda: all(
        seconds(name, BATCH, LONG) < seconds("softmax", BATCH, LONG) / 5
        and seconds(name, 1, LONG) < 1.5 * seconds(name, 1, 1)
        for name in FIXED
    ),
    "At the first token softmax is faster than linear attention": lambda: (
        seconds("softmax", BATCH, 1) < seconds("linear", BATCH, 1)
    ),
    "takes {glue:text}`step_short` the time of softmax, which is one fused call": lambda: (
        1 < ahead("linear", "softmax", SHORT) < ahead("linear", "softmax", LONG)
    ),
    "and S4D still {glue:text}`step_s4d`": lambda: (
        ahead("s4d", "softmax", LONG) < 1
        and min(ahead(name, "softmax", LONG) for name in ("delta", "mamba")) > 1
    ),
}
