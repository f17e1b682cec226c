"""The first part's figures: drawn from what is stored, and honest about what is not."""

import pytest
import torch

from book.figures import results as figures
from book.figures import theory
from book.figures import variants as figures_variants
from book.figures import words as figures_words
from experiments import rnn_orders, taylor_error
from experiments.catalogue import EXPERIMENTS
from experiments.harness import record, runner

CPU = torch.device("cpu")
MAKERS = [theory.taylor_error, theory.rnn_orders, figures_variants.variants]
TABLES = [theory.taylor_table, figures_variants.variants_table]


@pytest.fixture
def results(tmp_path, monkeypatch):
    """An empty store in the place of the book's."""
    load = record.load
    monkeypatch.setattr(figures.record, "load", lambda experiment=None: load(experiment, tmp_path))
    monkeypatch.setattr("experiments.harness.timing.ENOUGH_SECONDS", {"cpu": 0.02, "cuda": 0.02})
    return tmp_path


@pytest.mark.parametrize("make", [*MAKERS, *TABLES])
def test_what_is_not_stored_says_how_to_measure_it(results, make):
    assert "Not measured yet: python -m experiments run" in repr(make())
    assert make()._repr_markdown_().startswith("*Not measured yet:*")


def test_taylor_draws_even_and_odd_apart(results):
    (run,) = taylor_error.runs("cpu", True)
    runner.perform(EXPERIMENTS[run.experiment], run, CPU, results, "x")
    figure = theory.taylor_error()
    (one,) = figures.stored("taylor_error")
    for curve in figure.curves:
        parity = ("even", "odd").index(curve.keys["terms"])
        assert all(n % 2 == parity for n in curve.columns["degree"])
        scale = float(curve.keys["scores"].removeprefix("near "))
        for n, error in zip(curve.columns["degree"], curve.columns["rms"], strict=True):
            (row,) = figures.rows(one, scale=scale, degree=n)
            assert error == pytest.approx(100 * row["rms"], rel=1e-2)
    lines = repr(theory.taylor_table(4)).splitlines()
    assert len(lines) == 2 + len(run.config["degrees"])
    assert figure.provenance


def test_rnn_orders_draws_ratios_and_takes_a_machine(results):
    (run,) = rnn_orders.runs("cpu", True)
    runner.perform(EXPERIMENTS[run.experiment], run, CPU, results, "x")
    figure = theory.rnn_orders()
    assert {curve.keys["order"] for curve in figure.curves} == set(theory.ORDERS)
    for curve in figure.curves:
        if curve.keys["order"] == "layer-major":
            assert curve.columns["ratio"] == [1.0] * len(curve.columns["layers"])
    (one,) = figures.stored("rnn_orders")
    whole, cache, together = theory.rnn_ratios(figures.rows(one), layers=2, width=8, length=4)
    assert whole == pytest.approx(cache * together)
    here = {"layers": 2, "width": 8, "length": 4, "seconds": 1e-3, "layer_major": 5e-4}
    figure.add_machine(theory.rnn_here([{**here, "weights": 2**20}]))
    assert figure.curves[-1].columns["ratio"] == [2.0]
    assert figure.curves[-1].columns["box"] == [125]


def trained(results, attention="linear", losses=(5.5, 3.0), finished=True, **config):
    """A record as the runner would have written it, of a training that never was."""
    config = {"attention": attention, "seed": 0, **config}
    updates = list(range(1, 11))
    device = {"kind": "cpu", "name": "a cpu", "count": 2, "memory_bytes": 1}
    origin = dict.fromkeys(record.PROVENANCE_FIELDS, "") | {"device": device}
    name = "-".join(map(str, config.values()))
    contents = {
        "schema": record.SCHEMA,
        "experiment": "variants",
        "name": name,
        "config": config,
        "complete": True,
        "provenance": origin,
        "units": {
            "update": "updates", "seconds": "s", "loss": "nats/token",
            "ending": "name", "updates": "updates",
        },
        "tables": {
            "train": {"update": updates, "seconds": [0.1] * 10, "loss": [3.0] * 10},
            "validation": {"update": [0, 10][: len(losses)], "loss": list(losses)},
            "end": {"ending": ["finished" if finished else "not finite"], "updates": [10]},
        },
    }  # fmt: skip
    record.write(record.path_of(results, "variants", device, name), contents)


def test_variants_tells_what_broke(results):
    trained(results, "softmax", (5.5, 2.0))
    trained(results, feature_map="elu_plus_one", normalize=True, losses=(5.5, 2.15))
    trained(results, feature_map="elu_plus_one", normalize=True, losses=(5.5, 2.17), seed=1)
    trained(results, feature_map="relu", normalize=False, losses=(5.5,), finished=False)
    trained(results, feature_map="exp", normalize=True, losses=(), finished=False)
    figure = figures_variants.variants()
    # Softmax beside both, elu + 1 where it was run; nowhere what broke before its validation.
    found = sorted((curve.keys["map"], curve.keys["normaliser"]) for curve in figure.curves)
    assert found == [("linear", "with"), ("softmax", "with"), ("softmax", "without")]
    assert "softmax 2.000, elu + 1 2.150" in figure.caption
    assert "relu without the normaliser stopped being a finite number" in figure.caption
    assert "exp with the normaliser stopped being a finite number" in figure.caption
    assert "up to 0.020" in figure.caption
    table = repr(figures_variants.variants_table()).replace("\N{NO-BREAK SPACE}", " ")
    assert "| relu |  | not finite after 10 |" in table
    assert "| softmax | 2.000 |  | 100 ms |" in table


def test_shares_are_said_as_a_reader_would():
    shares = (0.00034, 0.034, 0.34, 1.0, 12.3)
    assert [figures_words.percent(share) for share in shares] == [
        "0.034%", "3.4%", "34%", "100%", "1,230%",
    ]  # fmt: skip
