"""A curve for all outputs of a figure: its name, colour, dashes and rounded numbers."""

from dataclasses import dataclass
from typing import Literal

DASHES = ((), (7, 4), (2, 3), (8, 3, 2, 3), (12, 4))
LIMIT_DASHES = ((4, 4), (1, 3), (9, 4))


@dataclass(frozen=True)
class Curve:
    """A series with its name, colour and dashes."""

    name: str
    color: str  # a palette name
    dash: tuple[int, ...]  # strokes and gaps in px; () is solid
    role: Literal["series", "ceiling", "computer"]
    keys: dict[str, str]
    columns: dict[str, list]
    source: str


def strokes(i, limit=False):
    """The i-th style of a line, or of a limit: lengths of strokes and gaps in px."""
    styles = LIMIT_DASHES if limit else DASHES
    return styles[i % len(styles)]


def round_column(values, digits):
    """Values as they are stored: whole numbers exact, the rest to `digits` significant digits.

    An evenly spaced column is not rounded: it is stored as start and step.
    """
    if isinstance(values[0], str) or progression(values):
        return list(values)
    return [_round(value, digits) for value in values]


def _round(value, digits):
    if float(value).is_integer() and abs(value) < 2**53:
        return int(value)
    return float(f"{value:.{digits}g}")


def progression(values):
    """`{"from", "step", "count"}` if that reproduces every value exactly, else None.

    Updates are evenly spaced, and so are seconds derived from seconds per update:
    sixty-four such columns cost three numbers each.
    """
    if len(values) < 4 or isinstance(values[0], str):
        return None
    start, step = values[0], values[1] - values[0]
    exact = all(start + step * i == value for i, value in enumerate(values))
    return {"from": start, "step": step, "count": len(values)} if exact else None
