"""Runs of the made-up tasks: which rate is taken, and what a caption says of the rates."""

import pytest

from book.figures.lib import tasks
from book.figures.relatives import family, overwriting, recall
from experiments import made_up_tasks
from tests.book.figures.made_up import made


def run(model, rate=3e-3, seed=0, last=0.5, *, task="overwriting", ending="stopped", answered=None):
    """A run as `made_up_tasks` stores it: its last validation, and a test of each case."""
    config = made_up_tasks._run(task, model, rate, seed).config
    cases = config["cases"]
    answered = last if answered is None else answered
    test = {
        "length": [case["length"] for case in cases],
        "pairs": [case["pairs"] for case in cases],
        "writes": [case.get("writes", 1) for case in cases],
        "questions": [8] * len(cases),
        "accuracy": [answered / (i + 1) for i in range(len(cases))],
        "loss": [1.0] * len(cases),
        "state": [4096] * len(cases),
    }
    tables = {
        "curve": {"update": [40, 80], "loss": [2.0, 1 - last], "accuracy": [0.9, last]},
        "end": {"updates": [80], "ending": [ending]},
        "test": {} if ending == "not finite" else test,
    }
    return made("made_up_tasks", f"{model}-{rate:g}-{seed}", config, tables)


def test_validation_chooses_the_rate_and_the_test_does_not():
    runs = [
        run("delta", rate, seed, last, answered=answered)
        for rate, last, answered in ((1e-3, 0.5, 0.9), (3e-3, 0.8, 0.1), (1e-2, 0.7, 0.9))
        for seed in (2, 0, 1)
    ]
    best = tasks.best_rate(runs)
    assert [(one["config"]["learning_rate"], one["config"]["seed"]) for one in best] == [
        (3e-3, 0), (3e-3, 1), (3e-3, 2),
    ]  # fmt: skip


def test_rates_are_compared_over_the_seeds_that_all_of_them_have():
    """A plan that goes on has more seeds of one rate: a lucky one among them decides nothing."""
    runs = [run("delta", 3e-3, 0, 0.5), run("delta", 3e-3, 1, 1.0), run("delta", 1e-3, 0, 0.6)]
    assert [one["config"]["learning_rate"] for one in tasks.best_rate(runs)] == [1e-3]
    apart = [run("delta", 3e-3, 0, 0.5), run("delta", 1e-3, 1, 0.6)]
    assert tasks.best_rate(apart) == apart[1:]


def test_a_rate_at_which_a_loss_was_no_number_is_the_last_choice():
    runs = [run("s6", 1e-2, 0, 0.9, ending="not finite"), run("s6", 1e-3, 0, 0.01)]
    assert tasks.best_rate(runs) == runs[1:]


def test_a_caption_says_so_where_one_rate_is_stored(put_tasks):
    put_tasks([run("delta", 3e-3, seed) for seed in (0, 1)])
    assert "So far one learning rate is stored." in overwriting.figure().caption
    put_tasks([run("delta", 3e-3, 0)])
    assert "So far one learning rate and one seed are stored." in overwriting.figure().caption


def test_a_caption_counts_the_rates_of_each_model_while_a_plan_goes_on(put_tasks):
    put_tasks([run("delta", rate) for rate in (1e-3, 3e-3, 1e-2)])
    assert "one of three learning rates for each model" in overwriting.figure().caption
    put_tasks([run("delta", 3e-3), run("delta", 1e-3), run("linear", 3e-3)])
    assert "one of one to two learning rates for each model" in overwriting.figure().caption


def test_sizes_of_a_model_are_kept_apart(put_tasks):
    small = run("linear", task="recall")
    small["config"]["n_head"] = 4
    put_tasks([small, run("linear", task="recall", last=0.9), run("rwkv", task="recall")])
    assert [*recall.by_layer()] == ["linear", "rwkv"]
    (usual,) = recall.by_layer()["linear"]
    assert usual["config"]["n_head"] == 1 and len(tasks.at_best_rates("recall")) == 3
    shares = family.shares()
    assert shares["linear"] == ["–", "–", "22%"] and {*shares["delta"]} == {"–"}


def test_what_erasing_is_worth_is_told_by_pairs_of_seeds(put_tasks):
    new = [
        run(model, 3e-3, seed, last + seed / 100)
        for model, last in (("delta", 0.8), ("delta-adds", 0.4))
        for seed in (0, 1, 2)
    ]
    put_tasks(new)
    figure = overwriting.figure()
    assert list(figure.labels["layer"].values()) == ["DeltaNet", "DeltaNet without erasing"]
    found = overwriting.numbers()
    assert found["overwritten_delta"] == "20.2% ± 0.3"
    assert found["overwriting_erasing"] == "10 ± 0"
    assert found["overwriting_erasing_once"] == "40 ± 0"
    assert found["selective_adds"] == "not measured yet"
    erasing = overwriting.erasing("overwriting")
    assert erasing.count == 3 and erasing.mean == pytest.approx(10)
    put_tasks([])
    assert "Not measured" in str(overwriting.figure())
