"""Recall of the first page: every stored run of a layer, at its best rate."""

import pytest

from book.figures.index import price
from book.figures.lib.records import NotMeasuredError
from tests.book.figures.made_up import asked


def run(model, seed, right, task="recall", **config):
    test = {"pairs": [8, 64], "accuracy": [1.0, right]}
    return asked(task, model, right, seed, test, d_model=4, **config)


@pytest.fixture
def recalls(put_tasks):
    put_tasks([
        run("linear", 0, 0.25), run("linear", 1, 0.17), run("linear", 2, 0.37),
        run("linear", 0, 0.9, n_head=2), {**run("linear", 3, 0.9), "complete": False},
        run("linear", 4, 0.9, task="copying"), run("softmax", 1, 0.99),
    ])  # fmt: skip


def test_a_span_names_its_ends_over_the_seeds_of_whole_runs_of_the_usual_size(recalls):
    assert sorted(price.recalled("linear")) == [0.17, 0.25, 0.37]
    numbers = price.numbers()
    assert numbers["recall_linear"] == "17–37%"
    assert numbers["recall_softmax"] == "99%"
    assert numbers["recall_runs"] == "three"
    assert numbers["recall_state"] == "20"


def test_a_layer_that_was_never_asked_is_not_measured(recalls):
    with pytest.raises(NotMeasuredError, match="no recall by delta"):
        price.recalled("delta")
