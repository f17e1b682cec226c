"""Paired differences: mean, error and signs against slower ways to the same."""

from math import sqrt
from statistics import mean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from book.figures.lib import pairs
from book.figures.lib.records import NotMeasuredError
from book.figures.lib.seed_error import t_95

DIFFERENCES = st.lists(st.integers(-1000, 1000).map(lambda n: n / 1000), min_size=1, max_size=10)


def run(seed, loss):
    return {"config": {"seed": seed}, "tables": {"validation": {"loss": [9.0, loss]}}}


@given(DIFFERENCES)
def test_the_error_is_that_of_a_mean(differences):
    found = pairs.compare(differences)
    assert found.mean == mean(differences) and found.count == len(differences)
    if len(differences) == 1:
        assert found.error is None
    else:
        wanted = np.std(differences, ddof=1) / sqrt(len(differences))
        assert found.error == pytest.approx(wanted, abs=1e-12)
        assert found.half == pytest.approx(t_95(len(differences)) * wanted, abs=1e-12)


def test_of_more_the_t_falls_towards_the_normal_quantile():
    assert [t_95(n) for n in (11, 24, 10**6)] == pytest.approx([2.228, 2.069, 1.96], abs=0.005)


def test_the_t_of_three_seeds_is_the_closed_form():
    assert t_95(3) == pytest.approx(0.95 * sqrt(2 / (1 - 0.95**2)), abs=1e-3)


@given(DIFFERENCES)
def test_the_other_way_round_the_sign_is_the_other(differences):
    there, back = pairs.compare(differences), pairs.compare([-x for x in differences])
    assert back.mean == -there.mean
    assert there[1:] == back[1:]


def test_runs_are_paired_by_their_seeds_and_not_by_their_places():
    first, second = [run(1, 2.0), run(0, 3.0), run(7, 0.0)], [run(0, 2.5), run(1, 1.75)]
    assert pairs.differences(first, second) == [0.5, 0.25]
    with pytest.raises(NotMeasuredError, match="no seed"):
        pairs.differences(first, [run(5, 1.0)])
    with pytest.raises(NotMeasuredError, match="no pairs"):
        pairs.compare([])


@given(st.lists(DIFFERENCES, min_size=1, max_size=4))
def test_the_differences_of_a_seed_are_one(lists):
    every = [dict(enumerate(one)) for one in lists]
    seeds = range(min(map(len, lists)))
    wanted = pairs.compare([mean(one[seed] for one in every) for seed in seeds])
    assert pairs.compare_seeds(every) == wanted
    with pytest.raises(NotMeasuredError, match="no pairs"):
        pairs.compare_seeds([])


def test_it_is_told_with_its_error_and_its_signs():
    found = pairs.compare([-0.01, -0.02, -0.03, 0.004])
    assert found.spread() == "0.014 ± 0.023"  # 3.182 standard errors of 0.0073
    assert found.signed(4) == "−0.0140 ± 0.0231"
    assert found.of() == "3 of 4"
    assert pairs.compare([0.25]).signed(2) == "+0.25"
