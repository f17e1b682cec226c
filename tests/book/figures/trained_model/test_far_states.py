"""Fitted states as their table reads them: differences to the control, text by text."""

import pytest

from book.figures.lib.tables import Missing
from book.figures.trained_model import far_states, whole_model
from tests.book.figures.made_up import columns


def run(name, rows):
    table = columns("arm tokens kind distance text loss second", rows)
    config = {"length": 512, "tokens": 0}
    return {"name": name, "path": "here", "config": config, "tables": {"measured": table}}


def test_states_are_compared_with_the_control_of_the_first_run(monkeypatch):
    short = [
        ("window", 0, "passages", 4096, 0, 3.0, 4.0),
        ("window", 0, "unseen", 4096, 0, 3.1, 4.1),
        ("state", 0, "passages", 4096, 0, 3.3, 4.5),
        ("state", 0, "unseen", 4096, 0, 3.3, 4.8),
    ]
    long = [
        ("state", 0, "passages", 4096, 0, 2.9, 3.0),
        ("state", 0, "unseen", 4096, 0, 2.9, 3.4),
    ]
    stored = [run(far_states.SHORT, short), run(far_states.LONG, long)]
    monkeypatch.setattr(whole_model, "learned", lambda experiment: stored)
    first, second = ((run, far_states.ROTARY) for run in far_states.RUNS)
    assert far_states.adds("loss", first, 4096).mean == pytest.approx(0.3)
    assert far_states.adds("recall", first, 4096).mean == pytest.approx(0.2)
    assert far_states.adds("loss", second, 4096).mean == pytest.approx(-0.1)
    assert far_states.adds("recall", second, 4096).mean == pytest.approx(0.3)
    assert far_states.changed("loss", second, first, 4096).mean == pytest.approx(-0.4)
    assert isinstance(far_states.table(), Missing)  # without 256 tokens between the copies
