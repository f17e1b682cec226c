"""How long a press keeps the page busy: processor time, which a busy machine hardly lengthens."""

from __future__ import annotations

from statistics import median

import pytest

MOST_MS = 100  # from a press to the first frame, on a quiet machine
PRESSES = ("ArrowRight", "ArrowLeft") * 2

pytestmark = pytest.mark.browser


def busy_ms(session) -> float:
    """What the page's main thread has computed so far."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return 1000 * next(one["value"] for one in metrics if one["name"] == "TaskDuration")


@pytest.mark.parametrize(
    ("page", "control"),
    [
        ("linear-self-attention", "#memory input[type=range] >> nth=1"),
        ("long-context", "#found-again input[type=radio]:checked >> nth=0"),
        ("long-context", "#ribbon input[type=radio]:checked >> nth=0"),
    ],
)
def test_a_press_is_answered_in_a_frame_that_seems_at_once(open_page, page, control):
    tab = open_page(f"book/{page}.html")
    moved = tab.locator(control)
    moved.scroll_into_view_if_needed()
    # A chart is drawn once it is near.
    tab.wait_for_timeout(1000)
    moved.focus()
    session = tab.context.new_cdp_session(tab)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    took = []
    for key in PRESSES:
        before = busy_ms(session)
        tab.keyboard.press(key)
        tab.wait_for_timeout(400)
        took.append(busy_ms(session) - before)
    assert 0 < median(took) < MOST_MS, took
