"""Text that stays on one line: GPT-2, a number with its spread, a formula with its comma.

A browser may break a line after any hyphen, and on either side of a formula, whose parts are boxes.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

NAME = re.compile(r"\b([A-Z][A-Za-z]*-\d+)\b")
ELSEWHERE = (nodes.literal, nodes.literal_block, nodes.math, nodes.raw, nodes.title)
SPREAD = re.compile(r"(?<=[\d%]) ± (?=\d)")
CLOSING = re.compile(r"^[,.;:!?)\]’”…]+")
OPENING = re.compile(r"[(\[“‘]+$")


def keep_names(tree: nodes.Element) -> None:
    """Put the names in `tree` into elements of their own, which book.css does not break."""
    for text in list(tree.findall(nodes.Text)):
        parts = NAME.split(text.astext())  # every second one is a name
        if len(parts) > 1 and not isinstance(text.parent, ELSEWHERE):
            whole = [
                nodes.inline("", part, classes=["unbroken"]) if i % 2 else nodes.Text(part)
                for i, part in enumerate(parts)
                if part
            ]
            text.parent.replace(text, whole)


def keep_spreads(tree: nodes.Element) -> None:
    """Write 0.41 ± 0.39 with non-breaking spaces."""
    for text in list(tree.findall(nodes.Text)):
        if SPREAD.search(text) and not isinstance(text.parent, ELSEWHERE):
            unbroken = SPREAD.sub("\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}", text.astext())
            text.parent.replace(text, nodes.Text(unbroken))


def keep_punctuation(tree: nodes.Element) -> None:
    """Move punctuation beside a formula from the text to the formula.

    formulas.py writes its attributes `before` and `after`.
    """
    for formula in tree.findall(nodes.math):
        at = formula.parent.index(formula)
        for name, i, edge in (("before", at - 1, OPENING), ("after", at + 1, CLOSING)):
            beside = formula.parent.children[i] if 0 <= i < len(formula.parent) else None
            if isinstance(beside, nodes.Text) and (match := edge.search(beside.astext())):
                formula[name] = match[0]
                # `replace` would take the first equal text, which may be another full stop.
                formula.parent[i] = nodes.Text(edge.sub("", beside.astext()))


class Unbroken(SphinxPostTransform):
    default_priority = 900  # after references have their texts
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        keep_names(self.document)
        keep_spreads(self.document)
        keep_punctuation(self.document)


def setup(app: Sphinx) -> None:
    app.add_post_transform(Unbroken)
