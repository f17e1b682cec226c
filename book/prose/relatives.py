"""Guarded sentences of the chapter on the relatives."""

from ..figures.lib import tasks
from ..figures.lib.records import learned, of_config
from ..figures.relatives import play, synthetic_tasks
from ..figures.relatives.layer_speed import BATCH, LONG, SHORT, ahead, tick
from ..figures.relatives.overwriting import MOST, TASK, erasing, hardest, shares
from . import every

FIXED = ("linear", "rwkv", "s6", "gated", "delta")  # layers with a state of fixed size


def seconds(layer: str, batch: int, position: int) -> float:
    """Seconds of a tick."""
    return tick(layer, batch, position)["seconds"]


def recalled(model: str) -> synthetic_tasks.Score:
    """Share recalled of the largest number of pairs."""
    return synthetic_tasks.share("recall", model)


def stuck(model: str) -> int:
    """Runs of recall, of all rates and seeds, that answer hardly more than a model that guesses."""
    wanted = {"task": "recall", "model": model}
    runs = [run for run in learned(tasks.EXPERIMENT) if wanted.items() <= run["config"].items()]
    return sum(hardest(run) < 1.5 * recalled("none").high for run in runs)


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
    "At one write, where nothing can be erased, they answer": lambda: (
        overwritten("delta-adds", 1) < overwritten("delta", 1)
    ),
    "All of these keep about 4 KiB": lambda: every(
        4000 < state("recall", model) < 4300
        for model in ("delta", "delta-adds", "gated", "linear", "gla")
    ),
    "Recall and selective copying are means of three seeds": lambda: every(
        len(tasks.trainings(task)) == 9 for task in ("recall", "selective copying")
    ),
    "overwriting has one rate and one seed so far": lambda: len(tasks.trainings(TASK)) == 1,
    "It has one run of each layer so far": lambda: len(tasks.trainings(TASK)) == 1,
    "In overwriting the differences have no error yet": lambda: len(tasks.trainings(TASK)) == 1,
    "The delta rule recalls more than linear attention, but not because it erases. ": lambda: (
        recalled("delta").low > recalled("linear").high
        and recalled("delta-adds").low > recalled("linear").high + 0.3
        and erasing("recall").mean < 0
    ),
    "without its erase term it recalls at least as much": lambda: erasing("recall").mean < 0,
    "Three seeds do not settle what erasing itself is worth": lambda: every(
        abs(erasing(task).mean) < 1.02 * (erasing(task).half or 0)
        for task in ("recall", "selective copying")
    ),
    "In recall it costs {glue:text}`recall_erasing` points": lambda: erasing("recall").mean < 0,
    "In selective copying it brings": lambda: erasing("selective copying").mean > 0,
    "All three seeds agree in both signs": lambda: every(
        erasing(task).agreeing == erasing(task).count == 3
        for task in ("recall", "selective copying")
    ),
    "Of the layers drawn only softmax had solved the task": lambda: every(
        (recalled(name).high > 0.99) == (name == "softmax") for name in synthetic_tasks.SHOWN
    ),
    "stays at chance with one of the seeds at all three rates": lambda: stuck("gated-delta") == 3,
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
