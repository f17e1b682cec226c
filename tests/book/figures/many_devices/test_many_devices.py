"""The figures on many devices: what they draw is the cost model's, and what is missing is said."""

import pytest

from book.figures.many_devices import exchanges, headline_costs, scaling
from lsa.cost import update_flops


def test_states_and_keys_are_equal_at_a_token_more_than_the_width():
    for scale in ("124M", "1.5B"):
        width = exchanges.heads(scale)["K"]
        for ranks in exchanges.RANKS:
            length = ranks * (width + 1)
            keys, states = (
                exchanges.received(way, ranks, length, scale) for way in ("ring", "gather")
            )
            assert keys == states


def test_lines_of_states_are_level_and_those_of_keys_are_not():
    for curve in exchanges.figure().curves:
        level = len({*curve.columns["MiB"]}) == 1
        assert level == (curve.keys["attention"] == "linear")


def test_hours_are_operations_over_the_data_sheet():
    flops = update_flops(headline_costs.shape("124M", 1024, "softmax"), 1024)
    tokens = 20 * 12 * 12 * 768**2
    found = headline_costs.least_hours("124M", 1024, "softmax")
    assert found == pytest.approx(flops * tokens / 989.5e12 / 3600)
    assert min(headline_costs.shares()) > 1  # none is faster than its bound


@pytest.fixture
def measured(monkeypatch):
    kinds = {"linear": (64, 128, 256), "softmax": (8, 16, 32)}
    cells = [
        (ranks, attention, length, length / ranks / 1e3, 7 * ranks)
        for ranks in (1, 2)
        for attention, lengths in kinds.items()
        for length in lengths
    ]
    names = "ranks", "attention", "length", "seconds", "received"
    table = dict(zip(names, map(list, zip(*cells, strict=True)), strict=True))
    device = {"kind": "cpu", "name": "Imagined", "count": 2, "memory_bytes": 1}
    origin = {
        "commit": "0" * 40, "dirty": False, "started": "2026-01-01T00:00:00+00:00",
        "device": device, "command": "x", "versions": {},
    }  # fmt: skip
    run = {
        "experiment": "rank_speed", "path": "results/x.json", "config": {}, "name": "heads",
        "complete": True, "provenance": origin, "tables": {"rows": table}, "units": {},
    }  # fmt: skip
    monkeypatch.setattr(scaling, "have", lambda experiment: [run])


def test_what_was_measured_is_drawn_over_one_process(measured):
    assert scaling.numbers() == {"linear_on_two": "2.0×", "softmax_on_two": "2.0×"}
    drawn = [one for one in scaling.figure().curves if one.role == "series"]
    assert len(drawn) == 6
    assert all(list(one.columns["faster"]) == [1, 2] for one in drawn)
    assert "256" in scaling.table()._repr_markdown_()


def test_what_is_not_measured_is_said(monkeypatch):
    monkeypatch.setattr(scaling, "have", lambda experiment: [])
    assert not scaling.figure() and not scaling.table()
    assert scaling.numbers()["linear_on_two"] == "not measured yet"
