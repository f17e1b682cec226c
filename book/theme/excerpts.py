"""Text for the search's excerpts: the words of all pages, without LaTeX.

They are in one script, `_static/excerpts.js`, which shell.js loads on the search page. A page
opened from a file may not read other pages, and would quote its own formulas as LaTeX.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path

from bs4 import BeautifulSoup, NavigableString, Tag
from sphinx.application import Sphinx

PUBLISHED = "_static/excerpts.js"
# Pictures, data and sources of formulas contain no words.
WORDLESS_TAGS = {"script", "style", "svg", "annotation", "template"}
WORDLESS_CLASSES = {"katex-html", "headerlink", "explorable-controls"}
INLINE = {"a", "abbr", "b", "code", "em", "i", "span", "strong", "sub", "sup"}


def words(html: str) -> str:
    """A page's main part as text, divided into sections with their ids."""
    main = BeautifulSoup(html, "html.parser").select_one("article.bd-article")
    if main is None:
        return ""
    return f'<div role="main">{" ".join("".join(_text(main)).split())}</div>'


def _text(element: Tag) -> Iterator[str]:
    """Text of an element, with its sections.

    One pass: to change the tree takes time that grows with the square of a table's rows.
    """
    for child in element.children:
        if not isinstance(child, Tag):
            if type(child) is NavigableString:  # no comment
                yield escape(child, quote=False)
        elif child.name == "section":
            yield f'<section id="{escape(str(child.get("id", "")))}">'
            yield from _text(child)
            yield "</section>"
        elif child.name not in WORDLESS_TAGS and not WORDLESS_CLASSES & set(child.get("class", ())):
            yield from _text(child)
            yield "" if child.name in INLINE else " "


def publish(app: Sphinx) -> None:
    site = Path(app.outdir)
    pages = {
        f"{page}.html": words((site / f"{page}.html").read_text(encoding="utf-8"))
        for page in sorted(app.env.found_docs)
    }
    script = f"window.BOOK_PAGES = {json.dumps(pages, ensure_ascii=False)};\n"
    (site / PUBLISHED).write_text(script, encoding="utf-8")
