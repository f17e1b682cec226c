"""Guarded sentences of the chapter on the relatives."""

from collections import defaultdict

from ..figures.lib import tasks
from ..figures.lib.records import NotMeasuredError, Record, learned, of_config
from ..figures.relatives import family, play, synthetic_tasks
from ..figures.relatives.layer_speed import BATCH, LONG, SHORT, ahead, tick
from ..figures.relatives.overwriting import TASK, erasing, hardest, shares
from . import every

FIXED = ("linear", "rwkv", "s6", "gated", "delta")  # layers with a state of fixed size


def seconds(layer: str, batch: int, position: int) -> float:
    """Seconds of a tick."""
    return tick(layer, batch, position)["seconds"]


def recalled(model: str) -> synthetic_tasks.Score:
    """Share recalled of the largest number of pairs."""
    return synthetic_tasks.share("recall", model)


def of_task(task: str, model: str) -> list[Record]:
    """The runs of a task with a model, of all rates and seeds."""
    wanted = {"task": task, "model": model}
    return [run for run in learned(tasks.EXPERIMENT) if wanted.items() <= run["config"].items()]


def stuck(model: str) -> int:
    """How many of them answer little more than a model that guesses."""
    return sum(hardest(run) < 1.5 * recalled("none").high for run in of_task("recall", model))


def pairs(task: str) -> dict[float, list[float]]:
    """Share right with the erase term less that without, by seed, for each rate."""
    erases, adds = (
        {(run["config"]["learning_rate"], run["config"]["seed"]): hardest(run)
         for run in of_task(task, model)}
        for model in ("delta", "delta-adds")
    )  # fmt: skip
    found: dict[float, list[float]] = defaultdict(list)
    for rate, seed in erases.keys() & adds.keys():
        found[rate].append(erases[rate, seed] - adds[rate, seed])
    return found


def rate(task: str, model: str) -> float:
    """A model's best learning rate."""
    if not (runs := tasks.of_usual_size(tasks.at_best_rates(task)).get(model)):
        raise NotMeasuredError(f"{tasks.EXPERIMENT}: no {model} at {task}")
    return runs[0]["config"]["learning_rate"]


def state(task: str, model: str) -> int:
    """Bytes of a model's state after a text of 256 tokens."""
    return shares(task, model, "length")[256].state


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
    "All of these keep about 4 KiB": lambda: every(
        4000 < state("recall", model) < 4300
        for model in ("delta", "delta-adds", "gated", "linear", "gla")
    ),
    "They are means of three seeds": lambda: every(
        len(tasks.trainings(task)) == 9 for task in family.TASKS
    ),
    "Erasing pays where a key gets a new value": lambda: (
        erasing(TASK).mean > (erasing(TASK).half or 1)
    ),
    "with all three seeds. (± of a difference": lambda: (
        erasing(TASK).agreeing == erasing(TASK).count == 3
    ),
    "At each of the other two rates one seed says the opposite": lambda: (
        [sum(lead < 0 for lead in pairs(TASK)[rate]) for rate in (1e-3, 3e-3, 1e-2)] == [1, 0, 1]
    ),
    "The erase term of the delta rule brings": lambda: (
        erasing(TASK).mean > (erasing(TASK).half or 1)
    ),
    "The delta rule's lead over linear attention in recall does not need its erase term": lambda: (
        min(recalled("delta").low, recalled("delta-adds").low) > recalled("linear").high + 0.2
    ),
    "the delta rule beats linear attention with or without it": lambda: (
        min(recalled("delta").low, recalled("delta-adds").low) > recalled("linear").high
    ),
    "By seed the delta rule leads by": lambda: every(
        lead.mean > (lead.half or 100)
        for lead in (tasks.lead("recall", name, "linear") for name in ("delta", "delta-adds"))
    ),
    "At each of three rates, with each of three seeds, the control recalls more": lambda: (
        [len(leads) for leads in pairs("recall").values()] == [3, 3, 3]
        and max(lead for leads in pairs("recall").values() for lead in leads) < 0
    ),
    "In selective copying erasing brings": lambda: erasing("selective copying").mean > 0,
    "But the interval of selective copying includes zero, and that of recall ends there": lambda: (
        abs(erasing("selective copying").mean) < (erasing("selective copying").half or 0)
        and abs(abs(erasing("recall").mean) - (erasing("recall").half or 0)) < 0.5
    ),
    "In both tasks the difference has the same sign with all three seeds": lambda: every(
        erasing(task).agreeing == erasing(task).count == 3
        for task in ("recall", "selective copying")
    ),
    "among them the control, do best at an end of the range of rates": lambda: (
        {rate("recall", "delta-adds"), rate("selective copying", "delta-adds")} <= {1e-3, 1e-2}
    ),
    "Only softmax among these layers reached 99.5%": lambda: every(
        (hardest(run) > 0.99) == (model == "softmax")
        for model, runs in tasks.of_usual_size(tasks.at_best_rates("recall")).items()
        for run in runs
    ),
    "never left chance with one of its seeds, whichever rate it had": lambda: (
        stuck("gated-delta") == 3
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
