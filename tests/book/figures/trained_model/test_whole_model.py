"""Two students of a trained model as their figure reads them: differences text by text."""

import pytest

from book.figures.lib.records import NotMeasuredError
from book.figures.trained_model import measured, whole_model
from tests.book.figures.made_up import columns


@pytest.fixture
def stored(monkeypatch):
    rows = [
        ("state", 0, "passages", 256, 0, -0.3, 3.5),
        ("state", 0, "passages", 256, 1, -0.1, 2.5),
        ("window", 0, "passages", 256, 0, -0.5, 3.6),
        ("window", 0, "passages", 256, 1, -0.5, 2.7),
        ("state", 9, "passages", 256, 0, 0.0, 3.1),
        ("state", 9, "passages", 256, 1, 0.2, 2.1),
        ("window", 9, "passages", 256, 0, -0.4, 3.2),
        ("window", 9, "passages", 256, 1, -0.4, 2.2),
        ("state", 9, "lists", 256, 0, 0.5, 9.0),
        ("state", 9, "passages", 1024, 0, 0.5, 9.0),
    ]
    table = columns("arm tokens kind distance text gain loss", rows)
    run = {"name": "softmax-0", "path": "here", "tables": {"measured": table}}
    texts = {"text": [0, 1], "gain": [3.0, 2.0], "loss": [3.0, 2.0]}
    config = {"text": "passages", "distance": 256, "where": "none"}
    teacher = {"name": "passages-256-none", "path": "there", "config": config,
               "tables": {"texts": texts}}  # fmt: skip
    monkeypatch.setattr(whole_model, "learned", lambda experiment: [run])
    monkeypatch.setattr(measured, "learned", lambda experiment: [teacher])


def test_students_are_compared_text_by_text(stored):
    assert whole_model.marks() == [0, 9]  # what was asked at the end alone is no mark
    added = whole_model.brings(0, "gain")
    assert (added.mean, added.texts) == (pytest.approx(0.3), 2)
    assert added.error == pytest.approx(0.1)
    assert whole_model.rise("state", 9).mean == pytest.approx(0.1)
    assert whole_model.rise("state", 9).error == pytest.approx(0)  # texts differ by one nat
    assert whole_model.way(0) == pytest.approx(0.3 / (2.5 + 0.5))
    assert whole_model.after("state", 9, "gain", "lists").mean == 0.5
    with pytest.raises(NotMeasuredError):
        whole_model.brings(9, "gain", "lists")


def test_the_table_leaves_out_what_one_student_was_not_asked(stored):
    assert [row[0] for row in whole_model.table().cells] == ["passage, 256"]
