"""Gain on a passage that comes again, of models that were trained on such passages."""

from __future__ import annotations

from ..lib.format import in_words
from ..lib.pairs import Pairs, compare
from ..lib.records import NotMeasuredError, Record, learned, rows

EXPERIMENT = "copying_curriculum"
MODELS = {"softmax": "cache", "linear": "sum"}  # what a model of the experiment keeps


def run_of(model: str) -> Record:
    """The run of seed 0 whose novels have planted passages. Raises NotMeasuredError."""
    wanted = {"model": MODELS[model], "seed": 0}
    for run in learned(EXPERIMENT):
        if wanted.items() <= run["config"].items() and run["config"]["returns"]:
            return run
    raise NotMeasuredError(f"{EXPERIMENT}: no {model}")


def gain(model: str, distance: int) -> Pairs:
    """Gain after training, over places of held-out novels. Raises NotMeasuredError."""
    run = run_of(model)
    last = run["config"]["updates"]
    return compare([row["gain"] for row in rows(run, "again", update=last, distance=distance)])


def numbers() -> dict[str, str]:
    """Numbers for the chapter."""

    def config() -> dict:
        return run_of("softmax")["config"]

    def megabytes() -> float:
        return config()["updates"] * config()["spans"] * config()["span"] / 1e6

    return in_words(
        copying_updates=lambda: f"{config()['updates']:,}",
        copying_context=lambda: f"{config()['context']:,}",
        copying_bytes=lambda: f"{megabytes():.0f}",
        copying_places=lambda: f"{config()['places']}",
        copying_softmax_64=lambda: gain("softmax", 64).spread(),
        copying_linear_64=lambda: gain("linear", 64).spread(),
        copying_softmax_1024=lambda: gain("softmax", 1024).spread(),
        copying_linear_1024=lambda: gain("linear", 1024).spread(),
    )
