"""Numbers formatted for prose, and the words for a missing result."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from .records import NotMeasuredError, Row

NOT_MEASURED = "not measured yet"
UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve",
)  # fmt: skip


def say(**values: object) -> None:
    """Glue values for use in the prose: {glue:text}`name`.

    Raises ValueError for a value with Markdown, since the page would show its characters.
    """
    from myst_nb import glue

    for name, value in values.items():
        if "*" in str(value) or "`" in str(value):
            raise ValueError(f"{name} is shown as it is written, so it needs plain text: {value}")
        glue(name, str(value), display=False)


def in_words(**makers: Callable[[], object]) -> dict[str, str]:
    """Each function's result as text; "not measured yet" if it raises NotMeasuredError."""
    texts = {}
    for name, make in makers.items():
        try:
            texts[name] = str(make())
        except NotMeasuredError:
            texts[name] = NOT_MEASURED
    return texts


def listed(parts: Iterable[str]) -> str:
    """A list in a sentence: "a", "a and b", "a, b and c"."""
    *before, last = parts
    return f"{', '.join(before)} and {last}" if before else last


def rounded(ratio: float) -> float:
    """A ratio of two timings to two digits from 100 on, since their quartiles allow no more."""
    return float(f"{ratio:.2g}") if ratio >= 100 else ratio


def times(ratio: float) -> str:
    """A ratio for prose: 1.04×, 7.3×, 55×, 440×."""
    if ratio < 1.95:
        return f"{ratio:.2f}×"
    return f"{ratio:.1f}×" if ratio < 19.5 else f"{rounded(ratio):.0f}×"


def times_between(slow: Row, fast: Row) -> str:
    """A ratio of two timings with the range from their quartiles: 290× (260–300)."""
    middle = times(slow["seconds"] / fast["seconds"])
    digits = len(middle.partition(".")[2].removesuffix("×"))
    ends = slow["low"] / fast["high"], slow["high"] / fast["low"]
    low, high = (f"{rounded(end):.{digits}f}" for end in ends)
    return f"{middle} ({low}–{high})"


def counted(number: int) -> str:
    """A whole number in prose: a word up to twelve, digits above."""
    return SMALL[number] if 0 <= number < len(SMALL) else f"{number:,}"


def _unit(seconds: float) -> tuple[str, float]:
    return next((unit for unit in UNITS if seconds >= unit[1]), UNITS[-1])


def duration(seconds: float) -> str:
    """Seconds in the unit that fits: 310 µs, 4.2 ms, 1.3 s."""
    unit, length = _unit(seconds)
    return f"{seconds / length:.3g} {unit}"


def duration_between(timing: Row) -> str:
    """The seconds of a timing and its quartiles: 1.17 ms (1.14–1.24)."""
    unit, length = _unit(timing["seconds"])
    middle, low, high = (f"{timing[name] / length:.3g}" for name in ("seconds", "low", "high"))
    return f"{middle} {unit} ({low}–{high})"


def size(count: float) -> str:
    """Bytes in the unit that fits, powers of 1024: 16 KiB, 1.5 GiB."""
    for unit, length in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= length:
            # A tie is rounded up, as a page's scripts round it.
            return f"{count / length * (1 + 1e-12):.3g} {unit}"
    return f"{count:.0f} B"


def percent(share: float) -> str:
    """A share for prose: 0.034%, 3.4%, 34%, 99.6%, 1,200%. Only all is 100%."""
    if 0.995 <= share < 1:
        return f"{100 * min(share, 0.999):.1f}%"
    return f"{100 * share:.2g}%" if share < 0.995 else f"{100 * share:,.0f}%"


def live() -> bool:
    """Whether a reader is running the chapter, not the build."""
    return "BOOK_STATIC" not in os.environ
