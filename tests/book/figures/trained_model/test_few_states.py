"""States in a few heads as their table reads them: a mean over seeds, then differences by text."""

import pytest

from book.figures.lib.records import NotMeasuredError
from book.figures.trained_model import few_states
from tests.book.figures.made_up import columns

NAMES = "arm tokens kind distance pairs text gain loss right"


def made(name, seed, arms, rows, heads=8):
    table = columns(NAMES, rows)
    config = {"seed": seed, "arms": arms, "heads": heads, "tokens": max(table["tokens"])}
    return {"name": name, "path": name, "config": config, "tables": {"measured": table}}


def passages(arm, *gains, tokens=9, distance=256):
    return [(arm, tokens, "passages", distance, 0, i, g, 3.0, 0.5) for i, g in enumerate(gains)]


@pytest.fixture
def runs(monkeypatch):
    arms = ["window", "hedgehog-128"]
    early = passages("window", 7.0, 7.0, tokens=0) + passages("hedgehog-128", 9.0, 9.0, tokens=0)
    first = early + passages("window", 0.0, 1.0) + passages("hedgehog-128", 1.0, 1.0)
    second = early + passages("window", 1.0, 1.0) + passages("hedgehog-128", 1.0, 2.0)
    size = passages("hedgehog-4", 9.0, 9.0)
    found = [
        made("first-8-seed1", 1, arms, second),
        made("first-8", 0, arms, first),
        made("first-8-size-4", 0, ["hedgehog-4"], size),
        made(
            "first-24",
            0,
            arms,
            passages("window", 0.0, 0.0) + passages("hedgehog-128", 5.0, 7.0),
            24,
        ),
        made("first-8-taylor", 0, ["taylor-2"], passages("taylor-2", 3.0, 1.0)),
    ]
    monkeypatch.setattr(few_states, "learned", lambda experiment: found)


def test_texts_are_compared_over_all_seeds(runs):
    assert few_states.by_text("window", "gain") == {0: 0.5, 1: 1.0}
    added = few_states.brings("gain")
    assert (added.mean, added.error, added.texts) == (0.5, 0.0, 2)


def test_more_heads_are_a_comparison_of_their_own(runs):
    assert few_states.brings("gain", heads=24).mean == 6.0


def test_a_state_of_another_kind_is_compared_with_the_control_of_its_own_seed(runs):
    assert few_states.arm_brings("taylor-2", "gain") == pytest.approx((1.5, 1.5, 2))
    assert few_states.arm_brings("hedgehog-128", "gain") == pytest.approx((0.5, 0.5, 2))
    assert [row[1] for row in few_states.state_table().cells] == ["1.02 KiB", "32.5 KiB", "545 KiB"]


def test_a_question_that_was_not_asked_is_left_out(runs):
    assert [row[0] for row in few_states.table().cells] == ["passage, 256"]
    with pytest.raises(NotMeasuredError):
        few_states.gain("window", 1024)
