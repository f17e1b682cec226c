"""The draft's program beside two modes: where it would overtake attention mode."""

import pytest

from book.figures.three_modes import draft_program
from experiments.harness.core import record

(OLD,) = record.load("mode_speed")


@pytest.fixture
def measured(monkeypatch):
    """The stored record with made-up times of the draft's program."""
    seconds = {"cumsum": [0.5, 2.0], "attention": [0.0125, 0.2], "recurrent": [0.005, 0.02]}
    points = [
        {
            "mode": mode, "pass": "forward", "length": length,
            "seconds": s, "low": 0.9 * s, "high": 1.1 * s, "repeats": 5, "peak": 2**20,
        }
        for mode, each in seconds.items()
        for length, s in zip((1024, 4096), each, strict=True)
    ]  # fmt: skip
    draft = {name: [point[name] for point in points] for name in points[0]}
    run = {
        **OLD,
        "tables": {
            **OLD["tables"],
            "draft": draft,
            "limits": {**OLD["tables"]["limits"], "copy": [20e9]},
        },
    }
    monkeypatch.setattr(record, "load", lambda experiment=None: [run])


def test_one_grows_with_the_length_and_one_with_its_square(measured):
    cumsum, attention = (draft_program.growth(mode) for mode in ("cumsum", "attention"))
    assert (cumsum, attention) == pytest.approx((4, 16))
    at = draft_program.crossing() / draft_program.LENGTH
    longer = {"cumsum": 2.0 * at, "attention": 0.2 * at**2}
    assert longer["cumsum"] == pytest.approx(longer["attention"])
    assert draft_program.numbers()["draft_meets"] == "41,000"


def test_a_state_is_written_and_read_for_every_token(measured):
    states = 4096 * 64 * 64 * 4
    assert draft_program.traffic() == pytest.approx(2 * states / 20e9 / 2.0, rel=0.05)
