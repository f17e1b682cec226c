"""The pages of the built book, as their files say them."""

import re
from functools import cache
from pathlib import Path

import yaml
from bs4 import BeautifulSoup
from playwright.sync_api import Page

from tests.browser.accessibility import grave_violations, without_repetition

ROOT = Path(__file__).resolve().parents[2]
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
CHAPTERS = [
    TOC["root"],
    *(chapter["file"] for part in TOC.get("parts", [TOC]) for chapter in part.get("chapters", [])),
]
CHAPTER_PAGES = [f"{name}.html" for name in CHAPTERS]
PAGES = [*CHAPTER_PAGES, "search.html"]
# Boxes of a cell, of the class that is handed over, whose lines go on beyond their right edge.
CUT_LINES = """(box) => [...document.querySelectorAll(`article .${box} pre`)]
    .filter((one) => one.clientWidth && one.scrollWidth > one.clientWidth + 1)
    .map((one) => one.textContent.slice(0, 60))"""
WIDER = "() => document.documentElement.scrollWidth - innerWidth"
FORMULA = '<span class="katex">'
SPAN = re.compile(rf"{FORMULA}|<span\b|</span>")
# WCAG 2.2, 1.4.12. On the smallest screen, so that a page is laid out once for both.
SPACED = """@media (max-width: 320px) { * { line-height: 1.5 !important;
    letter-spacing: 0.12em !important; word-spacing: 0.16em !important }
    p { margin-bottom: 2em !important } }"""
# A sheet that a page's policy does not stop.
ADD_SHEET = """(text) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    document.adoptedStyleSheets.push(sheet);
}"""
# Each press lays out the page, and formulas are most of one. What is far away is laid out too.
LEAVE_OUT_PROSE = """(() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`.bd-article section > :not(section, :has(figure.explorable, [data-stage]),
        figure.explorable, [data-stage], [data-stage] *) { display: none !important }
        .bd-article section > * { content-visibility: visible !important }`);
    document.adoptedStyleSheets.push(sheet);
})()"""
OUTSIDE = """() => [...document.querySelectorAll(".figure-choice")]
    .filter((one) => one.getBoundingClientRect().right > innerWidth)
    .map((one) => one.textContent)"""
# What a figure's controls should show by what is said of them, and do not.
SHOWN = """(figure, said) => said.split(":")[1].split("&").filter((pair) => {
    const [name, values] = pair.split("=");
    const control = figure.querySelector(`[data-control="${name}"]`);
    if (!control) return figure.matches(".explorable"); // a stage says so itself
    const list = control.querySelector("select");
    const chosen = [...control.querySelectorAll("input:checked")].map((input) => input.value);
    return values !== (list ? list.value : chosen.join(","));
})"""
# Half of a figure's picture at least, or of what the screen can hold, is below the header; or the
# figure is pinned beside the words.
IN_SIGHT = """figure => {
    const held = figure.getBoundingClientRect();
    if (figure.classList.contains("figure-pinned"))
        return held.top >= 0 && held.bottom <= innerHeight && held.height > 150;
    const picture = figure.querySelector(".explorable-frame, .stage") ?? figure;
    const { top, bottom, height } = picture.getBoundingClientRect();
    const head = document.querySelector(".bd-header-article")?.getBoundingClientRect().bottom ?? 0;
    const seen = Math.min(bottom, innerHeight) - Math.max(top, head);
    return seen >= 0.5 * Math.min(height, innerHeight - head);
}"""

STICKING_OUT = """() => document.documentElement.scrollWidth <= innerWidth ? [] :
    [...document.querySelectorAll("main *")]
        .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
        .map((e) => e.tagName + "." + e.className).slice(0, 8)"""
CUT_FORMULAS = """() => [...document.querySelectorAll("main .katex-display")]
    .filter((e) => e.scrollWidth > e.clientWidth + 1)
    .map((e) => e.querySelector("annotation").textContent)"""

# What is wrong with the links of a page, one after the other, as they stand in the text.
FOLLOW_ALL = f"""async () => {{
    const inSight = {IN_SIGHT}, notShown = {SHOWN}, wrong = [];
    const patiently = async (holds) => {{
        for (const end = performance.now() + 20000; !holds() && performance.now() < end;)
            await new Promise(requestAnimationFrame);
        return holds();
    }};
    for (const fold of document.querySelectorAll("details")) fold.open = true;
    for (const link of document.querySelectorAll("a.figure-view")) {{
        const said = decodeURIComponent(link.hash.slice(1));
        const figure = document.getElementById(said.split(":")[0]);
        const has = (mark) => figure.classList.contains(mark);
        const check = (holds, what) => holds || wrong.push(`${{said}}: ${{what}}`);
        figure.classList.remove("figure-told");
        link.focus();
        check(has("figure-meant"), "is not meant");
        link.click();
        check(has("figure-told"), "is not told");
        check(await patiently(() => inSight(figure)), "is not in sight");
        link.blur();
        check(!has("figure-meant"), "is still meant");
        check(!notShown(figure, said).length, notShown(figure, said));
    }}
    return wrong;
}}"""


@cache
def soup_of(book: Path, page: str) -> BeautifulSoup:
    """A page, parsed once for all tests of a process: none of them may change it.

    Formulas are empty: their parts are most of a page's elements, and take most of the time.
    """
    text = (book / page).read_text(encoding="utf-8")
    return BeautifulSoup(without_formulas(text), "html.parser")


def without_formulas(html: str) -> str:
    kept, at, depth = [], 0, 0
    for tag in SPAN.finditer(html):
        if depth:
            depth += 1 if tag[0] != "</span>" else -1
            if not depth:
                at = tag.start()
        elif tag[0] == FORMULA:
            kept.append(html[at : tag.end()])
            depth = 1
    return "".join([*kept, html[at:]])


def asks(page: str) -> bool:
    if page not in CHAPTER_PAGES:
        return False
    text = (ROOT / page).with_suffix(".md").read_text(encoding="utf-8")
    return "{question}" in text and ("{stage}" in text or "figure(" in text)


def assert_whole_before_a_touch(tab: Page, page: str, theme: str) -> None:
    """A page in its place and its theme, as wide as the screen, and accessible."""
    assert tab.evaluate("document.documentElement.dataset.theme") == theme
    if asks(page):
        first = tab.locator("[data-stage], figure.explorable").first
        assert first.evaluate("(it) => it.getBoundingClientRect().top < innerHeight")
    assert not tab.evaluate(STICKING_OUT), "the page scrolls sideways"
    assert not tab.evaluate("window.FigureView?.write(), location.hash"), "nobody has set anything"
    # Measuring lays out what is far away, and that asks for more fonts.
    tab.wait_for_selector("html[data-measured]", state="attached")
    tab.evaluate("document.fonts.ready.then(() => true)")
    # Every other page is looked at in the other theme: what they share is in all of them.
    if PAGES.index(page) % 2 == (theme == "dark"):
        # Of one page the formulas are looked at too.
        with without_repetition(tab, formulas=page == "book/notation.html"):
            assert not grave_violations(tab)


def leave_out_prose(tab: Page) -> None:
    """Figures and stages stay, here and in what this tab loads next."""
    tab.add_init_script(LEAVE_OUT_PROSE)
    tab.evaluate(LEAVE_OUT_PROSE)


def assert_fits_with_a_readers_spacing(tab: Page) -> None:
    """On the smallest screen, folded and unfolded."""
    tab.evaluate(ADD_SHEET, SPACED)
    tab.set_viewport_size({"width": 320, "height": 900})
    spaced = tab.evaluate("getComputedStyle(document.querySelector('p')).wordSpacing")
    assert spaced.endswith("px") and spaced != "0px"
    assert tab.evaluate(WIDER) <= 0, "with wide spacing the page scrolls sideways"
    tab.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    assert tab.evaluate(WIDER) <= 0, "with wide spacing what is unfolded scrolls sideways"
    assert tab.evaluate(OUTSIDE) == []


def sets_figures(page: str) -> bool:
    """Whether words of a chapter set its figures."""
    return "{view}`" in (ROOT / page).with_suffix(".md").read_text(encoding="utf-8")


def assert_every_link_sets_its_figure(tab: Page) -> None:
    """And brings it into sight. A stage says in the console what it cannot show."""
    assert tab.locator("a.figure-view").count()
    tab.keyboard.press("Tab")  # from here on focus counts as the keyboard's
    assert tab.evaluate(FOLLOW_ALL) == []
