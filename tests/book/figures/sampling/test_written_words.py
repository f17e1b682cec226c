"""The table of known words: counts are summed over texts, writers are in one order."""

import pytest

from book.figures.sampling import written_words

TEXTS = {
    "writer": ["novel", "greedy", "greedy", "sampled", "sampled"],
    "place": [0, 0, 1, 0, 1],
    "words": [50, 10, 30, 20, 0],
    "known": [49, 10, 30, 15, 0],
    "repeats": [0, 1, 1, 0, 0],
}


def run(race, model):
    config = {"race": race, "model": model, "places": 2, "letters": 9, "temperature": 0.8}
    return {"complete": True, "config": config, "tables": {"texts": TEXTS}, "name": model}


def test_shares_are_of_all_words_and_the_novels_stand_last(monkeypatch):
    stored = [run("long_race", "linear"), run("race", "linear"), run("race", "softmax")]
    monkeypatch.setattr(written_words, "learned", lambda _: stored)
    cells = written_words.table().cells
    assert [row[0] for row in cells] == [
        "Softmax, race", "Linear, race", "Linear, long race", "The novels themselves",
    ]  # fmt: skip
    assert cells[0][1:] == ["75.0 ± 0.0%", "0 of 2", "100.0 ± 0.0%", "2 of 2"]
    assert cells[-1][1:3] == ["98.0 ± 0.0%", "0 of 1"]
    assert written_words.numbers()["words_novels"] == "98.0 ± 0.0%"


def test_an_interval_is_over_places(monkeypatch):
    """Of 10 and 30 words 9 and 15 are known: 60%, and 3 words off at both places."""
    texts = {"writer": 2 * ["sampled"], "place": [0, 1], "words": [10, 30], "known": [9, 15]}
    one = {"tables": {"texts": texts}}
    assert written_words.known(one, "sampled") == pytest.approx(0.6)
    assert written_words.half(one, "sampled") == pytest.approx(12.706 * 6 / 40, rel=1e-3)
