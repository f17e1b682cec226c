"""Induction heads: what counts as right beyond the trained length, and where a line ends."""

import pytest

from book.figures.state_spaces import induction
from tests.book.figures.made_up import asked


def run(model, seed, shares, rate=3e-3):
    """A run with a share of right answers at 256, 1,024, … tokens, as far as its test went."""
    count = len(shares)
    test = {
        "length": [256 * 4**i for i in range(count)], "accuracy": shares, "state": [8] * count,
        "questions": [128, 128, 64, 16][:count],
    }  # fmt: skip
    one = asked(
        "induction", model, 1.0, seed, test, "solved", learning_rate=rate, join=[0, 160, 240]
    )
    one["tables"]["curve"]["loss"] = [rate]
    return one


@pytest.fixture
def stored(put_tasks):
    put_tasks([
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
