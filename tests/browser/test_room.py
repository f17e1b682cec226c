"""What is wider than its room: on phones, between phones and desks, and on paper."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from book.explorable import palette
from tests.browser.charts import plot
from tests.browser.pages import CUT_LINES, WIDER

# How far a row's name lies from the left edge of the box, and how many of its numbers are seen.
NUMBERS_IN_SIGHT = """(box) => {
    const { left, right } = box.getBoundingClientRect();
    const [name, ...cells] = box.querySelectorAll("tbody tr:first-child > *");
    const seen = cells.filter((cell) => cell.getBoundingClientRect().right <= right + 1);
    return [name.getBoundingClientRect().left - left, seen.length];
}"""
BROKEN_LINES = """() => [...document.querySelectorAll("article .cell_output pre")]
    .filter((one) => getComputedStyle(one).whiteSpace !== "pre")
    .map((one) => one.textContent.slice(0, 60))"""
CUT_ON_PAPER = """() => [...document.querySelectorAll("article :is(table, pre)")]
    .filter((one) => one.clientWidth && !one.closest(".explorable-tools"))
    .filter((one) => one.getBoundingClientRect().right > innerWidth
        || (one.matches("pre") && one.scrollHeight > one.clientHeight + 1))
    .map((one) => one.textContent.slice(0, 60))"""
FAR_STOPS = """[...document.querySelectorAll("article :is(pre, .katex-display)[tabindex]")]
    .filter((one) => one.getBoundingClientRect().top > 10 * innerHeight).length"""

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("scripts", [True, False])
def test_a_figures_table_shows_its_numbers_on_a_phone(browser, built_book, scripts):
    size = {"width": 375, "height": 800}
    context = browser.new_context(viewport=size, java_script_enabled=scripts)
    tab = context.new_page()
    tab.goto(f"file://{built_book}/book/sampling.html")
    if scripts:
        tab.wait_for_selector("html[data-ready]", state="attached")
    data = tab.locator(".explorable-data").first
    data.locator("summary").click()
    box = data.locator(".explorable-scroll")
    expect(box.locator("tbody tr").first).to_be_visible()
    begins, seen = box.evaluate(NUMBERS_IN_SIGHT)
    assert abs(begins) < 2
    assert seen >= 2
    # Where there is more, a shadow says so, and the names stay.
    assert "gradient" in box.evaluate("box => getComputedStyle(box).backgroundImage")
    box.locator("table").evaluate("table => (table.style.width = '900px')")
    box.evaluate("box => (box.scrollLeft = 300)")
    assert box.evaluate("box => box.scrollLeft") > 200
    assert abs(box.evaluate(NUMBERS_IN_SIGHT)[0]) < 2
    context.close()


@pytest.mark.parametrize("page", ["relatives", "sampling"])
def test_what_a_cell_prints_is_whole(open_page, page):
    """At a desk, where the page has its contents beside it, another test asks."""
    assert open_page(f"book/{page}.html", width=821).evaluate(CUT_LINES, "cell_output") == []


@pytest.mark.parametrize("page", ["kernels", "relatives"])
def test_code_fits_a_phone(open_page, page):
    tab = open_page(f"book/{page}.html", width=320)
    assert tab.locator(".cell_input pre").count() > 5
    assert tab.evaluate(CUT_LINES, "cell_input") == []


@pytest.mark.parametrize("page", ["sampling", "state-machines"])
def test_what_is_printed_in_columns_stays_in_columns_on_a_phone(open_page, page):
    tab = open_page(f"book/{page}.html", width=375)
    assert tab.evaluate(BROKEN_LINES) == []
    assert tab.evaluate(CUT_LINES, "cell_output") != [], (
        "no table is wider than a phone, and the test shows nothing"
    )
    assert tab.evaluate(WIDER) <= 0


def test_the_first_column_of_a_wide_table_stays_at_a_desk(open_page):
    tab = open_page("book/state-spaces.html")
    box = tab.locator(".pst-scrollable-table-container", has_text="LAMBADA").first
    box.evaluate("box => (box.scrollLeft = 100)")
    assert box.evaluate("box => box.scrollLeft") == 100
    assert box.evaluate(NUMBERS_IN_SIGHT)[0] == 0


@pytest.mark.parametrize(
    ("page", "width"),
    [*(("state-machines", width) for width in (580, 620, 650)), ("three-modes", 320)],
)
def test_a_page_fits_between_the_usual_widths(open_page, page, width):
    assert open_page(f"book/{page}.html", width=width).evaluate(WIDER) <= 0


def test_boxes_far_from_the_screen_are_laid_out_for_a_reader_who_uses_the_keys(built_book, browser):
    tab = browser.new_page(viewport={"width": 412, "height": 823}, bypass_csp=True)
    tab.goto(f"file://{built_book}/book/kernels.html")
    tab.wait_for_selector("html[data-measured]", state="attached")
    assert tab.evaluate(FAR_STOPS) == 0
    tab.keyboard.press("Tab")
    tab.wait_for_function(f"{FAR_STOPS} > 0")
    tab.close()


def test_what_is_printed_from_the_dark_theme_has_the_colours_of_paper(open_page):
    tab = open_page("book/three-modes.html", theme="dark")
    drawn = plot(tab, "mode-speed")
    colours = "one => one.layout.annotations.map(label => label.font.color.toUpperCase())"
    wanted = palette.colour("attention-text")
    assert wanted not in drawn.evaluate(colours)
    tab.emulate_media(media="print")
    tab.wait_for_function(
        f"([one, wanted]) => ({colours})(one).includes(wanted)",
        arg=[drawn.element_handle(), wanted],
    )
    name = tab.locator("#roofline .roofline-name").first
    ink = name.evaluate("one => getComputedStyle(one).getPropertyValue('--attention-text')")
    assert ink == wanted
    # Back on the screen it is dark again.
    tab.emulate_media(media="screen")
    tab.wait_for_function(
        f"([one, wanted]) => !({colours})(one).includes(wanted)",
        arg=[drawn.element_handle(), wanted],
    )


@pytest.mark.parametrize("page", ["relatives", "state-spaces"])
def test_paper_cuts_no_table(open_page, page):
    tab = open_page(f"book/{page}.html", width=700)
    tab.emulate_media(media="print")
    assert tab.evaluate(CUT_ON_PAPER) == []
