"""A chart in a reader's hands: pointer, touch, keyboard, address, a narrow screen, no script."""

import re

import pytest
from playwright.sync_api import expect

from book.explorable import palette
from book.explorable.figure import (
    Axis,
    Explorable,
    Series,
    Toggle,
)
from book.explorable.model import format_number, resolve
from tests.browser.accessibility import grave_violations
from tests.browser.charts import (
    axis_title,
    headline,
    move_pointer,
    plot,
    radio,
    speed,
    tasks,
    traces,
)


@pytest.mark.parametrize("hand", ["mouse", "keyboard"])
def test_updates_become_time(show, hand):
    page = show(headline())
    before = traces(page, "headline")
    assert axis_title(page, "headline") == "Updates"
    if hand == "mouse":
        page.locator("label", has=radio(page, "Time")).click()
    else:
        radio(page, "Updates").focus()
        page.keyboard.press("ArrowRight")
    assert axis_title(page, "headline") == "Time (h)"
    after = traces(page, "headline")
    assert [one["name"] for one in after] == [one["name"] for one in before]
    assert after[0]["x"] != before[0]["x"]
    assert page.url.endswith("#headline:x=hours")


def test_state_is_restored_from_the_hash_and_returns_to_none(show):
    page = show(headline(), fragment="#headline:x=hours&context=4096&attention=softmax&level=4")
    expect(radio(page, "Time")).to_be_checked()
    expect(radio(page, "4,096")).to_be_checked()
    assert {one["name"] for one in traces(page, "headline")} == {"Softmax attention", "Entropy"}
    expect(page.get_by_label("Loss to reach, typed")).to_have_value("4")
    page.evaluate("location.hash = '#headline:'")
    expect(radio(page, "Updates")).to_be_checked()
    radio(page, "Time").check(force=True)
    radio(page, "Updates").check(force=True)
    assert "#" not in page.url


def test_plain_anchors_and_nonsense_leave_figures_alone(show):
    page = show(headline(), fragment="#top")
    plot(page, "headline")
    page.get_by_role("checkbox", name="Linear attention").uncheck()
    assert page.url.endswith("#headline:attention=softmax")
    page.get_by_role("checkbox", name="Linear attention").check()
    page.evaluate("location.hash = '#headline:x=nowhere&context=7&level=%&bogus;:;other:x=1'")
    expect(radio(page, "Updates")).to_be_checked()
    expect(radio(page, "1,024")).to_be_checked()


def test_without_javascript_there_is_a_picture_and_a_table(show):
    page = show(headline(), java_script_enabled=False)
    expect(page.locator("#headline .explorable-plot svg")).to_be_visible()
    expect(page.locator("noscript p")).to_be_visible()
    expect(page.get_by_role("button", name="Download CSV")).to_be_hidden()
    page.get_by_text("Table", exact=True).click()
    expect(page.get_by_role("cell", name="9", exact=True).first).to_be_visible()


def test_values_can_be_read_by_keyboard(show):
    page = show(headline())
    plot(page, "headline")
    page.get_by_role("radio", name="Updates").focus()
    cursor = page.get_by_role("slider", name="Read values along updates")
    cursor.focus()
    page.keyboard.press("End")
    last = resolve(headline()).traces[0].y[-1]
    said = f"Softmax attention {format_number(last)} nats per token"
    expect(cursor).to_have_attribute("aria-valuetext", re.compile(f"^1,180 updates: .*{said}"))
    box = page.locator("#headline .explorable-values")
    expect(box).to_contain_text(f"{format_number(last)} nats per token")
    page.keyboard.press("ArrowLeft")
    expect(box).to_contain_text("1,168 updates")
    page.keyboard.press("Escape")
    expect(box).to_be_hidden()


@pytest.mark.parametrize(("block", "below"), [("start", True), ("end", False)])
def test_a_tap_leaves_the_values_standing_beside_the_plot(show, block, below):
    """On a phone they once covered the upper third of the curves that they were read off."""
    far = '<div style="height: 900px"></div>'
    page = show(headline(), before=far, width=375, has_touch=True, is_mobile=True)
    plot(page, "headline")
    cursor = page.locator("#headline .explorable-cursor")
    values = page.locator("#headline .explorable-values")
    frame = page.locator("#headline .explorable-frame")
    frame.evaluate("(one, block) => one.scrollIntoView({ block })", block)
    height = page.evaluate("document.documentElement.scrollHeight")
    for share in (0.1, 0.45, 0.55, 0.9):
        cursor.tap(position={"x": share * cursor.bounding_box()["width"], "y": 60})
        box, plotted = values.bounding_box(), frame.bounding_box()
        assert 0 <= box["x"] <= 375 - box["width"]
        assert 0 <= box["y"] <= 900 - box["height"]
        top, end = box["y"], box["y"] + box["height"]
        assert top >= plotted["y"] + plotted["height"] - 1 if below else end <= plotted["y"] + 1
    expect(values).to_contain_text(re.compile(r"updates: loss \(nats per token\)Linear attention3"))
    assert page.evaluate("document.documentElement.scrollHeight") == height, "the page moved"
    values.tap()  # it covers what lies under it, and takes no tap through to that
    expect(values).to_be_hidden()


def test_plotly_waits_until_a_reader_comes_near(show):
    page = show(headline(), speed(), before='<div style="height: 4000px"></div>')
    loaded = page.locator("script[src*=plotly]")
    move_pointer(page, 3, 3)
    assert loaded.count() == 0, "no figure is near"
    frame = page.locator("#headline .explorable-frame")
    height = frame.bounding_box()["height"]
    plot(page, "headline")
    assert loaded.count() == 1
    assert frame.bounding_box()["height"] == height, "the page moved when the plot came"


@pytest.mark.parametrize("touch", ["pointer", "keyboard", "address"])
def test_a_figure_in_sight_stays_still_until_it_is_touched(show, touch):
    page = show(headline(), fragment="#headline:x=hours" if touch == "address" else "")
    still, drawn = page.locator(".explorable-plot > svg"), page.locator(".js-plotly-plot")
    if touch != "address":
        expect(still).to_be_visible()
        # As a page is told that appears under a resting mouse.
        page.evaluate("dispatchEvent(new PointerEvent('pointermove'))")
        assert page.locator("script[src*=plotly]").count() == 0
    if touch == "pointer":
        move_pointer(page, 30, 30)
    if touch == "keyboard":
        radio(page, "Updates").focus()
    expect(drawn).to_be_visible()
    expect(still).to_have_count(0)


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 375)])
def test_accessible_and_never_wider_than_the_screen(show, theme, width):
    figures = [headline(), speed(), tasks()]
    page = show(*figures, theme=theme, width=width)
    for one in figures:
        plot(page, one.id)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not grave_violations(page)


def test_targets_are_large_enough_for_a_finger_and_leave_the_plot_the_screen(show):
    page = show(headline(), width=375, has_touch=True, is_mobile=True)
    fold = page.locator("#headline .explorable-more")
    settings, frame, legend = (
        page.locator(f"#headline .explorable-{part}").bounding_box()
        for part in ("settings", "frame", "legend")
    )
    assert settings["height"] + legend["height"] <= frame["height"]
    assert settings["y"] < frame["y"] < legend["y"]
    chosen = fold.locator(".explorable-chosen")
    expect(chosen).to_contain_text("Vertical axis Loss · Context 1")
    expect(fold.locator("summary")).to_have_css("height", "36px")  # one line, cut where it ends
    fold.locator("summary").press("Enter")
    expect(fold.locator(".figure-control").last).to_be_visible()
    expect(chosen).to_be_hidden()
    targets = "#headline :is(.figure-choice, input[type=range], summary, .explorable-csv)"
    for box in (one.bounding_box() for one in page.locator(targets).all()):
        assert box["height"] >= 36


def test_what_folds_on_a_phone_stands_in_the_row_elsewhere(show):
    page = show(headline(), width=1280)
    fold = page.locator("#headline .explorable-more")
    expect(fold.locator("summary")).to_be_hidden()
    fold.locator("input").first.focus()
    for control in fold.locator(".figure-control").all():
        expect(control).to_be_visible()


def test_a_legend_of_many_names_is_no_taller_than_its_plot(show):
    layers = [name for name in palette.names() if not name.startswith(("other", "this"))][:16]
    figure = Explorable(
        id="many", caption="Layers.", alt="Lines.", color="layer", x=Axis("t", "Length"),
        y=Axis("loss", "Loss"),
        series=[Series({"layer": one}, {"t": [1, 2], "loss": [1, 2]}) for one in layers],
        controls=[Toggle("layer", "Layer", default=layers[:7])],
    )  # fmt: skip
    page = show(figure, width=375, has_touch=True, is_mobile=True)
    controls, frame = (
        page.locator(f"#many .explorable-{part}").bounding_box() for part in ("controls", "frame")
    )
    assert controls["height"] <= frame["height"]


def test_plot_follows_its_container(show):
    page = show(headline())
    drawn = plot(page, "headline")
    page.set_viewport_size({"width": 500, "height": 900})
    expect(drawn.locator(".main-svg").first).to_have_attribute("width", "468")
