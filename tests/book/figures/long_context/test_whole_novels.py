"""Whole novels and recall: differences on the same pages, and the rows that are shown."""

import math

import pytest

from book.figures.lib.records import NotMeasuredError
from book.figures.lib.tasks import Kind
from book.figures.long_context import long_context_tables, recall, whole_novels
from tests.book.figures.made_up import columns


def novels(*rows):
    table = columns("novel first last whole window", rows)
    return {"path": "x", "name": "linear-4096", "tables": {"positions": table}}


def test_the_cost_is_that_of_the_same_pages():
    """One novel is harder than the other by far more than the far past costs either."""
    run = novels(
        (0, 4097, 8192, 1.501, 1.5), (0, 8193, 10000, 1.4, 1.4), (1, 4097, 8192, 2.003, 2.0)
    )
    (found,) = whole_novels.by_doubling([run])  # a single novel goes further: no spread, no point
    assert (found["first"], found["last"], found["novels"]) == (4097, 8192, 2)
    assert found["cost"] == pytest.approx(0.002)
    assert found["half"] == pytest.approx(12.71 * math.sqrt(2) * 0.001 / math.sqrt(2))


def test_seeds_that_agree_leave_the_t_of_the_novels():
    run = novels(
        (0, 4097, 8192, 1.501, 1.5), (1, 4097, 8192, 2.003, 2.0), (2, 4097, 8192, 1.002, 1.0)
    )
    standard = 0.001 / math.sqrt(3)
    for seeds in (1, 2, 3):
        (found,) = whole_novels.by_doubling([run] * seeds)
        assert found["half"] == pytest.approx(4.303 * standard)


def test_models_are_compared_novel_by_novel(monkeypatch):
    """Novels differ in cost by more than the models do on each of them."""
    easy = [0.001, 0.005, -0.003]
    stored = {
        name: [
            novels(*((n, 4097, 8192, cost + less, 0.0) for n, cost in enumerate(easy)))
            | {"config": {"seed": seed}}
            for seed in seeds
        ]
        for name, less, seeds in (("softmax", 0.0, [0]), ("linear", -0.0003, [0, 1]))
    }
    stored["linear"][1]["tables"]["positions"]["whole"] = [9.0] * 3  # a seed that softmax lacks
    monkeypatch.setattr(whole_novels, "runs_of", lambda attention, context: stored[attention])
    found = whole_novels.apart(4096)
    assert found.mean == pytest.approx(-0.0003)
    assert found.error == pytest.approx(0, abs=1e-9)
    assert found.of() == "3 of 3"


def test_a_rise_is_measured_against_a_model_of_the_same_seed(monkeypatch):
    """The pages grow harder for both; one seed rises by a hundredth beyond them, one does not."""

    def run(seed, last):
        columns = {"reading": ["whole"] * 2, "last": [255, 511], "loss": [1.0 + seed, last]}
        return {"config": {"seed": seed}, "tables": {"positions": columns}}

    runs = {256: [run(0, 1.31), run(1, 2.5)], 16384: [run(0, 1.3), run(1, 2.5), run(2, 9.0)]}
    monkeypatch.setattr(
        long_context_tables.race, "by_model", lambda context: {"linear": runs[context]}
    )
    found = long_context_tables.rise("linear", 256)
    assert (found.count, found.mean) == (2, pytest.approx(0.005))
    with pytest.raises(NotMeasuredError):
        long_context_tables.rise("softmax", 256)


def test_dense_texts_teach_and_are_not_shown(monkeypatch):
    asked = [(8, 32), (16, 64), (64, 256), (4, 128), (16, 128), (64, 1024)]
    tables = {
        "test": {
            "pairs": [pairs for pairs, _ in asked],
            "length": [length for _, length in asked],
            "accuracy": [0.5] * 6,
            "state": [7] * 6,
        }
    }
    monkeypatch.setattr(
        recall, "at_best_rates", lambda task: {Kind("delta", 1): [{"tables": tables}]}
    )
    assert [*recall.shares("delta")] == [(4, 128), (16, 128), (64, 256), (64, 1024)]
    assert recall.recalled("delta", 64) == 0.5
    assert recall.by_seed("delta", 16) == [0.5]
    with pytest.raises(NotMeasuredError):
        recall.shares("linear")


def test_who_learned_a_task_is_told_by_how_its_training_ended(monkeypatch):
    runs = [{"tables": {"end": {"ending": [ending]}}} for ending in ("solved", "stopped", "solved")]
    monkeypatch.setattr(recall, "by_model", lambda: {"delta": runs})
    assert recall.learners("delta") == 2
    with pytest.raises(NotMeasuredError):
        recall.learners("linear")
