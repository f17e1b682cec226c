"""Numbers of the README are those of the stored results."""

import re
from functools import cache
from pathlib import Path

import pytest

from book.figures.index import price, race_numbers, speedup
from book.figures.training import long_race_numbers

ROOT = Path(__file__).resolve().parents[4]
SPEED = (
    "On two CPU cores one head, with gradients, is {layer_4096} as fast as softmax at 4,096 "
    "tokens and {layer_longest} at 131,072. A block of GPT-2 (124M) trains {small_4096} as fast "
    "at 4,096 and {small_16384} at 16,384."
)
RECALL = (
    "asked for one of 64 values, softmax is right in {recall_softmax}, linear attention in "
    "{recall_linear}, with a table of {recall_state} numbers."
)
SIGNED = "With silu features and an output norm one head is right in {recall_signed}."
RACE = (
    "On a CPU, {updates_16384} updates at 16,384 bytes take {softmax_minutes_16384} minutes with "
    "softmax and {linear_minutes_16384} with linear attention;"
)
MORE = (
    "a larger model reads every training novel once, {long_all_read}. Softmax begins to copy "
    "passages, with one seed between {long_onset_0}, with another between {long_onset_1}. Linear "
    "attention does not, and ends {long_all_behind} nats higher (two seeds)."
)


def readme() -> str:
    return " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


@cache
def numbers() -> dict[str, str]:
    return (
        speedup.numbers() | price.numbers() | race_numbers.numbers() | long_race_numbers.numbers()
    )


@pytest.mark.parametrize("sentences", [SPEED, RECALL, SIGNED, RACE, MORE])
def test_numbers_are_computed(sentences):
    assert sentences.format(**numbers()) in readme()


def test_first_words_say_what_happens_what_it_brings_and_what_it_costs():
    """Of the README and of the first page, which differ in what is glued."""
    page = " ".join((ROOT / "book" / "index.md").read_text(encoding="utf-8").split())
    page = page[page.index("```{question} ") :]
    page = re.sub(r":::\{stage\}.*?(\*\*.*?\*\*).*?:::", r"\1", page)  # without its caption
    page = re.sub(r"```\{code-cell\}.*?```|```|\{question\}", " ", page)
    page = re.sub(r"\{glue:text\}`(\w+)`", lambda name: numbers().get(name[1], "…"), page)
    for text, words in ((readme(), 100), (page, 130)):  # the page says what linear attention is
        opening = " ".join(text.split()[:words])
        assert SPEED.format(**numbers()) in opening
        assert RECALL.format(**numbers()) in opening
