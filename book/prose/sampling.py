"""Guarded sentences of the chapter on sampling."""

from ..figures.index.sampling_speed import longest, seconds
from ..figures.long_context import whole_novels
from ..figures.sampling import surgery, writers


def ratio(scale: str) -> float:
    """Softmax's time of a token over linear attention's, at the last position measured."""
    last = longest(scale)
    return seconds("softmax", last, scale) / seconds("linear", last, scale)


def moves() -> list[float]:
    """How far the next letter moves without each word of the stage's first text."""
    return [word["moved"] for word in surgery.found()["words"]]


VERDICTS = {
    "The model misses its last words and hardly any other": lambda: (
        min(moves()[-2:]) > 0.5 and max(moves()[:-2]) < 0.15
    ),
    "The million letters do not help it": lambda: (
        whole_novels.last_read("linear", writers.CONTEXT)["cost"] > -0.001
    ),
    "With a cache the time of a token grows with the text. With a state": lambda: (
        seconds("linear", longest()) < 1.2 * seconds("linear", 1)
        and seconds("softmax", longest()) > 2 * seconds("softmax", 1)
    ),
    "At the beginning both kinds of attention cost the same": lambda: (
        0.9 < seconds("softmax", 1) / seconds("linear", 1) < 1.1
    ),
    "The smaller the model, the sooner its cache outweighs its weights": lambda: (
        ratio("nano") > ratio("124M")
    ),
}
