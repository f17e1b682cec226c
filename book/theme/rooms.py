"""Estimated heights of blocks that are laid out late.

A page skips blocks far from the screen (content-visibility in book.css) and reserves an estimated
height for them. With one height for all, a page would grow by half while it is read, and its scroll
bar would mislead. So each block has two values in its style. One is the number of letters in its
lines, which need less height on a wider screen. The other is the height of the rest (code, rows,
formulas). On a phone, lines of code are broken (code_lines.py) and need more.
"""

from __future__ import annotations

from dataclasses import dataclass
from html.parser import HTMLParser
from math import ceil

from sphinx.application import Sphinx

# Elements without an end tag.
EMPTY = frozenset(("br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"))
UNSEEN_TAGS = frozenset(("noscript", "script", "style", "template"))
# A table that scrolls in a box, whose height book.css gives.
BOXED = "tag_filterable"
UNSEEN_CLASSES = frozenset(("headerlink", "katex-mathml", "visually-hidden"))

# A figure's controls, and those below its picture. Choices take twice the room of a text.
CONTROLS = {"explorable-controls": 2.0, "explorable-crossing": 1.0}

# In rem, as measured on phones and at desks.
HALF_A_LINE = 0.4  # the last line of a paragraph is half empty
GAP = 1.6  # between the parts of a block
ITEM = 0.5
CODE_BOX, CODE_LINE = 1.8, 1.016
FITS, GOES_ON = 40, 32  # letters of a line of code on a phone, and of its continuation
FORMULA, FORMULA_ROW = 2.5, 0.9
TABLE_ROW = 1.3
TABLE_LETTER = 0.8  # relative to a letter of the text: smaller type
SUMMARY = 1.7
CONTROL = 1.0


@dataclass
class Block:
    end: int  # of its start tag
    letters: float = 0.0
    rest: float = 0.0
    broken: float = 0.0  # additional height of broken lines of code
    scale: float = 1.0  # of its letters

    def style(self) -> str:
        more = f";--broken:{self.broken:.1f}" if self.broken else ""
        return f' style="--letters:{self.letters:.0f};--rest:{max(0.0, self.rest):.1f}{more}"'


@dataclass
class Element:
    tag: str
    classes: frozenset[str]
    holds_blocks: bool = False
    unseen: bool = False  # it, or an ancestor
    block: Block | None = None  # that it is, or is in


class Rooms(HTMLParser):
    """The blocks of a page's body, in their order."""

    def __init__(self, body: str) -> None:
        super().__init__()
        self.blocks: list[Block] = []
        self.opened = [Element("", frozenset())]
        self.column = 0  # in code
        self.lines = [0]
        for line in body.split("\n"):
            self.lines.append(self.lines[-1] + len(line) + 1)
        self.feed(body)

    def inside(self, tag: str, css: str = "") -> bool:
        return any(one.tag == tag and (not css or css in one.classes) for one in self.opened)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in EMPTY:
            return
        about, parent = dict(attrs), self.opened[-1]
        element = Element(tag, frozenset((about.get("class") or "").split()), block=parent.block)
        # Sections within a chapter's section, in which book.css skips blocks.
        element.holds_blocks = tag == "section" and "id" in about and self.inside("section")
        begins = parent.holds_blocks and tag != "section" and BOXED not in element.classes
        scales = [scale for name, scale in CONTROLS.items() if name in element.classes]
        if (begins or scales) and "style" not in about:
            line, column = self.getpos()
            start = self.lines[line - 1] + column
            element.block = Block(start + len(self.get_starttag_text() or "") - 1)
            if scales:
                element.block.scale, element.block.rest = scales[0], CONTROL
            self.blocks.append(element.block)
        element.unseen = (
            parent.unseen
            or tag in UNSEEN_TAGS
            or bool(UNSEEN_CLASSES & element.classes)
            or (parent.tag == "details" and tag != "summary")
        )
        if element.block:
            self.add(element, is_block=element.block is not parent.block)
        self.opened.append(element)

    def add(self, element: Element, *, is_block: bool) -> None:
        """Add the size of `element` at any width to its block."""
        block = element.block
        assert block
        if element.tag == "mtr" and self.inside("div", "math") and not self.inside("details"):
            block.rest += FORMULA_ROW
        if element.unseen:
            return
        if element.tag == "tr":
            block.rest += TABLE_ROW
        elif element.tag == "p" and not self.inside("table"):
            block.rest += HALF_A_LINE + (0 if is_block or self.inside("li") else GAP)
        elif element.tag in ("li", "dt", "dd"):
            block.rest += ITEM
        elif element.tag == "pre":
            block.rest += CODE_BOX
        elif element.tag == "details":
            block.rest += SUMMARY
        elif element.tag == "div" and "math" in element.classes:
            block.rest += FORMULA

    def add_code(self, block: Block, text: str) -> None:
        for letter in text:
            self.column += 1
            if letter == "\n":
                block.rest += CODE_LINE
                if self.column > FITS and not self.inside("div", "output"):
                    block.broken += CODE_LINE * ceil((self.column - FITS) / GOES_ON)
                self.column = 0

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY:
            while len(self.opened) > 1 and self.opened.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        element = self.opened[-1]
        if element.unseen or not element.block:
            return
        if self.inside("pre"):
            self.add_code(element.block, data)
        elif not (self.inside("summary") or self.inside("div", "math")):
            letters = len(" ".join(data.split())) + bool(data.strip())
            letters *= TABLE_LETTER if self.inside("table") else element.block.scale
            element.block.letters += letters


def with_rooms(body: str) -> str:
    """`body`, a page's HTML, with the estimated heights in its blocks' styles."""
    parts, done = [], 0
    for block in Rooms(body).blocks:
        parts += [body[done : block.end], block.style()]
        done = block.end
    return "".join([*parts, body[done:]])


def prepare(app: Sphinx, page: str, template: str, context: dict, doctree) -> None:
    if body := context.get("body"):
        context["body"] = with_rooms(body)


def setup(app: Sphinx) -> None:
    app.connect("html-page-context", prepare)
