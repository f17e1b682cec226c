"""Definitions, results and proofs: sphinx-proof with the word this book uses.

sphinx-proof has theorems and propositions; the book has *results*. Its kinds
are two dictionaries, so the new one is added before the extension reads them.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx_proof.directive import ElementDirective
from sphinx_proof.nodes import NODE_TYPES, proof_node
from sphinx_proof.proof_type import PROOF_TYPES

SHARED_IDS = {"proof", "proof-content"}


class result_node(nodes.Admonition, nodes.Element):
    pass


class ResultDirective(ElementDirective):
    name = "result"


def drop_shared_ids(app: Sphinx, doctree: nodes.document) -> None:
    """sphinx-proof gives every statement's body one id; ids must be unique."""
    kinds = (*NODE_TYPES.values(), proof_node)
    for statement in doctree.findall(lambda node: isinstance(node, kinds)):
        for node in statement.findall(nodes.Element):
            node["ids"] = [name for name in node["ids"] if name not in SHARED_IDS]


def setup(app: Sphinx) -> dict:
    NODE_TYPES["result"] = result_node
    PROOF_TYPES["result"] = ResultDirective
    app.setup_extension("sphinx_proof")
    app.connect("doctree-read", drop_shared_ids)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
