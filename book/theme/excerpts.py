"""Text for the search's excerpts: the words of all pages, without LaTeX.

They are in one script, `_static/excerpts.js`, which shell.js loads on the search page. A page
opened from a file may not read other pages, and would quote its own formulas as LaTeX.
"""

from __future__ import annotations

import json
from pathlib import Path

from bs4 import BeautifulSoup
from sphinx.application import Sphinx

PUBLISHED = "_static/excerpts.js"
# Pictures, data and sources of formulas contain no words.
WORDLESS = (
    "script, style, svg, .katex-html, annotation, .headerlink, template, .explorable-controls"
)
INLINE = {"a", "abbr", "b", "code", "em", "i", "span", "strong", "sub", "sup"}


def words(html: str) -> str:
    """A page's main part as text, divided into sections with their ids."""
    main = BeautifulSoup(html, "html.parser").select_one("article.bd-article")
    if main is None:
        return ""
    for tag in main.select(WORDLESS):
        tag.decompose()
    for tag in main.find_all(True):
        if tag.name == "section":
            tag.attrs = {"id": tag.get("id", "")}
        else:
            if tag.name not in INLINE:
                tag.insert_after(" ")
            tag.unwrap()
    return f'<div role="main">{" ".join(main.decode_contents().split())}</div>'


def publish(app: Sphinx, error: Exception | None) -> None:
    if error or app.builder.format != "html":
        return
    site = Path(app.outdir)
    pages = {
        f"{page}.html": words((site / f"{page}.html").read_text(encoding="utf-8"))
        for page in sorted(app.env.found_docs)
    }
    script = f"window.BOOK_PAGES = {json.dumps(pages, ensure_ascii=False)};\n"
    (site / PUBLISHED).write_text(script, encoding="utf-8")


def setup(app: Sphinx) -> dict:
    app.connect("build-finished", publish, priority=955)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
