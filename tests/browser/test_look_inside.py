"""The inside of a trained head: what is shown is what is stored, and can be reached by keys."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from book.figures.trained_model import look_inside
from tests.browser.stages import line, slide

PAGE = "book/trained-model.html"
FIRST = [*range(41), 270]
# Of each word of the page, how much it is looked at; and the two rows of guesses.
WEIGHTS = """(frame) => [...frame.querySelectorAll(".look-word")]
    .map((word) => Number(word.style.getPropertyValue("--weight")))"""
GUESSES = """(frame) => [0, 1].map((row) => [...frame.querySelectorAll(".look-guesses")]
    .map((cell) => cell.children[row].textContent))"""
INK = """(canvas) => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height)
    .data.reduce((sum, value) => sum + value, 0)"""


def loaded(get):
    """The stage, from `open_stage` or `set_stage`, with its first page loaded."""
    tab, frame = get("look-inside", reduced_motion="reduce")
    expect(frame.locator(".look-wrong").first).to_be_visible()
    return tab, frame


@pytest.fixture
def opened(open_stage):
    return loaded(open_stage)


@pytest.fixture
def set_back(set_stage):
    """The stage as it is at first, on a page that tests share."""
    return loaded(set_stage)


def stored_look(run, layer, head, token):
    """{place: weight} of what lies beside the record."""
    found = look_inside.arrays(run)
    counts = found["counts"].astype(int)
    T = counts.shape[-1]
    at = counts.ravel()[: (layer * 9 + head) * T + token].sum()
    here = slice(at, at + counts[layer, head, token])
    weights = (found["low"][here] + 256.0 * found["high"][here]) / 1000
    return dict(zip(found["places"][here].tolist(), weights.tolist(), strict=True))


def counted(frame):
    return [int(text.split()[0]) for text in frame.locator(".look-counts b").all_inner_texts()]


def test_what_it_begins_with_carries_its_message(opened):
    _, frame = opened
    run = look_inside.stored()[0]
    start, tokens = look_inside.start(run), run["tables"]["tokens"]["text"]
    look = stored_look(run, 18, 6, start)
    shown = frame.evaluate(WEIGHTS)
    assert {i: weight for i, weight in enumerate(shown) if weight} == look
    # The word after the one that was read, where both stood before.
    lag = run["config"]["passage"] + run["config"]["distance"]
    most = max((place for place in look if place), key=look.__getitem__)
    assert most == start + 1 - lag and tokens[most] == tokens[start + 1]
    said = line(frame)
    assert f"“{tokens[most].strip()}” ({100 * look[most]:.0f}%), the word after it" in said
    free, few, once = counted(frame)
    assert free > few + 10 and few <= once + 3
    rows = frame.evaluate(GUESSES)
    assert [row.count("✓") for row in rows] == [free, few]
    assert frame.locator(".look-arrow path").get_attribute("d")


def test_guesses_are_those_that_are_stored(set_back):
    _, frame = set_back
    run = look_inside.stored()[0]
    found, tables = look_inside.arrays(run), run["tables"]
    passage = tables["tokens"]["text"][-40:]
    for n in (0, 1, 24, 270):
        slide(frame, "The first, how many", FIRST, n)
        row = look_inside.row_of(run, "first", n) if n else look_inside.row_of(run, "none")
        guesses = [tables["vocabulary"]["letters"][i] for i in found["guesses"][row, :, 0]]
        right = ["✓" if a == b else a.strip() for a, b in zip(guesses, passage, strict=True)]
        assert [cell.replace("↵", "") for cell in frame.evaluate(GUESSES)[1]] == right
        assert counted(frame)[1] == tables["sets"]["right"][row]
        at = look_inside.start(run) + 1 - len(tables["tokens"]["text"])
        shares = np.char.add(np.round(found["shares"][row, at] / 10).astype(int).astype(str), "%")
        told = frame.locator(".look-likely").nth(1).locator("li > :last-child").all_inner_texts()
        assert [share.replace("<1%", "0%") for share in told] == shares.tolist()


def test_words_heads_and_pages_are_reached_by_keys_and_kept_in_the_address(opened, open_page):
    tab, frame = opened
    assert tab.evaluate("Object.keys(BookFiles)") == ["text-3"]
    first = line(frame)
    frame.get_by_role("button", name="Step").focus()
    tab.keyboard.press("ArrowRight")
    assert line(frame) != first
    tab.keyboard.press("End")
    end = line(frame)
    tab.keyboard.press("ArrowRight")
    assert line(frame) == end
    frame.get_by_role("combobox", name="Open head").select_option(label="7.7, 2nd of the ranking")
    assert "head 7.7 looks at" in line(frame) and "the same word in the first copy" in line(frame)
    frame.get_by_role("radio", name="the open head alone").check(force=True)
    assert "with 7.7 confined" in line(frame)
    frame.get_by_role("combobox", name="A page of").select_option(label="Villette")
    expect(frame.locator(".look-wrong").first).to_be_visible()
    tab.keyboard.press("Escape")
    frame.locator(".look-word").nth(200).click()
    expect(tab).to_have_url(re.compile("#look-inside:page=1&head=7.7&confined=head&word=201"))
    said = line(frame)
    assert "loading" not in said
    address = f"{PAGE}#{tab.url.partition('#')[2]}"
    again = open_page(address, prose=False).locator("#look-inside")
    expect(again.locator("[role=status]")).to_have_text(said)


def test_a_mouse_over_a_word_shows_what_is_seen_from_it(set_back):
    _, frame = set_back
    said, shown = line(frame), frame.evaluate(WEIGHTS)
    frame.locator(".look-word").nth(100).hover()
    assert line(frame) != said and frame.evaluate(WEIGHTS) != shown
    assert all(weight == 0 for weight in frame.evaluate(WEIGHTS)[101:])
    frame.locator(".stage-title").hover()
    assert line(frame) == said and frame.evaluate(WEIGHTS) == shown


def test_a_square_opens_its_head(set_back):
    _, frame = set_back
    grid = frame.locator(".look-grid")
    box = grid.bounding_box()
    size = (box["width"] - 16) / 30
    grid.click(position={"x": 16 + 7.4 * size, "y": 1.4 * size})
    expect(frame.locator(".look-about")).to_contain_text("Head 7.7, 2nd of 270.")
    assert frame.get_by_role("combobox", name="Open head").input_value() == "1"
    # A head that was never confined alone.
    frame.get_by_role("radio", name="the open head alone").check(force=True)
    grid.click(position={"x": 16 + 0.4 * size, "y": 8.4 * size})
    expect(frame.get_by_role("radio", name="the open head alone")).to_be_disabled()
    assert "with the first 8 confined" in frame.locator(".look-text").inner_text()


def test_it_loads_when_it_comes_near_and_says_what_is_missing(open_page):
    tab = open_page(PAGE, height=500)
    assert tab.evaluate("window.BookFiles") is None
    frame = tab.locator("#look-inside")
    assert "loading" in line(frame)
    before = frame.locator(".look-grid").evaluate(INK)
    frame.scroll_into_view_if_needed()
    expect(frame.locator(".look-wrong").first).to_be_visible()
    assert frame.locator(".look-grid").evaluate(INK) != before
    tab.evaluate("BookFiles['text-0'] = '!'")
    frame.get_by_role("combobox", name="A page of").select_option(label="Villette")
    expect(frame.locator("[role=status]")).to_contain_text("cannot be shown here")
