"""The two orders of a deep RNN: ratios, and a reader's own measurement among them."""

import pytest
import torch

from book.figures import rnn_orders
from book.figures.results import rows, stored
from experiments import rnn_orders as experiment
from experiments.catalogue import EXPERIMENTS
from experiments.harness import runner


def test_rnn_orders_draws_ratios_and_takes_a_machine(store):
    (run,) = experiment.runs("cpu", True)
    runner.perform(EXPERIMENTS[run.experiment], run, torch.device("cpu"), store, "x")
    figure = rnn_orders.figure()
    assert {curve.keys["order"] for curve in figure.curves} == set(rnn_orders.ORDERS)
    for curve in figure.curves:
        if curve.keys["order"] == "layer-major":
            assert curve.columns["ratio"] == [1.0] * len(curve.columns["layers"])
    (run_again,) = stored("rnn_orders")
    whole, cache, together = rnn_orders.ratios(rows(run_again), layers=2, width=8, length=4)
    assert whole == pytest.approx(cache * together)
    here = {"layers": 2, "width": 8, "length": 4, "seconds": 1e-3, "layer_major": 5e-4}
    figure.add_machine(rnn_orders.here([{**here, "weights": 2**20}]))
    assert figure.curves[-1].columns["ratio"] == [2.0]
    assert figure.curves[-1].columns["box"] == [125]
