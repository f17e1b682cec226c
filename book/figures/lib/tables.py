"""Tables, whose cells show text literally, and the line for results that are not measured."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from urllib.parse import quote


class Missing:
    """Placeholder of a figure or a table for which nothing is stored."""

    def __init__(self, experiment: str, what: str = "Not measured yet") -> None:
        self.experiment, self.what = experiment, what

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"{self.what}: python -m experiments run {self.experiment}"

    def _repr_markdown_(self) -> str:
        return f"*{self.what}:* `python -m experiments run {self.experiment}`"


class Marked(str):
    """Markdown from the book's own code. Any other text is escaped in a table."""

    def _repr_markdown_(self) -> str:
        return str(self)


def text(value: str) -> Marked:
    """Any text as Markdown that shows it literally: markup in a device's name is escaped."""
    if isinstance(value, Marked):
        return value
    # Neither MyST nor a notebook reads an entity as markup.
    shown = re.sub(r"[^\w\s.,;:()/%+–×·-]|_", lambda match: f"&#{ord(match[0])};", str(value))
    return Marked(re.sub(r"[\r\n]+", " ", shown))


def link(shown: str, target: str) -> Marked:
    """A link to a file of the book's folder or to another page."""
    return Marked(f'<a href="{escape(quote(target, safe="/.#"))}">{text(shown)}</a>')


def code(shown: str) -> Marked:
    """A short code span, without characters that would end it or its cell."""
    plain = re.sub(r"[`|\s]", "", shown)
    return Marked(f"`{plain}`")


class Table:
    """A table: a row of titles, then rows of cells.

    align  a letter a column, "l" or "r"; by default the first is left and the others right
    wrap   whether a cell may break into lines

    Cells and titles are shown literally, unless they are `Marked`.
    """

    def __init__(
        self, titles: list[str], cells: list[list[str]], *, align: str = "", wrap: bool = False
    ) -> None:
        self.titles, self.cells, self.wrap = titles, cells, wrap
        self.align = align or "l" + "r" * (len(titles) - 1)

    def _lines(self, written: Callable[[str], str]) -> str:
        def kept_together(cell: str) -> str:
            if isinstance(cell, Marked):
                return cell
            apart = " ± " if self.wrap else " "  # a number and its spread stay together
            joined = cell.replace(apart, apart.replace(" ", "\N{NO-BREAK SPACE}"))
            return re.sub(r"(?<=\d)–(?=\d)", "–\N{WORD JOINER}", joined)  # so does a range

        rules = [{"l": ":--", "r": "--:"}[side] for side in self.align]
        # A row's title may take two lines on a phone, where its column is narrow.
        whole = [
            [written(key), *(written(kept_together(cell)) for cell in rest)]
            for key, *rest in self.cells
        ]
        lines = [[written(title) for title in self.titles], rules, *whole]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def __repr__(self) -> str:
        return self._lines(str)

    def _repr_markdown_(self) -> str:
        return self._lines(text)
