"""Taylor's figure and table, and the states that the prose names."""

import pytest
import torch

from book.figures.lib.records import rows, stored
from book.figures.linear_self_attention import taylor_error
from experiments import taylor_error as experiment
from experiments.catalogue import EXPERIMENTS
from experiments.harness.core import runner


def test_taylor_draws_even_and_odd_apart(store):
    (run,) = experiment.runs("cpu", True)
    runner.perform(EXPERIMENTS[run.experiment], run, torch.device("cpu"), store, "x")
    figure = taylor_error.figure()
    (stored_run,) = stored("taylor_error")
    for curve in figure.curves:
        parity = ("even", "odd").index(curve.keys["terms"])
        assert all(n % 2 == parity for n in curve.columns["degree"])
        scale = float(curve.keys["scores"].removeprefix("deviation "))
        for n, error in zip(curve.columns["degree"], curve.columns["rms"], strict=True):
            (row,) = rows(stored_run, scale=scale, degree=n)
            assert error == pytest.approx(100 * row["rms"], rel=1e-2)
    lines = repr(taylor_error.table(4)).splitlines()
    assert len(lines) == 2 + len(run.config["degrees"])
    assert figure.provenance


def test_the_prose_and_the_table_name_the_same_states():
    numbers, table = taylor_error.numbers(64), taylor_error.table(64)
    for n in (2, 4):
        (line,) = (line for line in table.cells if line[0] == str(n))
        assert line[1:3] == [numbers[f"taylor_{n}_numbers"], numbers[f"taylor_{n}_tokens"]]
    # "Many texts in use are longer" than the first, and few than the second.
    assert (numbers["taylor_2_tokens"], numbers["taylor_4_tokens"]) == ("1,089", "413,554")


@pytest.mark.parametrize("n", [0, 1, 2, 4, 7])
def test_a_cache_is_larger_than_a_state_from_the_next_token_on(n):
    state = taylor_error.state_numbers(64, n)
    tokens = taylor_error.cached_tokens(state, 64)
    assert 2 * 64 * tokens <= state < 2 * 64 * (tokens + 1)
