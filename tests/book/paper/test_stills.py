"""Still pictures of the stages, as they are stored."""

from book.paper.stills import STILLS


def test_no_picture_was_drawn_while_its_stage_loaded():
    waiting = [
        still.name
        for still in STILLS.glob("*.svg")
        if "loading" in still.read_text(encoding="utf-8").lower()
    ]
    assert not waiting
