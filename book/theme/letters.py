"""A row of letters above a glossary; each leads to the first term that begins with it."""

from __future__ import annotations

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from .directives import make


def row(glossary: addnodes.glossary) -> nodes.Element:
    """Links to the first term of each letter. Letters without a term are left out."""
    firsts: dict[str, str] = {}
    for term in glossary.findall(nodes.term):
        firsts.setdefault(term.astext()[0].upper(), term["ids"][0])
    links = [make("a", nodes.Text(letter), href=f"#{to}") for letter, to in firsts.items()]
    return make("nav", *links, css="glossary-letters", **{"aria-label": "Letters"})


def add_row(app: Sphinx, doctree: nodes.document, page: str) -> None:
    for glossary in list(doctree.findall(addnodes.glossary)):
        glossary.parent.insert(glossary.parent.index(glossary), row(glossary))


def setup(app: Sphinx) -> None:
    app.connect("doctree-resolved", add_row)
