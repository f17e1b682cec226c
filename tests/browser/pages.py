"""The pages of the built book, as their files say them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml
from bs4 import BeautifulSoup
from playwright.sync_api import Page

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
# WCAG 2.2, 1.4.12.
SPACED = """* { line-height: 1.5 !important; letter-spacing: 0.12em !important;
    word-spacing: 0.16em !important } p { margin-bottom: 2em !important }"""
# A sheet that a page's policy does not stop.
ADD_SHEET = """(text) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    document.adoptedStyleSheets.push(sheet);
}"""
OUTSIDE = """() => [...document.querySelectorAll(".figure-choice")]
    .filter((one) => one.getBoundingClientRect().right > innerWidth)
    .map((one) => one.textContent)"""


@cache
def soup_of(book: Path, page: str) -> BeautifulSoup:
    """A page, parsed once for all tests of a process: none of them may change it."""
    return BeautifulSoup((book / page).read_text(encoding="utf-8"), "html.parser")


def assert_fits_with_a_readers_spacing(tab: Page) -> None:
    """On the smallest screen, folded and unfolded."""
    tab.set_viewport_size({"width": 320, "height": 900})
    tab.evaluate(ADD_SHEET, SPACED)
    spaced = tab.evaluate("getComputedStyle(document.querySelector('p')).wordSpacing")
    assert spaced.endswith("px") and spaced != "0px"
    assert tab.evaluate(WIDER) <= 0, "with wide spacing the page scrolls sideways"
    tab.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true")
    assert tab.evaluate(WIDER) <= 0, "with wide spacing what is unfolded scrolls sideways"
    assert tab.evaluate(OUTSIDE) == []
