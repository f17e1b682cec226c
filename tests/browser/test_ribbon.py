"""The ribbon shows what is stored of a passage wherever it is dragged, and says what it shows."""

import pytest

from book.figures.long_context.distant_recall import shares
from book.figures.long_context.long_context import MAIN, gain_at
from book.figures.long_context.ribbon import PARTS, PASSAGE
from tests.browser.stages import line


def test_it_says_what_is_stored_and_a_passage_further_back_is_worth_less(open_stage):
    tab, frame = open_stage("ribbon", reduced_motion="reduce")
    back = frame.get_by_role("slider", name="How far back")
    said = line(frame)
    for model in ("softmax", "linear"):
        one = gain_at(model, MAIN, "again", 256)
        assert f"{PARTS[model]} {1000 * one['gain']:.1f} ± {1000 * one['half']:.1f}" in said
    back.focus()
    words = frame.locator(".ribbon-words")
    assert words.locator("mark").all_inner_texts() == [PASSAGE, PASSAGE]
    assert "… 92 bytes …" in words.inner_text()
    tab.keyboard.press("ArrowLeft")  # as in the picture, what is further back is on the left
    assert "… 861 bytes …" in words.inner_text()
    assert line(frame).startswith("1,024 bytes back.") and line(frame) != said
    assert "repeated here, 1,024 bytes later" in frame.locator(".ribbon").text_content()
    frame.get_by_role("radio", name="noise").check()
    assert words.is_hidden()
    found = shares()
    for model in ("softmax", "linear", "delta"):
        assert f"{PARTS[model]} {100 * found[model, 'noise', 1024].mean:.0f}%" in line(frame)
    assert frame.locator(".lines-names li").count() == 5  # the last says what the thin bars are
    tab.keyboard.press("ArrowRight")
    assert frame.get_by_role("radio", name="other pairs of key and value").is_checked()


@pytest.mark.parametrize("width", [1280, 375])
def test_the_passage_is_dragged(open_stage, width):
    tab, frame = open_stage("ribbon", width=width)
    planted = frame.locator(".ribbon-planted")
    before, band = planted.bounding_box(), frame.locator(".ribbon-band").bounding_box()
    y = before["y"] + before["height"] / 2
    tab.mouse.move(before["x"] + before["width"] / 2, y)
    tab.mouse.down()
    tab.mouse.move(band["x"] + 30, y, steps=4)
    tab.mouse.up()
    assert line(frame).startswith("16,384 bytes back.")
    assert planted.bounding_box()["x"] < before["x"] - 50
    assert frame.get_by_role("slider").get_attribute("aria-valuetext") == "16,384"
    frame.get_by_role("radio", name="noise").check()
    assert "softmax (its cache) not asked" in line(frame)


def test_a_distance_that_was_not_asked_gives_way_to_the_nearest(open_stage):
    _, frame = open_stage("ribbon")
    frame.get_by_role("radio", name="noise").check()
    frame.get_by_role("slider", name="How far back").press("End")
    assert line(frame).startswith("4 tokens back.")
    frame.get_by_role("radio", name="a novel").check()
    assert line(frame).startswith("64 bytes back.")
    assert f"Repeated: {PASSAGE}{PASSAGE}" in frame.locator(".ribbon-words").inner_text()
