"""The fonts of formulas, reduced to the characters that the pages use.

A page loads a font as soon as one of its characters is near the screen, and on a phone the first
picture waits behind it. KaTeX's fonts have all of TeX's characters: 28 KB for a single blackboard
R.
"""

from __future__ import annotations

import logging
import re
from html import unescape
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

from .formulas import KATEX, PUBLISHED

logging.getLogger("fontTools").setLevel(logging.WARNING)  # it tells each table that it cuts

SET = 'class="katex-html"'
BEYOND = re.compile(r"</p>|</td>|</div>\n|<math")  # not inside a formula, but next to one
TAG = re.compile(r"<[^>]*>")
BESIDE = re.compile(r'\bdata-(?:before|after)="([^"]*)"')


def characters(html: str) -> set[str]:
    """Characters of a page's formulas and of the punctuation beside them; possibly more."""
    used: set[str] = set()
    for part in html.split(SET)[1:]:
        formula = BEYOND.split(part)[0]
        used.update(unescape(TAG.sub("", formula)), unescape("".join(BESIDE.findall(formula))))
    return used


def cut(font: Path, used: set[str], target: Path) -> None:
    """Write `font` to `target` with only the glyphs of these characters and their parts."""
    whole = TTFont(font, recalcTimestamp=False)  # the same pages have the same fonts
    options = Options()
    options.layout_features = ["*"]
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=[ord(character) for character in used])
    subsetter.subset(whole)
    whole.flavor = "woff2"
    whole.save(target)


def fit_fonts(site: Path) -> None:
    """Reduce the published fonts of formulas to the characters of the site's pages."""
    used: set[str] = set()
    for page in site.rglob("*.html"):
        used |= characters(page.read_text(encoding="utf-8"))
    for font in sorted((KATEX / "fonts").glob("*.woff2")):
        cut(font, used, site / PUBLISHED / "fonts" / font.name)
