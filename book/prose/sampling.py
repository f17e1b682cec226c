"""Guarded sentences of the chapter on sampling."""

from ..figures.index.sampling_speed import (
    SHORT,
    batch_gain,
    bytes_rise,
    longest,
    seconds,
    spread,
)
from ..figures.sampling import surgery, written_words
from . import every


def moves() -> list[float]:
    """Change of the next letter's distribution without each word of the stage's first text."""
    return [word["moved"] for word in surgery.effects()["words"]]


def rise(position: int) -> float:
    """Seconds by which a token of the 124M model with a cache takes longer than its first token."""
    return seconds("softmax", position) - seconds("softmax", 1)


def shares(race: str, writer: str) -> list[float]:
    """The known words among those that each model of a race writes."""
    runs = [run for run in written_words.writers() if run["config"]["race"] == race]
    return [written_words.known(run, writer) for run in runs]


VERDICTS = {
    "With softmax attention the cost of a token grows with the text before it": lambda: (
        seconds("softmax", longest()) > 2 * seconds("softmax", 1)
    ),
    "With linear attention it does not. On a CPU": lambda: spread("linear") < 0.15,
    "rises as the bytes of the cache do": lambda: every(
        0.75 < rise(position) / position / (rise(longest()) / longest()) < 1.35
        for position in (4096, 8192)
    ),
    "The time of the nano model does not rise so": lambda: (
        bytes_rise(SHORT) > 2
        and seconds("softmax", SHORT, "nano") < 1.2 * seconds("softmax", 1, "nano")
    ),
    "nearly all of their words occur in the training novels": lambda: every(
        known > 0.95 for known in shares("long_race", "sampled")
    ),
    "The likeliest letters spell known words, but every such text repeats itself": lambda: every(
        written_words.known(run, "greedy") > 0.99
        and written_words.repeating(run, "greedy") == "100 of 100"
        for run in written_words.writers()
    ),
    "The last two words of the sentence change the next letter most": lambda: (
        min(moves()[-2:]) > 0.5 and max(moves()[:-2]) < 0.15
    ),
    "For this word the near-sighted heads decide": lambda: every(
        near > 0.8 * moves()[surgery.picked()] > 4 * far
        for near, far in [surgery.by_head(surgery.picked())]
    ),
    "The one with the state, once texts are long": lambda: (
        batch_gain("linear") > 2 * batch_gain("softmax")
    ),
}
