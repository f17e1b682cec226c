"""The book's own blocks, each a plain HTML element that works without a script.

- question: the question that a chapter opens with
- predict: a prediction to make, with a nested `reveal` that holds the answer
- reveal: a folded answer
- check: a question, and a list of answers to press, each of which says whether it is right
- aside: a folded digression, with its title as argument
- margin: a note beside the text; inside the text if there is no margin
"""

from __future__ import annotations

from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class HtmlElement(nodes.General, nodes.Element):
    """An HTML element: `tag`, `classes` and `attrs`; other formats get only its children."""


def visit_html(translator, node: HtmlElement) -> None:
    translator.body.append(translator.starttag(node, node["tag"], **node["attrs"]))


def depart_html(translator, node: HtmlElement) -> None:
    translator.body.append(f"</{node['tag']}>\n")


def pass_through(translator, node: HtmlElement) -> None:
    pass


def make(tag: str, *children: nodes.Node, css: str = "", **attrs: str) -> HtmlElement:
    return HtmlElement("", *children, tag=tag, classes=css.split(), attrs=attrs)


class Block(SphinxDirective):
    has_content = True
    final_argument_whitespace = True

    def body(self) -> list[nodes.Node]:
        self.assert_has_content()
        return self.parse_content_to_nodes()

    def title(self, default: str = "") -> list[nodes.Node]:
        text = self.arguments[0] if self.arguments else default
        inline, messages = self.state.inline_text(text, self.lineno)
        return inline + messages


class Question(Block):
    def run(self) -> list[nodes.Node]:
        label = make("p", nodes.Text("The question"), css="block-label")
        return [make("div", label, *self.body(), css="question")]


class Predict(Block):
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        label = make("p", *self.title("Predict, then reveal"), css="block-label")
        return [make("div", label, *self.body(), css="predict")]


class Folded(Block):
    """A native <details>: opens with the keyboard, and by a search in the page."""

    optional_arguments = 1
    css = ""
    default_title = ""

    def run(self) -> list[nodes.Node]:
        summary = make("summary", *self.title(self.default_title))
        inside = make("div", *self.body(), css="folded-body")
        return [make("details", summary, inside, css=f"folded {self.css}")]


class Reveal(Folded):
    css = "reveal"
    default_title = "Reveal the answer"


def choices(given: list[nodes.Node], right: int) -> list[HtmlElement]:
    """The answers of a list, each folded over its comment; number `right`, from 1, is right.

    Raises ValueError unless `given` is one list whose items are an answer and a comment.
    """
    items = list(given[0].children) if len(given) == 1 else []
    if not items or any(len(item.children) < 2 for item in items):
        raise ValueError("expected one list, of an answer and a paragraph about it in each item")
    if not 1 <= right <= len(items):
        raise ValueError(f"right: expected one of the {len(items)} answers, got {right}")
    made = []
    for i, item in enumerate(items, 1):
        answer, comment, *more = item.children
        comment.insert(0, [nodes.strong("", "Right." if i == right else "No."), nodes.Text(" ")])
        summary = make("summary", *answer.children)
        made.append(
            make("details", summary, make("div", comment, *more, css="folded-body"), css="folded")
        )
    return made


class Check(Block):
    required_arguments = 1
    option_spec: ClassVar = {"right": directives.positive_int}

    def run(self) -> list[nodes.Node]:
        label = make("p", nodes.Text("Test yourself"), css="block-label")
        try:
            answers = choices(self.body(), self.options.get("right", 0))
        except ValueError as error:
            raise self.error(f"check: {error}") from None
        return [make("div", label, make("p", *self.title()), *answers, css="check")]


class Aside(Folded):
    css = "digression"
    default_title = "Aside"


class Margin(Block):
    """A replacement of the theme's directive, whose script fails on a page without subheadings."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        title = [make("p", *self.title(), css="block-label")] if self.arguments else []
        return [make("aside", *title, *self.body(), css="margin-note", role="note")]


def setup(app: Sphinx) -> None:
    others = dict.fromkeys(("latex", "text", "man", "texinfo"), (pass_through, pass_through))
    app.add_node(HtmlElement, html=(visit_html, depart_html), **others)
    app.add_directive("question", Question)
    app.add_directive("predict", Predict)
    app.add_directive("reveal", Reveal)
    app.add_directive("check", Check)
    app.add_directive("aside", Aside, override=True)
    app.add_directive("margin", Margin, override=True)
