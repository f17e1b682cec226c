"""Guarded sentences of the chapter on sampling."""

from ..figures.index.sampling_speed import longest, seconds


def ratio(scale: str) -> float:
    """Softmax's time of a token over linear attention's, at the last position measured."""
    last = longest(scale)
    return seconds("softmax", last, scale) / seconds("linear", last, scale)


VERDICTS = {
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
