"""The two orders of a deep RNN: ratios, and a reader's own measurement among them."""

import pytest
import torch

from book.figures.lib.records import rows, stored
from book.figures.sequence_transformations import rnn_orders
from experiments import rnn_orders as experiment
from experiments.catalogue import EXPERIMENTS
from experiments.harness.core import runner


def test_rnn_orders_draws_ratios_and_takes_a_computer(store):
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
    figure.add_computer(rnn_orders.here(experiment.measure_here((1, 2), width=8, length=4)))
    added = figure.curves[-1].columns
    assert added["layers"] == [1, 2]
    for layers, ms, box in zip(added["layers"], added["ms"], added["box"], strict=True):
        assert box == pytest.approx(1e3 * ms / layers / 4, rel=0.01)
