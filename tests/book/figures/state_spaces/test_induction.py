"""Induction heads: what counts as right beyond the trained length, and where a line ends."""

import pytest

from book.figures.lib import tasks
from book.figures.state_spaces import induction
from tests.book.figures.made_up import made


def run(model, seed, shares, rate=3e-3):
    """A run with a share of right answers at 256, 1,024, … tokens, as far as its test went."""
    config = {
        "task": "induction", "model": model, "attention": model, "attention_options": {},
        "n_head": 1, "seed": seed, "solved": 0.995, "learning_rate": rate, "updates": 2400,
    }  # fmt: skip
    lengths = [256 * 4**i for i in range(len(shares))]
    tables = {
        "curve": {"update": [40], "loss": [rate], "accuracy": [1.0]},
        "end": {"updates": [40], "ending": ["solved"]},
        "test": {
            "length": lengths, "accuracy": shares, "state": [8] * len(shares),
            "questions": [128, 128, 64, 16][: len(shares)],
        },
    }  # fmt: skip
    return made("made_up_tasks", f"{model}-{seed}", config, tables)


@pytest.fixture
def stored(monkeypatch):
    monkeypatch.setattr(tasks, "learned", lambda name: [
        run("softmax", 0, [1.0, 1.0, 0.98]), run("softmax", 1, [0.98, 1.0, 0.95]),
        run("softmax", 0, [1.0, 0.9, 0.8], rate=1e-2),
        run("s6", 0, [1.0, 0.8, 0.4]), run("s6", 1, [0.97, 0.45]),
        run("none", 0, [0.1, 0.1]), run("none", 1, [0.2, 0.1]),
    ])  # fmt: skip


def test_a_test_that_ended_before_counts_as_wrong_and_a_line_ends_with_its_first_run(stored):
    runs = induction.by_layer()
    assert [induction.right(one) for one in runs["s6"]] == [0.4, 0.0]
    figure = induction.figure()
    lengths = {one.keys["layer"]: one.columns["length"] for one in figure.curves}
    assert lengths == {"softmax": [256, 1024, 4096], "s6": [256, 1024], "none": [256, 1024]}
    assert "At 4,096 tokens one of two layers answer" in figure.caption
    assert "every seed: Softmax attention." in figure.caption


def test_the_control_is_no_layer_and_every_rate_is_asked(stored):
    found = induction.numbers()
    assert found["induction_least"] == "97.0%" and found["induction_softmax"] == "80%"
    assert found["induction_updates"] == "40"
    assert found["induction_delta_low"] == "not measured yet"
