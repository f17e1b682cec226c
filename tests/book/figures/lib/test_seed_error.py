"""Means over seeds that were asked the same questions: which part of an error more seeds lessen."""

import math

import pytest

from book.figures.lib import records
from book.figures.lib.seed_error import with_seeds
from book.figures.long_context import long_context


def test_more_seeds_do_not_make_the_questions_more():
    """Seeds that agree leave the error of the questions; seeds that differ add to it."""
    assert with_seeds([0.4], [0.1], 40) == (0.4, pytest.approx(2.023 * 0.1, rel=1e-3))
    assert with_seeds([0.4] * 3, [0.1] * 3, 3) == pytest.approx((0.4, 4.303 * 0.1))
    mean, half = with_seeds([0.3, 0.4, 0.5], [0.1, 0.1, 0.1], 40)
    error = math.sqrt(0.1**2 + 0.1**2 / 3)
    # (4/3)² / (1/39 + (1/3)² / 2): 21.9 degrees of freedom, taken as 21
    assert (mean, half) == pytest.approx((0.4, 2.080 * error), rel=1e-3)


def test_the_t_is_that_of_the_part_that_makes_the_error():
    """Of 40 questions asked almost without error, or of two seeds that agree."""
    assert with_seeds([0.3, 0.5], [1e-6, 1e-6], 40)[1] == pytest.approx(12.71 * 0.1)
    assert with_seeds([0.4, 0.4 + 1e-9], [0.1, 0.1], 40)[1] == pytest.approx(0.2023, rel=1e-3)
    assert with_seeds([0.4, 0.4], [0.0, 0.0], 40) == (0.4, 0.0)


def test_a_gain_is_the_mean_of_the_seeds_at_the_same_distance(monkeypatch):
    def run(seed, gains):
        again = {"distance": [64, 256], "gain": gains, "error": [0.01, 0.02], "loss": [1.0, 2.0]}
        config = {"attention": "linear", "context": 4096, "seed": seed, "places": 40}
        return {"config": config, "tables": {"again": again}}

    stored = [run(0, [0.1, 0.2]), run(1, [0.3, 0.2])]
    monkeypatch.setattr(records, "learned", lambda experiment: stored)
    found = long_context.gain_at("linear", 4096, "again", 64)
    assert found["gain"] == pytest.approx(0.2)
    # two seeds that differ by 0.2: one degree of freedom
    assert found["half"] == pytest.approx(12.71 * math.sqrt(0.01**2 + 0.02 / 2))
    alike = long_context.gain_at("linear", 4096, "again", 256)
    assert alike["half"] == pytest.approx(2.023 * 0.02, rel=1e-3)
