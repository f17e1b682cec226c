"""The pages of the built book, as their files say them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml
from bs4 import BeautifulSoup

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


@cache
def soup_of(book: Path, page: str) -> BeautifulSoup:
    """A page, parsed once for all tests of a process: none of them may change it."""
    return BeautifulSoup((book / page).read_text(encoding="utf-8"), "html.parser")
