"""Runs of the two plans of training are never averaged, nor compared in one column."""

import pytest

from book.figures.lib import tasks
from book.figures.state_spaces import copying_tasks


def run(model, right, seed=0, **config):
    shared = {
        "task": "selective copying", "attention": model, "attention_options": {}, "n_head": 1,
        "seed": seed, "solved": 0.995, **config,
    }  # fmt: skip
    tables = {
        "curve": {"update": [40], "loss": [1 - right], "accuracy": [right]},
        "end": {"updates": [40], "ending": ["stopped"]},
        "test": {"length": [64], "accuracy": [right], "state": [8]},
    }
    return {"complete": True, "config": shared, "tables": tables}


@pytest.fixture
def stored(monkeypatch):
    def put(older, newer):
        found = {"synthetic_tasks": older, "made_up_tasks": newer}
        for module in (tasks, copying_tasks):
            monkeypatch.setattr(module, "learned", lambda name: found[name])

    return put


def test_each_plan_has_a_column(stored):
    older = [run("s6", x, i, updates=800) for i, x in enumerate((0.6, 0.8))]
    older += [run("s4", 0.2, updates=800), run("rwkv", 0.9, updates=800)]
    newer = [run("s6", 1.0, learning_rate=3e-3, updates=2400)]
    stored(older, newer)
    table = copying_tasks.scores()
    assert table.titles == [
        "layer", "selective copying, older plan", "selective copying, newer plan"
    ]  # fmt: skip
    # S4 stands beside what the newer plan trains; other layers of the older one do not.
    assert sorted(line[1:] for line in table.cells) == [
        ["20%", "–"], ["70% ± 10", "100%"], ["–", "–"],
    ]  # fmt: skip
    found = copying_tasks.numbers()
    assert found["older_selective_s6"] == "70% ± 10" and found["older_selective_s4"] == "20%"
    assert found["task_updates"] == "2,400" and found["older_seeds"] == "one seed"
    assert found["older_updates"] == "not measured yet"  # of copying, of which nothing is stored


def test_two_layers_are_compared_seed_by_seed(stored):
    newer = [
        run(model, right, seed, learning_rate=3e-3, updates=2400)
        for model, less in (("s6", 0.0), ("linear", 0.1))
        for seed, right in enumerate((0.9 - less, 0.5 - less, 0.7 - less))
    ]
    stored([], newer)
    found = copying_tasks.numbers()
    assert found["selective_s6_linear"] == "+10 ± 0"
    assert found["selective_s6_softmax"] == "not measured yet"


def test_the_least_share_is_that_of_a_layer_and_not_of_the_control(stored):
    stored([], [
        run(model, right, seed, task="copying", learning_rate=3e-3, updates=2400)
        for model, shares in (("s6", (1.0, 0.9)), ("s4", (0.97, 0.99)), ("none", (0.1, 0.1)))
        for seed, right in enumerate(shares)
    ])  # fmt: skip
    found = copying_tasks.numbers()
    assert (found["copying_least"], found["copying_s4"]) == ("90%", "98% ± 1")


def test_without_results_the_page_says_what_to_run(stored):
    stored([], [])
    assert "experiments run made_up_tasks" in repr(copying_tasks.scores())
