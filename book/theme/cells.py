"""Cells of tables without an element inside: the list of runs would have 5,000 more."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform


def unwrap_cells(tree: nodes.Element) -> None:
    """Put the words of a cell's only paragraph into the cell itself."""
    for cell in tree.findall(nodes.entry):
        if len(cell) == 1 and isinstance(words := cell[0], nodes.paragraph):
            cell.replace(words, words.children)


class Cells(SphinxPostTransform):
    default_priority = 910  # after other transforms have found their paragraphs
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        unwrap_cells(self.document)


def setup(app: Sphinx) -> dict:
    app.add_post_transform(Cells)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
