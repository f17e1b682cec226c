"""The experiments of the first part: what they store, against what can be known beforehand."""

import math

import pytest
import torch

from experiments import rnn_orders, taylor_error, variants
from experiments.harness.core import record, runner
from experiments.harness.learning import training
from experiments.harness.learning.corpora import load_corpus
from lsa import DeepRNN, SoftmaxAttention, TaylorAttention
from tests.experiments.command import CPU, performed


def test_taylor_errors_are_those_of_the_layers():
    """The experiment's arithmetic on scores, against the two layers on the same weights."""
    width, degree = 8, 3
    softmax = SoftmaxAttention(width, 1).double()
    taylor = TaylorAttention(width, 1, degree=degree).double()
    for layer in (softmax, taylor):  # outputs as the heads leave them
        layer.c_proj = torch.nn.Identity()
    taylor.load_state_dict(softmax.state_dict(), strict=False)
    x = torch.randn(1, 20, width, dtype=torch.float64)
    q, k, v = (one[0].transpose(0, 1) for one in softmax.qkv(x))
    found = taylor_error.errors(q @ k.mT / width**0.5, v, degree)
    expected = (taylor(x) - softmax(x)).norm() / softmax(x).norm()
    assert found["rms"] == pytest.approx(expected.item(), rel=1e-4)


def test_taylor_error_tells_even_from_odd(tmp_path):
    (one,) = performed(tmp_path, "taylor_error")
    rows, ticks = one["tables"]["rows"], one["tables"]["ticks"]
    sizes = dict(zip(rows["degree"], rows["state"], strict=True))
    for degree, negative, balance in zip(
        rows["degree"], rows["negative"], rows["balance"], strict=True
    ):
        assert degree % 2 or (negative == 0 and balance == 1)
        assert sizes[degree] == math.comb(4 + degree, degree) * 5
    assert max(rows["negative"]) > 0
    # The numbers counted in real tensors are those of the formula.
    assert ticks["state"] == [sizes[degree] for degree in ticks["degree"]]


def test_the_wanted_scale_is_the_scores():
    run, *_ = taylor_error.runs("cpu", True)
    for scale in run.config["scales"]:
        scores, _ = taylor_error.scores_and_values(run.config, scale)
        assert scores.std().item() == pytest.approx(scale)


def test_rnn_orders_agree_and_are_all_timed(tmp_path):
    (one,) = performed(tmp_path, "rnn_orders")
    rows = one["tables"]["rows"]
    assert sorted(set(rows["order"])) == sorted(rnn_orders.orders(DeepRNN(2, 1)))
    assert max(rows["difference"]) < rnn_orders.TOLERANCE
    # Tick by tick, the two orders perform the same operations: not a bit may differ.
    of = {
        order: [d for o, d in zip(rows["order"], rows["difference"], strict=True) if o == order]
        for order in rows["order"]
    }
    assert of["time-major"] == of["layer-major, tick by tick"]
    assert rows["weights"][0] == rows["layers"][0] * 2 * rows["width"][0] ** 2 * 4


def test_rnn_orders_refuse_a_different_function(monkeypatch):
    right = rnn_orders.orders

    def wrong(deep):
        return {**right(deep), "time-major": lambda x: deep(x) + 1}

    monkeypatch.setattr(rnn_orders, "orders", wrong)
    (run,) = rnn_orders.runs("cpu", True)
    with pytest.raises(ArithmeticError, match="time-major: not the same function"):
        rnn_orders.measure_shape(2, 8, 4, run.config, CPU)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_ends_a_run_as_a_finding(tmp_path, made_corpus, monkeypatch, bad):
    """The third update breaks: two are kept, the record is sound and says what happened."""
    right = training.next_token_loss
    calls = iter(range(100))

    def breaking(logits, targets):
        # Two calls warm up, five validate, one is an update each.
        return right(logits, targets) * (bad if next(calls) == 2 + 5 + 2 else 1.0)

    monkeypatch.setattr(training, "next_token_loss", breaking)
    run = next(run for run in variants.runs("cpu", True) if run.name.startswith("softmax"))
    run.config["validate_every"] = 100
    out = tmp_path / "out"
    assert runner.perform(variants.EXPERIMENT, run, CPU, out, "x", corpus=load_corpus)
    (one,) = record.load("variants", tmp_path / "out")
    assert one["tables"]["end"] == {"ending": ["not finite"], "updates": [2]}
    assert len(one["tables"]["train"]["loss"]) == 2
    assert one["complete"]
