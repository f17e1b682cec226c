"""Words of the text that set a figure or a stage; test_pages.py follows every one of them."""

import re

import pytest
from playwright.sync_api import expect

PINNED = re.compile(r"\bfigure-pinned\b")

# A figure is marked for a moment only, which a busy computer could miss.
REMEMBER_TOLD = """(figure) => new MutationObserver(() => {
    if (figure.classList.contains("figure-told")) figure.dataset.wasTold = "";
}).observe(figure, { attributeFilter: ["class"] })"""

# Two links of the chapter on the three modes.
LAUNCHES = "a.figure-view[href='#roofline:device=NVIDIA%20H100%20SXM&wait=3']"
SHORTER = "a.figure-view[href='#roofline:device=NVIDIA%20H100%20SXM&t=1024']"


# Every line of a pinned figure has its name, in the picture or in a line above it.
NAMED = """(figure) => {
    const { data, layout } = figure.querySelector(".js-plotly-plot");
    const listed = [...figure.querySelectorAll(".explorable-names li")]
        .filter((name) => name.checkVisibility()).map((name) => name.textContent);
    const said = [...listed, ...layout.annotations.map(({ text }) => text)];
    return data.length > 0 && data.every(({ name }) => said.includes(name));
}"""


@pytest.mark.parametrize("scrolls", [False, True])
def test_a_figure_that_is_moved_away_is_brought_back_unless_the_reader_went_on(open_page, scrolls):
    """What lies between may be laid out late, however busy the computer is."""
    tab = open_page("book/linear-self-attention.html", height=1600)
    link = tab.locator("a.figure-view[href^='#taylor-error:']").first
    figure = tab.locator("#taylor-error")
    # What is laid out late between the two would push words at the edge off the screen.
    link.evaluate("""link => {
        link.style.scrollMarginBottom = "200px";
        link.scrollIntoView({ block: "end" });
    }""")
    link.press("Enter")
    expect(figure).not_to_have_class(PINNED)
    if scrolls:
        tab.mouse.wheel(0, 1)
    tab.wait_for_timeout(500)
    # The words stay where they are.
    figure.evaluate("""figure => {
        figure.style.marginBottom = "2000px";
        scrollBy(0, 2000);
    }""")
    if scrolls:
        tab.wait_for_timeout(500)
        expect(figure).not_to_have_class(PINNED)
    else:
        expect(figure).to_have_class(PINNED)


# Below what a pinned figure takes; words about other figures, which these may bring, say nothing.
LOW = """(link) => {
    for (const other of document.querySelectorAll("a.figure-view"))
        if (other !== link) other.classList.remove("figure-view");
    scrollBy({ top: link.getBoundingClientRect().top - 0.6 * innerHeight, behavior: "instant" });
}"""


@pytest.mark.parametrize("width", [1280, 375])
def test_words_and_the_figure_that_they_set_are_in_sight_together(open_page, width):
    """Nothing scrolls, the figure covers no word of the sentence, and it can be left again.

    On a wide screen it stands in the margin, on a phone in the top third.
    """
    tab = open_page("book/index.html", width=width, height=800)
    link = tab.locator("a.figure-view[href^='#headline:']").last
    figure = tab.locator("#headline")
    # As far from the words as figures come to be in a chapter.
    figure.evaluate("figure => (figure.style.marginBottom = '150vh')")
    link.evaluate(LOW)
    before = link.bounding_box()
    link.press("Enter")
    expect(figure).to_have_class(PINNED)
    words, box = link.bounding_box(), figure.bounding_box()
    # Boxes have heights of fractions of a pixel, and a page scrolls by whole ones.
    assert words == pytest.approx(before, abs=1)
    right, low = box["x"] + box["width"], box["y"] + box["height"]
    # In the margin, unless a note stands there.
    if tab.locator("body.figure-beside").count():
        assert width == 1280
        text = tab.locator("article.bd-article").bounding_box()
        assert box["x"] >= text["x"] + text["width"] and right <= width
    else:
        assert low <= words["y"]
        assert box["height"] <= 300
    assert box["y"] >= 0
    assert box["y"] + box["height"] <= 800
    assert figure.locator(".explorable-frame").bounding_box()["height"] > 140
    # What its controls would say of the lines stands in the picture or above it.
    drawn = figure.locator(".js-plotly-plot")
    expect(drawn).to_be_attached()
    tab.wait_for_function(NAMED, arg=figure.element_handle())
    tab.keyboard.press("Escape")
    expect(figure).not_to_have_class(PINNED)
    expect(link).to_be_focused()
    link.press("Enter")
    figure.get_by_role("button", name="Back to the text").click()
    expect(figure).not_to_have_class(PINNED)
    expect(link).to_be_in_viewport()
    expect(link).to_be_focused()
    link.press("Enter")
    figure.get_by_role("button", name="Go to the figure").click()
    expect(figure.locator(".explorable-frame")).to_be_in_viewport()
    figure.get_by_role("button", name="Back to the text").click()
    expect(link).to_be_in_viewport()
    expect(link).to_be_focused()


def test_a_note_that_comes_into_the_margin_takes_the_place_and_not_the_figure(open_page):
    tab = open_page("book/index.html", height=800)
    tab.evaluate(
        "document.querySelectorAll('.margin-note, .wide, .tag_wide').forEach(n => n.remove())"
    )
    link = tab.locator("a.figure-view[href^='#headline:']").last
    figure = tab.locator("#headline")
    figure.evaluate("figure => (figure.style.marginBottom = '150vh')")
    link.evaluate(LOW)
    expect(tab.locator("body.margin-in-use")).not_to_be_attached()
    link.press("Enter")
    expect(tab.locator("body.figure-beside")).to_be_attached()
    tab.evaluate("document.body.classList.add('margin-in-use')")
    expect(tab.locator("body.figure-beside")).not_to_be_attached()
    expect(figure).to_have_class(PINNED)
    assert figure.bounding_box()["height"] <= 300
    expect(link).to_be_in_viewport()


def test_the_mark_on_a_figure_goes_by_itself(set_stage):
    tab, target = set_stage("roofline", prose=True)
    target.evaluate(REMEMBER_TOLD)
    for motion in ("no-preference", "reduce"):
        tab.emulate_media(reduced_motion=motion)
        tab.locator(LAUNCHES).click()
        expect(target).to_have_attribute("data-was-told", "")
        expect(target).not_to_have_class(re.compile(r"\bfigure-told\b"))
        target.evaluate("figure => figure.removeAttribute('data-was-told')")
    tab.emulate_media(reduced_motion="no-preference")


def test_a_second_press_undoes_what_the_reader_has_changed_since(open_page):
    tab = open_page("book/state-machines.html")
    link = tab.locator("a.figure-view[href='#diagram-machines:run=U']")
    arrows = tab.locator("#diagram-machines .diagram-arrow")
    unroll, take_last = (arrows.filter(has_text=text) for text in ("unroll", "take last"))
    link.click()
    expect(unroll).to_have_attribute("aria-pressed", "true")
    take_last.click()
    expect(unroll).to_have_attribute("aria-pressed", "false")
    link.click()
    expect(unroll).to_have_attribute("aria-pressed", "true")


def test_what_a_link_does_not_name_is_as_it_was_at_first(set_stage):
    tab, _ = set_stage("roofline", prose=True)
    tab.locator(LAUNCHES).click()
    expect(tab.locator("#roofline-step")).to_have_value("3")
    tab.locator(SHORTER).click()
    expect(tab.locator("#roofline-step")).to_have_value("0")
    # As an addition to the way through the pages: going back sets the figure back. The URL changes
    # first, and the page hears of it later: in between, a timer may write.
    tab.evaluate("addEventListener('popstate', FigureView.write, { once: true })")
    tab.go_back()
    expect(tab.locator("#roofline-step")).to_have_value("3")
    assert tab.evaluate("location.hash") in LAUNCHES


def test_a_link_is_heard_and_leaves_its_words_alone(set_stage):
    tab, _ = set_stage("roofline", prose=True)
    link = tab.locator(SHORTER)
    link.press("Enter")
    expect(tab.get_by_text("The figure shows: shorter text")).to_be_attached()
    expect(link).to_be_focused()
