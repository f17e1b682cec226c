"""Names such as GPT-2 stay on one line: a browser may break a line after any hyphen."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

NAME = re.compile(r"\b([A-Z][A-Za-z]*-\d+)\b")
ELSEWHERE = (nodes.literal, nodes.literal_block, nodes.math, nodes.raw, nodes.title)


def keep_whole(tree: nodes.Element) -> None:
    """Put the names in `tree` into elements of their own, which book.css does not break."""
    for text in list(tree.findall(nodes.Text)):
        parts = NAME.split(text.astext())  # every second one is a name
        if len(parts) > 1 and not isinstance(text.parent, ELSEWHERE):
            whole = [
                nodes.inline("", part, classes=["whole-name"]) if i % 2 else nodes.Text(part)
                for i, part in enumerate(parts)
                if part
            ]
            text.parent.replace(text, whole)


class WholeNames(SphinxPostTransform):
    default_priority = 900  # when references have their texts
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        keep_whole(self.document)


def setup(app: Sphinx) -> dict:
    app.add_post_transform(WholeNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
