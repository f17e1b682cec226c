"""The reading time of a page, for its header: minutes for its prose, without code and tables.

Words are counted when a page is read, and Sphinx keeps the counts, so the first page can tell the
time of all numbered chapters too.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

WORDS_A_MINUTE = 200
WORD = re.compile(r"\S*\w\S*")
KEY = "words"  # in a page's metadata
LEFT_OUT = (
    nodes.Invisible,
    nodes.math,
    nodes.math_block,
    nodes.raw,
    nodes.table,
    nodes.literal_block,
)


def words(node: nodes.Node) -> int:
    """Words of a page's prose."""
    if isinstance(node, nodes.Text):
        return len(WORD.findall(node))
    return 0 if isinstance(node, LEFT_OUT) else sum(map(words, node.children))


def reading_time(count: int) -> str:
    """Time for so many words: minutes, or hours in halves."""
    minutes = -(-count // WORDS_A_MINUTE)
    if minutes < 60:
        return f"{minutes} min"
    return f"{round(minutes / 30) / 2:g} h"


def count_words(app: Sphinx, doctree: nodes.document) -> None:
    app.env.metadata[app.env.docname][KEY] = words(doctree)


def prepare(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    counts = {name: about.get(KEY, 0) for name, about in app.env.metadata.items()}
    numbered = [name for name, numbers in app.env.toc_secnumbers.items() if numbers]
    first = page == app.config.root_doc
    if first or page in numbered:
        context["reading_time"] = reading_time(counts[page])
    if first and numbered:
        context["book_time"] = reading_time(sum(counts[name] for name in {page, *numbered}))


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", count_words)
    app.connect("html-page-context", prepare)
