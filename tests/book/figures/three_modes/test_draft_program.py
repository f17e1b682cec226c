"""The draft's program: the bytes of its states against its time."""

import pytest

from book.figures.three_modes import draft_program


def test_a_state_is_written_and_read_for_every_token(monkeypatch):
    states = 4096 * 64 * 64 * 4
    table = {"program": ["cumsum"], "pass": ["forward"], "length": [4096], "seconds": [2.0]}
    run = {"config": {"width": 64}, "tables": {"rows": table, "limits": {"copy": [20e9]}}}
    monkeypatch.setattr(draft_program, "have", lambda experiment: [run])
    assert draft_program.traffic() == pytest.approx(2.0 / (4 * states / 20e9))
