"""Numbers of the README are those of the stored results."""

from pathlib import Path

import pytest

from book.figures.index import price, race, race_numbers
from book.figures.lib.records import load

ROOT = Path(__file__).resolve().parents[4]
RACE = (
    "On a CPU, {updates_16384} updates of the book's small model at 16,384 bytes take "
    "{softmax_minutes_16384} minutes with softmax and {linear_minutes_16384} with linear attention;"
)
RECALL = (
    "asked for one of 64 values, softmax is right in {recall_softmax}, a state of {recall_state} "
    "numbers in {recall_linear}"
)


@pytest.mark.parametrize(("sentence", "module"), [(RACE, race_numbers), (RECALL, price)])
def test_numbers_are_computed(sentence, module):
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert sentence.format(**module.numbers()) in readme


def test_its_first_words_say_where_numbers_come_from():
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split()[:100])
    assert "Nothing here ran on a GPU. On a CPU, " in readme
    assert "minutes with softmax" in readme


def test_claims_hold():
    assert {run["provenance"]["device"]["kind"] for run in load()} == {"cpu"}
    behind = race_numbers.linear_behind(race.OPENS_AT)
    assert abs(behind.mean) < behind.half
    assert race_numbers.near_lead(race.OPENS_AT).mean > 0
    assert min(race_numbers.convolution_leads()) > 0
    assert len(race_numbers.convolutions()) == 3
