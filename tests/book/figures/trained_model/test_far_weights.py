"""Gain against features: which runs a line takes, and what a share of the way is."""

import pytest

from book.figures.lib.records import NotMeasuredError
from book.figures.trained_model import far_weights
from experiments import far_weights as experiment
from tests.book.figures.made_up import made


def run(name, way, number, gain, features=None, *, total=True, text="passages"):
    config = experiment._run(name, way, number, total, text=text).config
    seconds = [3.0 - one for one in gain]
    texts = {"text": [0, 1], "gain": gain, "second": seconds}
    tables = {"texts": texts} | ({"features": {"numbers": [features]}} if features else {})
    return made("far_weights", name, config, tables)


@pytest.fixture
def stored(monkeypatch):
    runs = [
        run("taylor-2", "taylor", 2, [9.0, 9.0], 2145, total=False),
        run("taylor-4-passage", "taylor", 4, [0.0, 1.0], 814385),
        run("taylor-2-passage", "taylor", 2, [0.0, 0.0], 2145),
        run("taylor-64-passage", "taylor", 64, [2.0, 2.0], 2.4e37),
        run("rank-4", "rank", 4, [1.0, 2.0], 4),
        run("unseen-rank-4", "rank", 4, [0.0, 0.5], 4, text="unseen"),
        run("softened-2", "softened", 2.0, [1.0, 1.0]),
    ]
    monkeypatch.setattr(far_weights, "learned", lambda name: runs)


def test_a_line_has_the_runs_that_change_the_same_places_smallest_first(stored):
    lines = far_weights._lines()
    assert {way: [one[0] for one in line] for way, line in lines.items()} == {
        "rank": [4], "taylor": [2145, 814385],
    }  # fmt: skip
    assert lines["taylor"][1][1].mean == 0.5


def test_recall_is_measured_against_another_passage_first(stored):
    assert far_weights.recall("rank-4").mean == 1.25
    with pytest.raises(NotMeasuredError, match="no unseen-softened-2"):
        far_weights.recall("softened-2")
