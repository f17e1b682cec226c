"""Means over seeds that were asked the same questions: which part of an error more seeds lessen."""

import math

import pytest

from book.figures.lib import records
from book.figures.lib.seed_error import with_seeds
from book.figures.long_context import long_context


def test_more_seeds_do_not_make_the_questions_more():
    """Seeds that agree leave the error of the questions; seeds that differ add to it."""
    assert with_seeds([0.4], [0.1]) == (0.4, pytest.approx(0.1))
    assert with_seeds([0.4, 0.4, 0.4], [0.1, 0.1, 0.1]) == pytest.approx((0.4, 0.1))
    mean, error = with_seeds([0.3, 0.4, 0.5], [0.1, 0.1, 0.1])
    assert (mean, error) == pytest.approx((0.4, math.sqrt(0.1**2 + 0.1**2 / 3)))


def test_a_gain_is_the_mean_of_the_seeds_at_the_same_distance(monkeypatch):
    def run(seed, gains):
        again = {"distance": [64, 256], "gain": gains, "error": [0.01, 0.02], "loss": [1.0, 2.0]}
        config = {"attention": "linear", "context": 4096, "seed": seed}
        return {"config": config, "tables": {"again": again}}

    stored = [run(0, [0.1, 0.2]), run(1, [0.3, 0.2])]
    monkeypatch.setattr(records, "learned", lambda experiment: stored)
    found = long_context.gain_at("linear", 4096, "again", 64)
    assert found["gain"] == pytest.approx(0.2)
    assert found["error"] == pytest.approx(math.sqrt(0.01**2 + 0.02 / 2))
    assert long_context.gain_at("linear", 4096, "again", 256)["error"] == pytest.approx(0.02)
