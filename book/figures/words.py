"""Around a figure: what is said where nothing is stored or results have changed, tables, shares."""

from __future__ import annotations

import os

from .results import Record, stored


class Missing:
    """What stands in the place of a figure or a table that nothing is stored for."""

    def __init__(self, experiment: str) -> None:
        self.experiment = experiment

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"Not measured yet: python -m experiments run {self.experiment}"

    def _repr_markdown_(self) -> str:
        return f"*Not measured yet:* `python -m experiments run {self.experiment}`"


def have(experiment: str) -> list[Record]:
    """`figures.stored`, or an empty list."""
    try:
        return stored(experiment)
    except LookupError:
        return []


class WrittenFor:
    """Shows nothing as long as all that a passage says is so, and else what no longer is.

    Results can be measured again, and words cannot: numbers in a passage follow the results, but
    "ahead" and "behind" were written by somebody who had looked.
    """

    def __init__(self, **claims: bool) -> None:
        self.broken = [name.replace("_", " ") for name, holds in claims.items() if not holds]

    def _repr_markdown_(self) -> str:
        if not self.broken:
            return ""
        return (
            "*The next paragraphs were written for other results. With those stored now it is not "
            f"so that {'; nor that '.join(self.broken)}.*"
        )

    def __repr__(self) -> str:
        return self._repr_markdown_()


class Table:
    """A table in Markdown: a row of titles, then rows of cells, which do not wrap."""

    def __init__(self, titles: list[str], cells: list[list[str]]) -> None:
        whole = [[cell.replace(" ", "\N{NO-BREAK SPACE}") for cell in line] for line in cells]
        self.lines = [titles, [":--"] + ["--:"] * (len(titles) - 1), *whole]

    def __repr__(self) -> str:
        return "\n".join("| " + " | ".join(line) + " |" for line in self.lines)

    def _repr_markdown_(self) -> str:
        return repr(self)


def percent(share: float) -> str:
    """A share as a reader would say it: 0.034%, 3.4%, 34%, 1,200%."""
    return f"{100 * share:.2g}%" if share < 0.995 else f"{100 * share:,.0f}%"


def live() -> bool:
    """Whether a reader is running the chapter, and not the book being built."""
    return "BOOK_STATIC" not in os.environ
