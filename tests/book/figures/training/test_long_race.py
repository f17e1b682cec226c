"""Curves of the long race, from made-up tables."""

import pytest

from book.explorable.figure import Explorable
from book.figures.training import long_race
from tests.book.figures.made_up import columns


def run(model, gain):
    config = {
        "model": model,
        "scale": "nano",
        "learning_rate": long_race.RATE,
        "validate_every": 1000,
        "updates": 1000,
        "seed": 0,
        "spans": 4,
        "context": 1024,
        "size": "2.7M",
        "places": 3,
    }
    asked, distances = (0, 1000), long_race.DISTANCES
    again = [
        (update, distance, place, gain * update / 1000 + 0.01 * place)
        for update in asked
        for distance in distances
        for place in (0, 1, 2)
    ]
    positions = [
        (update, novel, first, last, loss + novel)
        for update, first, last, loss in (
            (0, 1, 1, 6.0), (0, 2, 3, 5.0), (1000, 1, 1, 3.0), (1000, 2, 3, 1.5 - gain),
        )
        for novel in (0, 1)
    ]  # fmt: skip
    tables = {
        "again": columns("update distance place gain", again),
        "positions": columns("update novel first last loss", positions),
    }
    path = f"results/{model}.json"
    return {"complete": True, "name": model, "path": path, "config": config, "tables": tables}


def test_a_position_weighs_as_many_tokens_as_it_has():
    assert long_race.losses(run("linear", 0.0)) == {0: pytest.approx(35 / 6), 1000: 2.5}


def test_what_the_far_head_saves_is_paired_by_novel(monkeypatch):
    stored = {"linear": run("linear", 0.3), "linear, near only": run("linear, near only", 0.0)}
    monkeypatch.setattr(long_race, "of", lambda model, seed=0, *, whole=False: stored[model])
    [saved] = long_race.far_saves()
    assert saved == (pytest.approx(0.2), pytest.approx(0, abs=1e-9), 2, 2)


def test_a_gain_is_the_mean_over_places_with_its_interval():
    mean, half = long_race.gains(run("linear", 0.5), 256)[1000]
    assert mean == pytest.approx(0.51)
    assert half == pytest.approx(4.303 * 0.01 / 3**0.5, rel=1e-3)  # Student's t, two degrees


def test_one_line_for_each_model_that_was_trained(monkeypatch):
    stored = [run("linear", 0.1), run("softmax", 0.2)]
    monkeypatch.setattr(long_race, "learned", lambda _: stored)
    monkeypatch.setattr(long_race, "provenance", lambda _: [])
    figure = long_race.figure()
    assert isinstance(figure, Explorable)
    assert [curve.keys["model"] for curve in figure.curves] == ["softmax", "linear"]
    assert long_race.megabytes(stored[0], 1000) == pytest.approx(4.096)
