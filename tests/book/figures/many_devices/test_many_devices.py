"""The figures on many devices: what they draw is the cost model's, and what is missing is said."""

import pytest

from book.figures.many_devices import exchanges, headline_costs, scaling
from lsa.cost import update_flops
from tests.book.figures.made_up import columns, made


def test_lines_of_states_are_level_and_those_of_keys_are_not():
    for curve in exchanges.figure().curves:
        level = len({*curve.columns["MiB"]}) == 1
        assert level == (curve.keys["attention"] == "linear")


def test_hours_are_operations_over_the_data_sheet():
    flops = update_flops(headline_costs.shape("124M", 1024, "softmax"), 1024)
    tokens = 20 * 12 * 12 * 768**2
    found = headline_costs.least_hours("124M", 1024, "softmax")
    assert found == pytest.approx(flops * tokens / 989.5e12 / 3600)


def test_no_block_was_faster_than_its_bound():
    found = headline_costs.measured()
    assert {1024, 16384} <= {context for _, context in found}
    for scale, context in found:
        over = [headline_costs.over_least(scale, context, one) for one in headline_costs.MODES]
        assert min(over) > 1
        by_bound, measured = headline_costs.ratio(scale, context)
        assert measured / by_bound == pytest.approx(over[0] / over[1])


def test_a_split_by_heads_ends_where_there_are_no_more_heads():
    drawn = {
        (curve.keys["scale"], int(curve.keys["ranks"]))
        for curve in exchanges.figure().curves
        if curve.keys["way"] == "by heads"
    }
    assert ("124M", 8) in drawn and not any(ranks == 64 for _, ranks in drawn)
    assert exchanges.received("heads", 4, 4096) * 2 == exchanges.received("ring", 4, 4096)
    with pytest.raises(ValueError, match="^P: expected at most a rank for each of 12 heads"):
        exchanges.received("heads", 16, 4096)


def test_the_scan_saves_bytes_for_each_further_exchange():
    saved = exchanges.received("gather", 8, 8) - exchanges.received("scan", 8, 8)
    assert exchanges.scan_exchanges(8) == 4
    assert exchanges.saved_seconds(1.0) == pytest.approx(saved / 3)


def test_the_last_rank_of_a_ring_takes_its_share_of_the_triangle():
    blocks = [rank + 1 / 2 for rank in range(exchanges.MANY)]  # the last of a rank is masked
    even = sum(blocks) / exchanges.MANY
    expected = exchanges.arithmetic_seconds() * blocks[-1] / even
    assert exchanges.last_rank_seconds() == pytest.approx(expected)


@pytest.fixture
def measured(monkeypatch):
    kinds = {"linear": (64, 128, 256), "softmax": (8, 16, 32)}
    cells = [
        (ranks, attention, length, *(x * length / ranks / 1e3 for x in (1, 0.9, 1.2)), 7 * ranks)
        for ranks in (1, 2)
        for attention, lengths in kinds.items()
        for length in lengths
    ]
    cells += [(1, "plain", length, *[length / 2e3] * 3, 0) for length in kinds["linear"]]
    table = columns("ranks attention length seconds low high received", cells)
    run = made("rank_speed", "heads", {"heads": 2, "width": 64}, {"rows": table})
    monkeypatch.setattr(scaling, "have", lambda experiment: [run])


def test_what_was_measured_is_drawn_over_one_process(measured):
    numbers = scaling.numbers()
    assert numbers["linear_on_two"] == numbers["softmax_on_two"] == "2.0× (1.5–2.7)"
    assert numbers["linear_on_four"] == "not measured yet"
    assert numbers["plain_on_two"].startswith("1.0")
    assert numbers["ring_products"] == "62%"
    drawn = [one for one in scaling.figure().curves if one.role == "series"]
    assert len(drawn) == 6
    assert all(list(one.columns["faster"]) == [1, 2] for one in drawn)
    assert "256" in scaling.table()._repr_markdown_()
