"""What is wider than its room: on phones, between phones and desks, and on paper."""

import pytest
from playwright.sync_api import Page, expect

from book.explorable import palette
from tests.browser.charts import plot
from tests.browser.pages import CUT_LINES, WIDER
from tests.browser.stages import NEXT_FRAME

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


@pytest.mark.parametrize("scripts", [True, False])
def test_a_figures_table_shows_its_numbers_on_a_phone(browser, built_book, scripts):
    size = {"width": 375, "height": 800}
    context = browser.new_context(viewport=size, java_script_enabled=scripts)
    tab = context.new_page()
    tab.goto(f"file://{built_book}/book/sampling.html")
    if scripts:
        tab.wait_for_selector("html[data-ready]", state="attached")
    data = tab.locator(".explorable-data").first
    data.locator("summary").press("Enter")  # the page may still move under a pointer
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


def test_the_first_column_of_a_wide_table_stays_at_a_desk(open_page):
    tab = open_page("book/state-spaces.html")
    box = tab.locator(".pst-scrollable-table-container", has_text="LAMBADA").first
    box.evaluate("box => (box.scrollLeft = 100)")
    assert box.evaluate("box => box.scrollLeft") == 100
    assert box.evaluate(NUMBERS_IN_SIGHT)[0] == 0


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
    around = tab.locator(".bd-header-article, .bd-footer, .bd-sidebar-primary")
    assert around.count() == 3 and not any(one.is_visible() for one in around.all())
    name = tab.locator("#roofline .roofline-name").first
    ink = name.evaluate("one => getComputedStyle(one).getPropertyValue('--attention-text')")
    assert ink == wanted
    # Back on the screen it is dark again.
    tab.emulate_media(media="screen")
    tab.wait_for_function(
        f"([one, wanted]) => !({colours})(one).includes(wanted)",
        arg=[drawn.element_handle(), wanted],
    )


def output_is_whole(tab: Page) -> None:
    """At a desk, where the page has its contents beside it, another test asks."""
    assert tab.evaluate(CUT_LINES, "cell_output") == []


def code_fits(tab: Page) -> None:
    assert tab.locator(".cell_input pre").count() > 5
    assert tab.evaluate(CUT_LINES, "cell_input") == []


def columns_stay(tab: Page) -> None:
    """Those that are printed wider than a phone."""
    assert tab.evaluate(BROKEN_LINES) == []
    assert tab.evaluate(CUT_LINES, "cell_output") != [], "no table is wider, and nothing is shown"
    fits(tab)


def fits(tab: Page) -> None:
    assert tab.evaluate(WIDER) <= 0


def paper_cuts_no_table(tab: Page) -> None:
    tab.emulate_media(media="print")
    assert tab.evaluate(CUT_ON_PAPER) == []


# Widths of a page, and what is asked at each.
ASKED = {
    "relatives": {821: output_is_whole, 320: code_fits, 700: paper_cuts_no_table},
    "sampling": {821: output_is_whole, 375: columns_stay},
    "state-machines": {650: fits, 620: fits, 580: fits, 375: columns_stay},
    "kernels": {320: code_fits},
    "state-spaces": {700: paper_cuts_no_table},
}


@pytest.mark.parametrize("page", ASKED)
def test_what_is_wide_fits_its_room(open_page, page):
    tab = open_page(f"book/{page}.html", width=next(iter(ASKED[page])))
    for width, check in ASKED[page].items():
        tab.set_viewport_size({"width": width, "height": 900})
        tab.evaluate(NEXT_FRAME)
        check(tab)
