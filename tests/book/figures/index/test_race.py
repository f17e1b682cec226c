"""Runs of the race are compared in pairs: the same seeds of both models."""

import pytest

from book.figures.index import race, race_numbers
from book.figures.lib.records import NotMeasuredError
from book.figures.training import race_tables


@pytest.fixture
def raced(monkeypatch):
    """Have these last losses stored: {model: {seed: loss}}, at one context after the other."""
    stored = {}

    def store(ends, at=race.MAIN):
        stored[at] = [
            {
                "config": {"model": model, "seed": seed, "context": at},
                "tables": {"validation": {"update": [0, 1], "loss": [5.0, loss]}},
            }
            for model, seeds in ends.items()
            for seed, loss in seeds.items()
        ]
        monkeypatch.setattr(race, "curves", lambda context: stored.get(context, []))

    return store


def test_attentions_are_compared_on_the_seeds_that_both_have(raced):
    raced({"softmax": {0: 1.6, 1: 1.7}, "linear": {1: 1.75, 0: 1.62, 2: 9.0}})
    assert race.ends("linear", race.MAIN) == [1.62, 1.75]
    found = race_numbers.linear_behind(race.MAIN)
    assert found.mean == pytest.approx((0.02 + 0.05) / 2)
    assert found.error == pytest.approx(0.015)
    assert found.of() == "2 of 2"


def test_a_control_with_fewer_seeds_is_compared_on_those(raced):
    raced({
        "softmax": {0: 1.5, 1: 1.9}, "linear": {0: 1.5, 1: 1.9}, "softmax, near only": {1: 2.0},
        "linear, near only": {7: 2.0},
    })  # fmt: skip
    assert race_numbers.far_costs()[:4] == (pytest.approx(-0.1), None, 1, 1)


def near(of, by):
    """Pairs of runs: those of `of`, and by how many nats more their partners end, by seed."""
    ends = {name: dict.fromkeys(seeds, 1.6) for name, seeds in of.items()}
    return ends | {
        f"{name}, near only": {seed: 1.6 + gap for seed, gap in zip(seeds, by, strict=True)}
        for name, seeds in of.items()
    }


def test_the_table_of_the_far_head_has_a_row_for_each_context(raced):
    raced({"softmax": {0: 1.6}, "linear": {0: 1.6}})
    with pytest.raises(NotMeasuredError, match="no pairs"):
        race_numbers.far_costs()
    raced(near({"softmax": (0, 1), "linear": (0, 1)}, by=(-0.01, -0.02)))
    raced(near({"linear": (0,)}, by=(0.03,)), at=16384)
    told = "+0.015 ± 0.064 (2 of 2)".replace(" ±", "\N{NO-BREAK SPACE}±").replace(
        "± ", "±\N{NO-BREAK SPACE}"
    )
    assert repr(race_tables.far_head_table()).splitlines()[2:] == [
        f"| 4,096 | {told} | {told} |", "| 16,384 | – | −0.030 (1 of 1) |"
    ]  # fmt: skip


def test_pairs_of_one_seed_count_once(raced):
    raced(near({"softmax": (0, 1), "linear": (0, 1)}, by=(-0.01, -0.03)))
    raced(near({"softmax": (0, 1), "linear": (0, 1)}, by=(-0.02, 0.01)), at=16384)
    found = race_numbers.far_costs()
    assert found.mean == pytest.approx((0.015 + 0.01) / 2)
    assert found.error == pytest.approx(0.0025)
    assert found.of() == "2 of 2"


def timed(name, seconds, started, kind="cpu"):
    return {
        "config": {"model": "all", "context": race.MAIN}, "complete": True,
        "provenance": {"device": {"kind": kind, "name": name, "count": 2}, "started": started},
        "tables": {"speed": {"model": ["linear"], "seconds": [seconds]}},
    }  # fmt: skip


def test_seconds_are_of_the_processor_that_trained_else_of_the_one_timed_last(raced, monkeypatch):
    raced({"softmax": {0: 1.6}, "linear": {0: 1.6}})
    trained = {"device": {"kind": "cpu", "name": "A", "count": 1}, "started": "0"}
    runs = [{**run, "provenance": trained} for run in race.curves(race.MAIN)]
    monkeypatch.setattr(race, "curves", lambda context=None: runs)
    stored = [timed("B", 2.0, "1"), timed("C", 3.0, "2"), timed("G", 0.1, "3", kind="cuda")]
    monkeypatch.setattr(race, "load", lambda experiment: stored)
    assert race.seconds("linear", race.MAIN) == 3.0
    stored.append(timed("A", 4.0, "0"))
    assert race.seconds("linear", race.MAIN) == 4.0
