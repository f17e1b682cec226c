"""Numbers in words, tables, and what is said where a result is missing or has changed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from statistics import mean
from urllib.parse import quote

from IPython.display import Markdown, display

from .results import NotMeasuredError

NOT_MEASURED = "not measured yet"
SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve",
)  # fmt: skip


def say(**values: object) -> None:
    """Glue values for use in the prose: {glue:text}`name`.

    Raises: ValueError where a value is written as Markdown, since the page would show its signs.
    """
    from myst_nb import glue

    for name, value in values.items():
        if "*" in str(value) or "`" in str(value):
            raise ValueError(f"{name} is shown as it is written, so it needs plain text: {value}")
        glue(name, str(value), display=False)


def in_words(**makers: Callable[[], object]) -> dict[str, str]:
    """What each function returns, as text; "not measured yet" where it raises NotMeasuredError."""
    found = {}
    for name, make in makers.items():
        try:
            found[name] = str(make())
        except NotMeasuredError:
            found[name] = NOT_MEASURED
    return found


def listed(parts: Iterable[str]) -> str:
    """One after another, as a sentence has them: "a", "a and b", "a, b and c"."""
    *before, last = parts
    return f"{', '.join(before)} and {last}" if before else last


def signed(difference: float, digits: int = 3) -> str:
    """ "0.012 higher" or "0.012 lower"; "the same" when it rounds to nothing."""
    if round(abs(difference), digits) == 0:
        return "the same"
    return f"{abs(difference):.{digits}f} {'higher' if difference > 0 else 'lower'}"


def times(ratio: float) -> str:
    """A ratio as a reader would say it: 1.04×, 7.3×, 120×."""
    if ratio < 1.95:
        return f"{ratio:.2f}×"
    return f"{ratio:.1f}×" if ratio < 19.5 else f"{ratio:.0f}×"


def counted(number: int) -> str:
    """A whole number as prose writes it: a word up to twelve, digits beyond."""
    return SMALL[number] if 0 <= number < len(SMALL) else f"{number:,}"


def how_many_seeds(count: int) -> str:
    """ "one seed", "three seeds"."""
    return f"{counted(count)} seed{'' if count == 1 else 's'}"


def seeds_in_words(counts: Sequence[int]) -> str:
    """How many seeds several models have: "one seed", "two seeds each", "one to three seeds"."""
    fewest, most = counted(min(counts)), counted(max(counts))
    if fewest == most:
        return "one seed" if most == "one" else f"{most} seeds each"
    return f"{fewest} to {most} seeds"


def seeds_by_context(counts: Mapping[int, Sequence[int]]) -> str:
    """How many seeds several models have, by the context of their training, most seeds first:
    "three seeds each at 4,096 bytes, one seed at 256 and 16,384". Raises NotMeasuredError.
    """
    if not counts:
        raise NotMeasuredError("no seed of any context")
    contexts: dict[str, list[int]] = {}
    for context, each in sorted(counts.items(), key=lambda item: -sum(item[1])):
        told = seeds_in_words(each) if len(each) > 1 else how_many_seeds(*each)
        contexts.setdefault(told, []).append(context)
    parts = [f"{seeds} at {listed(f'{n:,}' for n in sorted(at))}" for seeds, at in contexts.items()]
    return ", ".join([f"{parts[0]} bytes", *parts[1:]])


def bars(seeds: str) -> str:
    """A caption's sentence about them: "Two seeds each; bars span them." """
    return f"{seeds.capitalize()}{'' if seeds == 'one seed' else '; bars span them'}."


def mean_and_spread(values: Sequence[float]) -> str:
    """Losses over seeds: 1.623 ± 0.004, half of their range; of one seed it says so."""
    if len(values) == 1:
        return f"{values[0]:.3f} (one seed)"
    return f"{mean(values):.3f} ± {(max(values) - min(values)) / 2:.3f}"


def duration(seconds: float) -> str:
    """Seconds in the unit that fits: 310 µs, 4.2 ms, 1.3 s."""
    for unit, length in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def size(count: float) -> str:
    """Bytes in the unit that fits, powers of 1024: 16 KiB, 1.5 GiB."""
    for unit, length in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= length:
            return f"{count / length:.3g} {unit}"
    return f"{count:.0f} B"


def percent(share: float) -> str:
    """A share as a reader would say it: 0.034%, 3.4%, 34%, 1,200%."""
    return f"{100 * share:.2g}%" if share < 0.995 else f"{100 * share:,.0f}%"


class Missing:
    """What stands in the place of a figure or a table that nothing is stored for."""

    def __init__(self, experiment: str, what: str = "Not measured yet") -> None:
        self.experiment, self.what = experiment, what

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"{self.what}: python -m experiments run {self.experiment}"

    def _repr_markdown_(self) -> str:
        return f"*{self.what}:* `python -m experiments run {self.experiment}`"


class WrittenFor:
    """Shows nothing as long as all that a passage says is so, and else what no longer is.

    Results can be measured again, and words cannot: numbers in a passage follow the results, but
    "ahead" and "behind" were written by somebody who had looked. Each claim is a function that
    says whether it holds; one about numbers that are not stored does not.
    """

    def __init__(self, **claims: Callable[[], bool]) -> None:
        self.broken = [name.replace("_", " ") for name, holds in claims.items() if not _so(holds)]

    def _repr_markdown_(self) -> str:
        if not self.broken:
            return ""
        return (
            "*The next paragraphs were written for other results. With those stored now it is not "
            f"so that {'; nor that '.join(self.broken)}.*"
        )

    def _ipython_display_(self) -> None:
        # An output without text would still take a line of the page.
        if self.broken:
            display(Markdown(self._repr_markdown_()))


def _so(holds: Callable[[], bool]) -> bool:
    try:
        return holds()
    except NotMeasuredError:
        return False


class Marked(str):
    """Markdown that the book's own code wrote. Any other text is escaped in a table."""

    def _repr_markdown_(self) -> str:
        return str(self)


def text(value: str) -> Marked:
    """Any text as Markdown that shows it as it is: markup in a device's name stays a name."""
    if isinstance(value, Marked):
        return value
    # An entity is never read as markup, neither by MyST nor by a notebook.
    shown = re.sub(r"[^\w\s.,;:()/%+–×·-]|_", lambda found: f"&#{ord(found[0])};", str(value))
    return Marked(re.sub(r"[\r\n]+", " ", shown))


def link(shown: str, target: str) -> Marked:
    """A link to a file of the book's folder or to another page."""
    return Marked(f'<a href="{escape(quote(target, safe="/.#"))}">{text(shown)}</a>')


def code(shown: str) -> Marked:
    """A short code span, without the signs that would end it or its cell."""
    kept = re.sub(r"[`|\s]", "", shown)
    return Marked(f"`{kept}`")


class Table:
    """A table: a row of titles, then rows of cells.

    align  a letter a column, "l" or "r"; the first column left and the others right by default
    wrap   whether a cell may break into lines

    Cells and titles are text and shown as they stand, unless they are `Marked`.
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
            apart = " ± " if self.wrap else " "  # a number and its spread are one
            return cell.replace(apart, apart.replace(" ", "\N{NO-BREAK SPACE}"))

        rules = [{"l": ":--", "r": "--:"}[side] for side in self.align]
        # What a row is about may take two lines on a phone, where its column is narrow.
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


def live() -> bool:
    """Whether a reader is running the chapter, and not the book being built."""
    return "BOOK_STATIC" not in os.environ
