"""What a press makes the page do."""

from statistics import median

import pytest

# Of a press below: at most 2, 7 and 196. One drawing of a chart makes 196 nodes, two make 391.
MOST = {"LayoutCount": 4, "RecalcStyleCount": 10, "Nodes": 300}
PRESSES = ("ArrowRight", "ArrowLeft") * 2


def done(session) -> dict[str, float]:
    """Layouts, style passes and nodes of the page so far."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return {one["name"]: one["value"] for one in metrics if one["name"] in MOST}


@pytest.mark.parametrize(
    ("page", "control"),
    [
        ("linear-self-attention", "#memory input[type=range] >> nth=1"),
        ("long-context", "#found-again input[type=radio]:checked >> nth=0"),
        ("long-context", "#ribbon input[type=radio]:checked >> nth=0"),
    ],
)
def test_a_press_draws_one_figure_and_lays_it_out_a_few_times(open_page, page, control):
    tab = open_page(f"book/{page}.html")
    moved = tab.locator(control)
    moved.scroll_into_view_if_needed()
    # A chart is drawn once it is near.
    tab.wait_for_timeout(1000)
    moved.focus()
    session = tab.context.new_cdp_session(tab)
    session.send("Performance.enable")
    took = []
    for key in PRESSES:
        before = done(session)
        tab.keyboard.press(key)
        tab.wait_for_timeout(400)
        took.append({name: value - before[name] for name, value in done(session).items()})
    for name, most in MOST.items():
        # The median, since a collection of garbage takes nodes away.
        assert 0 < median(one[name] for one in took) < most, took
