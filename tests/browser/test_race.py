"""The race on the first page and the ratios: what a reader sees first, guesses, and is told."""

import pytest
from playwright.sync_api import expect

from book.figures.index import mode_speed, race, race_numbers
from book.figures.lib.format import times
from tests.browser.stages import line

# Right end of a line of the plot, as a share of the plot's width.
END = """(frame, id) => {
    const { right, left } = frame.querySelector(`[data-line=${id}]`).getBoundingClientRect();
    const grid = frame.querySelector(".lines-grid").getBoundingClientRect();
    return (right - grid.left) / grid.width;
}"""


def end(frame, name):
    return frame.evaluate(END, name)


def settle(tab):
    tab.clock.run_for(1000)


def drag(tab, frame, left, top):
    """From the middle of the plot to a place in it, by shares of its size."""
    box = frame.locator(".lines-pad").bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tab.mouse.down()
    tab.mouse.move(box["x"] + left * box["width"], box["y"] + top * box["height"], steps=4)
    tab.mouse.up()


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (375, 812)])
def test_the_race_stands_on_the_first_screen_as_one_line(open_page, width, height):
    tab = open_page("book/index.html", width=width, height=height)
    frame = tab.locator("#race")
    box = frame.locator(".lines-frame").bounding_box()
    assert box["y"] > 0 and box["y"] + box["height"] < height
    assert frame.locator(".race-clocks").bounding_box()["y"] < height - 40
    paths = [frame.locator(f"[data-line={name}]").bounding_box() for name in race.PAIR]
    for side in ("x", "y", "width", "height"):
        assert paths[0][side] == pytest.approx(paths[1][side], abs=4)


def test_against_time_linear_is_done_while_softmax_runs(open_stage):
    tab, frame = open_stage("race", stopped=True)
    assert end(frame, "linear") == pytest.approx(1, abs=0.02)
    clocks = frame.locator(".race-clock svg")
    expect(clocks.first).to_be_hidden()  # updates take no time
    frame.get_by_role("radio", name="Time", exact=True).check(force=True)
    tab.clock.run_for(400)
    share = race_numbers.minutes("linear", 16384) / race_numbers.minutes("softmax", 16384)
    assert share + 0.02 < end(frame, "linear") < 0.98, "halfway there"
    settle(tab)
    expect(clocks.first).to_be_visible()
    assert end(frame, "linear") == pytest.approx(share, abs=0.01)
    assert end(frame, "softmax") == pytest.approx(1, abs=0.01)
    done = f"{race_numbers.minutes('linear', 16384):.1f} min"
    expect(frame.locator(".race-clock").nth(1)).to_contain_text(done)
    assert f"Linear is done: {done}" in frame.locator(".lines svg").text_content()
    assert line(frame).startswith(f"Linear is done after {done}")
    # Read off where its line has ended.
    frame.locator(".explorable-cursor").focus()
    tab.keyboard.press("End")
    told = frame.locator(".explorable-cursor").get_attribute("aria-valuetext")
    assert f"Linear done at {done}" in told and "Softmax 1.7" in told


def test_nothing_glides_where_motion_is_unwelcome(open_stage):
    tab, frame = open_stage("race", stopped=True, reduced_motion="reduce")
    frame.get_by_role("radio", name="Time", exact=True).check(force=True)
    assert end(frame, "linear") < 0.2


def test_the_context_takes_both_lines_along(open_stage):
    tab, frame = open_stage("race", reduced_motion="reduce")
    frame.get_by_role("radio", name="Time", exact=True).check(force=True)
    for i, context in enumerate(race.CONTEXTS):
        frame.get_by_role("slider", name="Context").fill(str(i))
        both = [race_numbers.minutes(name, context) for name in race.PAIR]
        for name, minutes in zip(race.PAIR, both, strict=True):
            assert end(frame, name) == pytest.approx(minutes / max(both), abs=0.02)
        assert line(frame).startswith("Linear" if both[1] < both[0] else "Softmax")


@pytest.mark.parametrize("by", ["pointer", "keys"])
def test_a_guess_is_held_against_what_was_measured(open_stage, by):
    tab, frame = open_stage("race", reduced_motion="reduce")
    frame.get_by_role("radio", name="Guess").check(force=True)
    handle = frame.get_by_role("slider", name="When linear is done")
    expect(handle).to_have_attribute("aria-valuenow", "60")
    if by == "pointer":
        drag(tab, frame, 0.5, 0.5)
    else:
        handle.focus()
        for _ in range(3):
            tab.keyboard.press("PageDown")
    guess = race_numbers.minutes("softmax", 16384) / 2
    assert f"{guess:.1f} min" in line(frame)
    assert end(frame, "linear") == pytest.approx(0.5, abs=0.03)
    frame.get_by_role("button", name="Reveal").click()
    assert end(frame, "guess") == pytest.approx(0.5, abs=0.03)
    off = guess / race_numbers.minutes("linear", 16384)
    assert line(frame).startswith(f"You said {guess:.1f} min, {off:.1f} times off.")
    expect(frame.get_by_role("button", name="Reveal")).to_be_hidden()


def test_the_words_unfold_the_figure_that_they_set(open_page):
    # So low on the screen that the figure, in its top third, covers no word.
    tab = open_page("book/index.html", height=900)
    fold, link = tab.locator(".explorable-fold"), tab.locator("a[href^='#headline:']").first
    expect(tab.locator("#headline")).to_be_hidden()
    link.scroll_into_view_if_needed()
    before = link.bounding_box()["y"]
    link.press("Enter")
    expect(fold).to_have_attribute("open", "")
    assert link.bounding_box()["y"] == pytest.approx(before, abs=1)


@pytest.mark.parametrize("by", ["pointer", "keys"])
def test_ratios_are_drawn_before_they_are_shown(open_stage, by):
    tab, frame = open_stage("ratios", prose=True, reduced_motion="reduce")
    table = tab.locator(".cell table")
    expect(table).to_be_hidden()
    if by == "pointer":
        drag(tab, frame, 1, 0)
        assert "1,000×" in line(frame)
    else:
        frame.get_by_role("slider", name="at 131,072 tokens").focus()
        tab.keyboard.press("End")
        assert "1,000×" in line(frame)
    frame.get_by_role("button", name="Reveal").click()
    expect(frame.get_by_role("button", name="Draw again")).to_be_focused()
    expect(table).to_be_visible()
    found = times(mode_speed.ratio_to_softmax(131072))
    assert f"layer alone is {found} as fast. You said 1,000×" in line(frame)
    names = frame.locator(".lines-names").inner_text()
    assert "You" in names and "block of GPT-2 1.5B" in names
