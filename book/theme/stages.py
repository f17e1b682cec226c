"""Stages: titled frames with a picture to step through, each filled by a small script.

    :::{stage} machines
    :title: Four machines read one text
    :part: ...          optional, passed to the script
    :needs: costs       optional, other scripts that it uses, explorable-… of the charts among them
    :room: 442 439      optional, px of space for what it adds, on a phone and at a desk

    **The message.** The caption: what to see, for all readers; without JavaScript there is
    nothing else.
    :::

Bold words at the beginning of a caption are the stage's message. They are placed under its title.

The script is book/stages/<name>.js; stage.js, which all share, is loaded before it. The frame names
them, and head.py makes the page load them.

Also links in the text that set a figure or a stage of their page, as its reader could:

    Now count in {view}`updates <headline:x=update&context=256>`.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import ReferenceRole

from .directives import Block, make

SCRIPTS = Path(__file__).resolve().parents[1] / "stages"
CHARTS = SCRIPTS.with_name("explorable")
STILLS = SCRIPTS / "stills"
SIZE = re.compile(r'width="(\d+)" height="(\d+)"')
TITLE = re.compile(r"<title>([^<]*)</title>")


def room(heights: str) -> str:
    """Attribute that keeps space for what the script adds, so that nothing below a stage moves.

    heights: two, in px: on a page of 412 px and on a wide one; stage.css takes one of them.
    Raises ValueError.
    """
    narrow, wide = map(int, heights.split())
    return f' style="--narrow:{narrow};--wide:{wide}"'


class Stage(Block):
    required_arguments = 1
    option_spec: ClassVar = {
        "title": directives.unchanged_required,
        "part": directives.unchanged_required,
        "needs": directives.unchanged_required,
        "room": room,
    }

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        needed = ("stage", *self.options.get("needs", "").split(), name)
        for script in needed:
            folder = CHARTS if script.startswith("explorable-") else SCRIPTS
            if not (folder / f"{script}.js").is_file():
                raise self.error(f"stage: no script {script}.js in book/{folder.name}")
        anchor = nodes.make_id("-".join(filter(None, (name, self.options.get("part")))))
        about = {"data-stage": name, "data-scripts": " ".join(dict.fromkeys(needed))}
        if "part" in self.options:
            about["data-part"] = self.options["part"]
        if (still := STILLS / f"{anchor}.svg").is_file():
            self.env.note_dependency(str(still))
        title = nodes.Text(self.options["title"])
        message, caption = parted(self.body())
        frame = make(
            "div",
            make("p", title, css="stage-title", ids=[f"{anchor}-title"]),
            *message,
            _html(without_script(anchor)),
            _html(f'<div class="stage"{self.options.get("room", "")}></div>'),
            make("div", *caption, css="stage-caption"),
            css="stage-frame figure-frame",
            ids=[anchor],
            role="group",
            **{"aria-labelledby": f"{anchor}-title"},
            **about,
        )
        return [frame]


class View(ReferenceRole):
    """A link that sets a figure; figure-view.js reads it. Other formats show only its words."""

    TARGET = re.compile(r"[a-z][a-z0-9-]*:([a-z]+=[^&=;]+(&[a-z]+=[^&=;]+)*)?")
    SPOKEN = '<span class="visually-hidden"> (sets the figure)</span>'

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        if not self.has_explicit_title or not self.TARGET.fullmatch(self.target):
            message = self.inliner.reporter.error(
                f"view: expected words <figure:control=value&…>, got {self.text!r}",
                line=self.lineno,
            )
            return [], [message]
        address = escape(quote(self.target, safe=":,&="))
        opening = f'<a class="figure-view" href="#{address}">'
        return [_html(opening), nodes.Text(self.title), _html(f"{self.SPOKEN}</a>")], []


def parted(body: list[nodes.Node]) -> tuple[list[nodes.Node], list[nodes.Node]]:
    """The bold words at the beginning of a caption, as a paragraph of their own, and the rest."""
    first, *others = body
    # MyST begins some paragraphs with an empty text.
    inside = [one for one in first.children if one != nodes.Text("")]
    if not (isinstance(first, nodes.paragraph) and inside and isinstance(inside[0], nodes.strong)):
        return [], body
    bold, *rest = inside
    if rest and isinstance(rest[0], nodes.Text):
        rest[0] = rest[0].lstrip()
    first.clear()
    first += rest
    return [make("p", bold, css="stage-message")], [first, *others] if rest else others


def without_script(name: str) -> str:
    """The still picture that replaces a stage without scripts, if there is one."""
    still = STILLS / f"{name}.svg"
    if not still.is_file():
        note = "The steps need JavaScript; the text below says what they show."
        return f'<noscript><p class="stage-note">{note}</p></noscript>'
    svg = still.read_text(encoding="utf-8")
    width, height = SIZE.search(svg).groups()
    title = TITLE.search(svg)[1].replace('"', "&quot;")
    return (
        '<noscript><p class="stage-note">The steps need JavaScript; this is one of them.</p>'
        f'<img class="stage-still" src="../_static/stages/stills/{name}.svg" alt="{title}"'
        f' width="{width}" height="{height}" /></noscript>'
    )


def _html(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def setup(app: Sphinx) -> None:
    app.add_directive("stage", Stage)
    app.add_role("view", View())
