"""What a reader sees whose own colours replace those of the pages."""

import math
from io import BytesIO

import matplotlib.image
import numpy as np
import pytest

BARS = {
    "opener": "opener-bar",
    "memory": "memory-bar",
    "surgery": "sampler-bar",
}
# Where they lie in a picture of the frame.
BOXES = """(bars, frame) => bars.map((bar) => {
    const inside = bar.getBoundingClientRect(), around = frame.getBoundingClientRect();
    return [inside.left - around.left, inside.top - around.top,
        inside.right - around.left, inside.bottom - around.top];
})"""
# A picture of a part of a page takes as long as the page is.
ALONE = """(frame) => {
    for (let part = frame; part !== document.body; part = part.parentElement)
        for (const other of part.parentElement.children)
            if (other !== part) other.style.display = "none";
}"""


@pytest.mark.parametrize("stage", BARS)
def test_bars_are_as_long_as_what_they_tell(open_stage, stage):
    tab, frame = open_stage(stage, forced_colors="active", reduced_motion="reduce")
    bars = frame.locator(f".{BARS[stage]}:visible")
    bars.first.wait_for()
    frame.evaluate(ALONE)
    for theme in ("light", "dark"):
        tab.emulate_media(color_scheme=theme, forced_colors="active", reduced_motion="reduce")
        tab.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        assert_lengths_differ(frame, bars)


def assert_lengths_differ(frame, bars):
    """In a picture of the frame: a bar is where it is dark."""
    picture = matplotlib.image.imread(BytesIO(frame.screenshot()), format="png")[..., :3]
    boxes = bars.evaluate_all(BOXES, frame.element_handle())
    shares = [
        (picture[math.ceil(top) : int(bottom), math.ceil(left) : int(right)].mean(-1) < 0.5).mean()
        for left, top, right, bottom in boxes
    ]
    assert len(shares) > 1
    assert np.ptp(shares) > 0.1, shares
