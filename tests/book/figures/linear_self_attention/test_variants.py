"""The figure of maps and normaliser: what broke, and how far apart two seeds are."""

import pytest

from book.figures.linear_self_attention import variants
from experiments import variants as experiment
from tests.book.figures.made_up import made, store_run

PLANNED = {run.name: run for run in experiment.runs("cpu", smoke=False)}


def trained(folder, name, losses, finished=True):
    """Stores a training that never was."""
    updates = list(range(1, 11))
    tables = {
        "train": {"update": updates, "seconds": [0.1] * 10, "loss": [3.0] * 10},
        "validation": {"update": [0, 10][: len(losses)], "loss": list(losses)},
        "end": {"ending": ["finished" if finished else "not finite"], "updates": [10]},
    }
    config = {**PLANNED[name].config, "updates": 10}
    store_run(folder, made("variants", name, config, tables))


def test_variants_tells_what_broke(store):
    trained(store, "softmax-seed0", (5.5, 2.0))
    trained(store, "elu-plus-one-normalised-seed0", (5.5, 2.15))
    trained(store, "elu-plus-one-normalised-seed1", (5.5, 2.17))
    trained(store, "relu-sum-seed0", (5.5,), finished=False)
    trained(store, "exp-normalised-seed0", (5.5,), finished=False)
    figure = variants.figure()
    # Softmax beside both, elu + 1 where it was run; nowhere what broke before its validation.
    found = sorted((curve.keys["map"], curve.keys["normaliser"]) for curve in figure.curves)
    assert found == [
        ("linear", "with"),
        *(("softmax", one) for one in ("outputs", "with", "without")),
    ]
    table = repr(variants.table()).replace("\N{NO-BREAK SPACE}", " ")
    assert "| relu |  | not finite after 10 |" in table
    assert "| softmax | 2.000 |  |  |" in table
    assert variants.seed_gap() == pytest.approx(0.02)
    for seed, loss in ((0, 2.25), (1, 2.31)):
        trained(store, f"elu-plus-one-output-norm-seed{seed}", (5.5, loss))
    cost = variants.outputs_cost()
    assert (cost.mean, cost.of()) == (pytest.approx(0.12), "2 of 2")
