"""Still pictures of the stages, as they are stored."""

import re

from book.paper.stills import STILLS


def test_no_picture_was_drawn_while_its_stage_loaded():
    waiting = [
        still.name
        for still in STILLS.glob("*.svg")
        if "loading" in still.read_text(encoding="utf-8").lower()
    ]
    assert not waiting


def test_weights_keep_their_shades():
    drawing = (STILLS / "film.svg").read_text(encoding="utf-8")
    assert len(set(re.findall(r'fill-opacity="([^"]+)"', drawing))) > 10
