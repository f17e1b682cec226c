"""Every stage plays and is kept in the address; test_pages.py has it mount and step."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.pages import soup_of
from tests.browser.stages import BY_PAGE, PLACES, line

pytestmark = pytest.mark.browser


def kept_in_the_address(page: str) -> list[str]:
    return [
        name
        for name in BY_PAGE[page]
        # A bet that was placed stays in the reader's browser.
        if name not in ("opener", "sampler", "surgery", "look-inside", "browser-speed", "bet")
    ]


# What a reader could set: every choice its last, every scale its least, one step back.
SET = """(frame) => {
    const tell = (node, ...types) => {
        for (const type of types) node.dispatchEvent(new Event(type, { bubbles: true }));
    };
    frame.querySelectorAll("input[type=range]").forEach((input) => {
        input.value = input.min;
        tell(input, "input");
    });
    frame.querySelectorAll("select").forEach((list) => {
        list.value = [...list.options].at(-1).value;
        tell(list, "input", "change");
    });
    for (const set of frame.querySelectorAll("fieldset")) {
        [...set.querySelectorAll("input")].at(-1).click();
    }
    frame.querySelector(".stage-buttons button, .diagram-arrow, .causality button")?.click();
}"""


# Shapes that no rule of the style sheets has coloured.
UNCOLOURED = """(frame) => [...frame.querySelectorAll(".stage svg :is(rect, circle)")]
    .filter((node) => getComputedStyle(node).fill === "rgb(0, 0, 0)"
        && getComputedStyle(node).visibility === "visible" && node.getBoundingClientRect().width)
    .map((node) => node.outerHTML.slice(0, 120)).slice(0, 3)"""


@pytest.mark.parametrize("page", [page for page in BY_PAGE if kept_in_the_address(page)])
def test_what_a_reader_sets_is_in_the_address_and_comes_back(open_page, page):
    tab, names = open_page(page, reduced_motion="reduce"), kept_in_the_address(page)
    for name in names:
        frame = tab.locator(f"#{name}")
        frame.scroll_into_view_if_needed()
        assert not frame.evaluate(UNCOLOURED), name
        frame.evaluate(SET)
    for name in names:
        expect(tab).to_have_url(re.compile(f"[#;]{name}:"))
    # A stage that another one moved is there already, and what was set in it since comes later.
    tab.evaluate("FigureView.write()")
    there = tab.url.partition("#")[2]
    again = open_page(f"{page}#{there}", reduced_motion="reduce")
    for name in names:
        for one in (tab, again):  # trained keys are loaded
            expect(one.locator(f"#{name}").get_by_text("Loading")).to_have_count(0)
        assert again.locator(f"#{name}").inner_text() == tab.locator(f"#{name}").inner_text()


def test_the_address_keeps_figures_and_stages_side_by_side(open_page):
    tab = open_page("book/three-modes.html", reduced_motion="reduce")
    tab.locator("#modes").get_by_role("button", name="Back").click()
    expect(tab).to_have_url(re.compile("#modes:step="))
    figure = tab.locator("figure.explorable").first
    figure.locator(".figure-choice:has(input:not(:checked):not(:disabled))").first.click()
    expect(tab).to_have_url(re.compile(f"[#;]{figure.get_attribute('id')}:"))
    assert re.search("[#;]modes:step=", tab.url)


@pytest.mark.parametrize("name", PLACES)
def test_without_javascript_the_caption_says_it(built_book, name):
    page = soup_of(built_book, PLACES[name])
    frame = page.find(id=name)
    assert "JavaScript" in frame.noscript.get_text()
    assert frame.noscript.img["alt"] and "Loading" not in frame.noscript.img["alt"]
    assert len(frame.select_one(".stage-caption").get_text()) > 80
    assert not frame.select_one(".stage").get_text(strip=True)


def test_play_runs_and_pauses_and_is_absent_where_motion_is_unwelcome(open_stage):
    tab, frame = open_stage("machines", stopped=True)
    frame.get_by_role("button", name="Start over").click()
    start = line(frame)
    frame.get_by_role("button", name="Play").click()
    tab.clock.run_for(1800)
    frame.get_by_role("button", name="Pause").click()
    paused = line(frame)
    assert paused != start
    tab.clock.run_for(5000)
    assert line(frame) == paused
    _, calm = open_stage("machines", reduced_motion="reduce")
    assert calm.get_by_role("button", name="Play").count() == 0


# The pictures that a newcomer was shown: each says what it shows, before all else.
SHOWN_FIRST = (
    "race", "modes", "browser-speed", "ribbon", "sampler", "surgery", "play", "memory", "opener",
    "ratios", "convolution", "roofline", "machines",
)  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_the_message_stands_under_the_title(built_book, name):
    frame = soup_of(built_book, PLACES[name]).find(id=name)
    message, title = frame.select_one(".stage-message"), frame.select_one(".stage-title")
    assert message or name not in SHOWN_FIRST
    if message:
        assert message.find_previous_sibling() == title
        assert not frame.select_one(".stage-caption").get_text().startswith(message.get_text())
