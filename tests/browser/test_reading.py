"""A figure comes beside the sentence that is read, and goes with it."""

import re

from playwright.sync_api import expect

PINNED = re.compile(r"\bfigure-pinned\b")
# Words of the chapter on linear attention that set the stage above them, and what it then shows.
ONE, TWELVE = (f"a.figure-view[href='#memory:pairs={pairs}']" for pairs in (1, 12))
READ = """(link) => {
    const wanted = 0.35 * innerHeight;
    scrollBy({ top: link.getBoundingClientRect().top - wanted, behavior: "instant" });
}"""
NOTE_SHIFTS = """() => {
    window.shift = 0;
    new PerformanceObserver((list) => {
        for (const one of list.getEntries()) if (!one.hadRecentInput) window.shift += one.value;
    }).observe({ type: "layout-shift" });
}"""


def test_a_sentence_that_is_read_brings_its_figure_beside_it(open_page):
    tab = open_page("book/linear-self-attention.html", width=1440, height=700)
    memory, pairs = tab.locator("#memory"), tab.locator("#memory-pairs")
    first = pairs.input_value()
    tab.evaluate(NOTE_SHIFTS)
    # Not while it is in sight itself.
    memory.evaluate("(memory) => scrollBy(0, memory.getBoundingClientRect().top - 60)")
    tab.wait_for_timeout(400)
    expect(memory).not_to_have_class(PINNED)
    memory.evaluate("(memory) => (memory.style.marginBottom = '150vh')")
    link = tab.locator(TWELVE)
    link.evaluate(READ)
    expect(memory).to_have_class(PINNED)
    expect(pairs).not_to_have_value(first)
    read = tab.locator("a.figure-read")
    expect(read).to_have_count(1)
    box, text = memory.bounding_box(), tab.locator("article.bd-article").bounding_box()
    assert box["x"] >= text["x"] + text["width"]
    assert box["x"] + box["width"] <= 1440 and box["y"] + box["height"] <= 700
    assert "memory" not in tab.url, "nobody has asked for it"
    # It goes as the words do, and is as it was.
    tab.evaluate("scrollBy({ top: 900, behavior: 'instant' })")
    expect(memory).not_to_have_class(PINNED)
    expect(pairs).to_have_value(first)
    expect(read).to_have_count(0)
    tab.wait_for_timeout(200)
    assert tab.evaluate("window.shift") < 0.01


def test_a_reader_who_closes_a_figure_is_shown_none_until_words_are_pressed(open_page):
    tab = open_page("book/linear-self-attention.html", width=1440, height=700)
    memory, link = tab.locator("#memory"), tab.locator(TWELVE)
    memory.evaluate("(memory) => (memory.style.marginBottom = '150vh')")
    link.evaluate(READ)
    expect(memory).to_have_class(PINNED)
    tab.keyboard.press("Escape")
    expect(memory).not_to_have_class(PINNED)
    tab.mouse.wheel(0, 10)
    tab.wait_for_timeout(400)
    expect(memory).not_to_have_class(PINNED)
    link.press("Enter")
    expect(memory).to_have_class(PINNED)
    # The contents of the page lie beneath.
    tab.locator(".bd-sidebar-secondary a").first.focus()
    expect(memory).not_to_have_class(PINNED)


def test_on_a_phone_a_figure_comes_when_asked_and_then_follows_what_is_read(open_page):
    tab = open_page("book/linear-self-attention.html", width=375, height=812)
    memory, pairs = tab.locator("#memory"), tab.locator("#memory-pairs")
    memory.evaluate("(memory) => (memory.style.marginBottom = '150vh')")
    link = tab.locator(ONE)
    link.evaluate(READ)
    tab.wait_for_timeout(400)
    expect(memory).not_to_have_class(PINNED)
    link.press("Enter")
    expect(memory).to_have_class(PINNED)
    shown = pairs.input_value()
    box, words = memory.bounding_box(), link.bounding_box()
    assert box["y"] >= 0 and box["y"] + box["height"] <= words["y"]
    assert box["y"] + box["height"] < 0.45 * 812
    tab.evaluate("scrollBy({ top: 150, behavior: 'instant' })")
    expect(pairs).not_to_have_value(shown)
    expect(memory).to_have_class(PINNED)


def test_a_figure_that_is_read_of_gives_way_to_another_on_the_screen(open_page):
    tab = open_page("book/three-modes.html", width=1440, height=1250)
    link = tab.locator("a.figure-view", has_text="peak memory")
    other = tab.locator("#browser-speed")
    # First so far down that its picture is not seen beside the words.
    other.evaluate("(one) => (one.style.marginTop = '100vh')")
    link.evaluate(READ)
    expect(tab.locator("#mode-speed")).to_have_class(PINNED)
    other.evaluate("(one) => (one.style.marginTop = '0')")
    expect(tab.locator("#mode-speed")).not_to_have_class(PINNED)


def test_the_contents_mark_the_section_that_is_read_also_after_a_jump(open_page):
    tab = open_page("book/training.html", width=1440, height=900)
    marked = tab.locator("#page-contents a[aria-current]")
    for name in ("three-takeaways", "what-they-write", "does-size-change-it"):
        tab.locator(f"#{name}").evaluate("(part) => part.scrollIntoView({ behavior: 'instant' })")
        expect(marked).to_have_attribute("href", f"#{name}")
    tab.evaluate("scrollTo({ top: 0, behavior: 'instant' })")
    expect(marked).to_have_count(0)
