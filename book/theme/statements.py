"""Definitions, results and proofs: sphinx-proof, with this book's words.

sphinx-proof knows theorems and propositions; the book has *results*. The extension has its kinds in
two dictionaries and its directives in a third. The book's own are added before it sets itself up.
sphinx-proof writes "Proof." into the first line of a proof's source. That fails if the proof opens
with an equation or a list; the directive here does not change the source.
"""

from __future__ import annotations

from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx_proof.directive import ElementDirective
from sphinx_proof.domain import ProofDomain
from sphinx_proof.nodes import NODE_TYPES
from sphinx_proof.proof_type import PROOF_TYPES

from .directives import make


class ResultNode(nodes.Admonition, nodes.Element):
    pass


class ResultDirective(ElementDirective):
    name = "result"


class ProofDirective(SphinxDirective):
    """A proof; with `:folded:` behind a line that the reader opens."""

    has_content = True
    option_spec: ClassVar = {"folded": directives.flag}

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        body = self.parse_content_to_nodes()
        if "folded" in self.options:
            inside = make("div", *body, css="folded-body")
            summary = make("summary", nodes.Text("Proof"))
            return [make("details", summary, inside, css="folded proof-text")]
        if not isinstance(body[0], nodes.paragraph):
            body.insert(0, nodes.paragraph())
        body[0].insert(0, nodes.emphasis("", "Proof."))
        body[0].insert(1, nodes.Text(" "))
        return [make("div", *body, css="proof-text")]


def unwrap_sections(app: Sphinx, doctree: nodes.document) -> None:
    """Make the body of a statement a block.

    sphinx-proof makes it a section, all with one id: ids must be unique, and a statement does not
    belong in the table of contents.
    """
    kinds = tuple(NODE_TYPES.values())
    for statement in doctree.findall(lambda node: isinstance(node, kinds)):
        for section in list(statement.findall(nodes.section)):
            section["ids"] = []
            section.replace_self(make("div", *section.children, css="statement-body"))


def nothing_to_merge(domain: ProofDomain, pages: set[str], other: dict) -> None:
    """Statements of pages read in parallel are in the environment, not in the domain."""


def setup(app: Sphinx) -> None:
    NODE_TYPES["result"] = ResultNode
    PROOF_TYPES["result"] = ResultDirective
    ProofDomain.directives |= {"result": ResultDirective, "proof": ProofDirective}
    ProofDomain.merge_domaindata = nothing_to_merge
    app.setup_extension("sphinx_proof")
    app.connect("doctree-read", unwrap_sections)
