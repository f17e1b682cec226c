"""The memory lab shows what its arithmetic gives, and what the chapter says of it."""

import re

import pytest
import torch
from playwright.sync_api import expect

from lsa import linear_attention, softmax_attention

PAGE = "book/linear-self-attention.html"
KEYS = "(words) => Recall.pairs(words, { width: 8 }).map(({ k }) => k)"


def words(frame):
    return [text.split() for text in frame.locator("tbody button").all_inner_texts()]


def numbers(frame, row):
    cells = frame.locator(f"tr.{row} td > span").all_inner_texts()
    return [int(cell.replace("−", "-")) for cell in cells if cell.strip()]


def unfold(frame):
    """Open the matrices, and wait for them: a page hears later that a fold was opened."""
    frame.locator(".stage-more summary").click()
    expect(frame.locator(".memory-picture > svg > *")).not_to_have_count(0)


def right(frame):
    """Which keys the state answers right, counted from 1."""
    said = frame.locator(".memory-state .memory-said td").all_inner_texts()
    return [i for i, text in enumerate(said, 1) if text == "✓"]


def test_the_lab_shows_what_the_layers_compute_and_the_chapter_says(open_page):
    """At first: eight pairs, the first key asked for, one bar of softmax, several of linear."""
    tab = open_page(PAGE)
    frame = tab.locator("#memory")
    k = torch.tensor(tab.evaluate(KEYS, words(frame)[:8]), dtype=torch.float64)
    heads = [x[None, :, None] for x in (k.roll(-1, 0), k, torch.eye(8, dtype=torch.float64))]
    cache = softmax_attention(*heads)[0, -1, 0]
    state = linear_attention(*heads, feature_map="elu_plus_one")[0, -1, 0]
    assert numbers(frame, "memory-cache") == (100 * cache).round().int().tolist()
    assert numbers(frame, "memory-state") == (100 * state).round().int().tolist()
    assert cache[0] > 0.99
    assert 0.2 < state[0] < 0.3 and state.argmax() == 0 and state[1:].max() > 0.15
    assert frame.get_by_text("Linear is right for 3 of 8 keys, softmax for 8.").is_visible()
    assert frame.get_by_text("3 of 8 right").is_visible()
    marks = "".join(frame.locator(".memory-said td").all_inner_texts())
    assert (marks.count("✓"), marks.count("✗")) == (8 + 3, 5)
    frame.get_by_role("button", name="Step").click()
    assert frame.locator(".memory-slide").count() == 0  # the matrices are folded away
    unfold(frame)
    frame.get_by_role("button", name="Step").click()
    assert frame.locator(".memory-slide").count() == 1

    def follow(said):
        tab.locator(f"a.figure-view[href='#memory:{said}']").click()
        return right(frame), numbers(frame, "memory-state")[0]

    assert follow("pairs=1") == ([1], 100)
    kept, share = follow("pairs=12")
    assert 1 not in kept
    old, _ = follow("pairs=12&decay=0.8")
    assert old[-2:] == [11, 12] and 1 not in old and len(old) == len(kept)

    def score():
        return [int(text.split()[0]) for text in frame.locator(".memory-label b").all_inner_texts()]

    follow("pairs=64&width=32")
    assert score()[0] > 60 and score()[1] < 5
    follow("pairs=64&width=64&keys=signed")
    assert score() == [64, 64]
    _, alone = follow("pairs=32&width=32&keys=orthogonal")
    assert score() == [32, 32] and alone == 100
    assert numbers(frame, "memory-state")[1:] == [0] * 11


def test_trained_keys_are_loaded_when_they_are_asked_for(open_page):
    tab = open_page(PAGE)
    frame, width = tab.locator("#memory"), tab.get_by_role("slider", name="Width d")
    assert not tab.evaluate("Object.keys(window.BookFiles ?? {}).length")
    tab.locator("a.figure-view[href='#memory:pairs=64&keys=trained']").click()
    expect(tab.locator(".figure-pinned")).to_be_visible()
    tab.keyboard.press("Escape")
    expect(frame.locator("[role=status]")).to_contain_text(re.compile("right for 1[0-9] of 64"))
    assert frame.get_by_text(re.compile("^1[0-9] of 64 right")).is_visible()
    assert width.is_disabled() and width.get_attribute("aria-valuetext") == "32"
    assert frame.get_by_role("radio", name="trained").is_checked()
    assert frame.get_by_text(re.compile("^6[0-9] of 64 right")).is_visible()
    frame.get_by_role("radio", name="positive").check()
    assert width.is_enabled() and width.get_attribute("aria-valuetext") == "8"


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (375, 812)])
def test_keys_bars_answers_and_sliders_stand_in_one_viewport(open_page, width, height):
    frame = open_page(PAGE, prose=False, width=width, height=height).locator("#memory")
    parts = [frame.get_by_role("slider", name=name) for name in ("Pairs", "Width d", "Decay γ")]
    parts += [frame.get_by_role("radio", name=name) for name in ("positive", "trained")]
    parts += [frame.get_by_role("button", name="Step"), frame.locator("[role=status]")]
    parts += [frame.locator(name) for name in (".stage-title", ".memory-columns")]
    for part in parts:
        expect(part).to_be_visible()
    boxes = [part.bounding_box() for part in parts]
    header = 57  # px, which stay above the text
    lowest = max(box["y"] + box["height"] for box in boxes)
    assert lowest - min(box["y"] for box in boxes) < height - header


def test_without_a_normaliser_nothing_is_called_a_share_of_the_weight(set_stage):
    _, frame = set_stage("memory", "pairs=4&keys=signed")
    assert "need not add up to 100" in frame.inner_text()
    assert "% of it" in frame.locator("[role=status]").inner_text()
    _, shares = set_stage("memory", "pairs=4")
    assert "need not add up to 100" not in shares.inner_text()


def test_a_key_is_asked_for_by_keyboard(open_page):
    tab = open_page(f"{PAGE}#memory:pairs=3", prose=False, reduced_motion="reduce")
    frame = tab.locator("#memory")
    unfold(frame)
    frame.get_by_role("button", name="Back").click()
    frame.get_by_role("button", name="Step").click()
    assert frame.locator(".memory-slide").count() == 0  # motion is unwelcome
    frame.locator("tbody button").nth(1).press("Enter")
    line = frame.locator("[role=status]")
    assert line.inner_text().startswith(f"3 pairs. Asked for {words(frame)[1][0]}")


def test_a_wider_state_has_no_more_elements_to_style_at_a_press(set_stage):
    """2,240 squares of width 32 took a phone more than a tenth of a second as elements."""
    _, frame = set_stage("memory", "pairs=12&width=32")
    unfold(frame)
    assert "32 × 32" in frame.locator(".memory-picture").inner_text()
    paths = frame.locator(".memory-picture g path")
    drawn = "".join(paths.evaluate_all("paths => paths.map((path) => path.getAttribute('d'))"))
    assert drawn.count("M") == 2 * 32 * 32 + 6 * 32
    assert frame.locator(".memory-picture *").count() < 250
