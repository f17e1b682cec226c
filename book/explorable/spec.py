"""Parts of a figure's declaration: series, axes, controls, crossing, provenance."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Literal

NOT_MEASURED = "not measured yet"
LONGEST = 46  # letters of an axis's title with its unit; more do not fit a phone


def require(condition, argument, expected, got):
    if not condition:
        raise ValueError(f"{argument}: expected {expected}, got {got!r}")


@dataclass(frozen=True)
class Series:
    """One curve, or one group of bars: its keys and its columns.

    keys     what controls and colour select on, e.g. {"attention": "softmax", "context": 1024}
    columns  name -> values, all of one length [N]; finite numbers, or strings for categories
    label    name at the end of the line; needed for ceilings, otherwise derived from the keys
    source   path of the results file
    """

    keys: Mapping[str, str | int | float]
    columns: Mapping[str, Sequence[float] | Sequence[str]]
    label: str = ""
    source: str = ""

    def __post_init__(self):
        where = f"Series({', '.join(f'{k}={v}' for k, v in self.keys.items()) or self.label})"
        columns = {
            name: column_values(f"{where}.columns[{name!r}]", values)
            for name, values in self.columns.items()
        }
        lengths = {name: len(values) for name, values in columns.items()}
        require(lengths, f"{where}.columns", "at least one column", columns)
        require(
            len(set(lengths.values())) == 1, f"{where}.columns", "columns of one length", lengths
        )
        require(0 not in lengths.values(), f"{where}.columns", "at least one point", lengths)
        object.__setattr__(self, "columns", columns)

    def __repr__(self):
        return f"Series({dict(self.keys)}, columns={list(self.columns)})"


def column_values(where, values):
    values = values.tolist() if hasattr(values, "tolist") else list(values)
    if all(isinstance(value, str) for value in values):
        return values
    for i, value in enumerate(values):
        real = isinstance(value, Real) and not isinstance(value, bool)
        require(
            real and math.isfinite(value),
            f"{where}[{i}]",
            "a finite number (or strings throughout)",
            value,
        )
    return values


@dataclass(frozen=True)
class Axis:
    """A column shown along x or y.

    title   the quantity, capitalised: "Training time"
    unit    "h", "ms", "nats per token"; empty for plain counts
    log     False, 10, or 2 (ticks at powers of two, where 4096 reads 4k)
    digits  significant digits shown and stored; whole numbers are always exact
    low, high  columns that bound the spread around `column`, drawn as a band or bars
    range   (low, high) to show, in the column's unit; None fits the data
    """

    column: str
    title: str
    unit: str = ""
    log: Literal[False, 2, 10] = False
    digits: int = 4
    low: str = ""
    high: str = ""
    range: tuple[float, float] | None = None

    def __post_init__(self):
        where = f"Axis({self.column!r})"
        require(self.title, f"{where}.title", "the name of the quantity", self.title)
        require(
            len(self.caption) <= LONGEST,
            f"{where}.title",
            f"at most {LONGEST} letters with unit and scale, as wide as a phone",
            self.caption,
        )
        require(self.log in (False, 2, 10), f"{where}.log", "False, 2 or 10", self.log)
        require(
            bool(self.low) == bool(self.high),
            f"{where}.low",
            "low and high together",
            (self.low, self.high),
        )
        if self.range is not None:
            low, high = self.range
            require(
                low < high and (low > 0 or not self.log),
                f"{where}.range",
                "rising (positive if log)",
                self.range,
            )

    @property
    def columns(self):
        return tuple(filter(None, (self.column, self.low, self.high)))

    @property
    def caption(self):
        """The title beside the axis: with unit, and whether the scale is logarithmic."""
        notes = ", ".join(filter(None, (self.unit, "log scale" if self.log else "")))
        return f"{self.title} ({notes})" if notes else self.title

    @property
    def noun(self):
        """The title inside a sentence: "Training time" -> "training time"."""
        return self.title if self.title[:2].isupper() else self.title[0].lower() + self.title[1:]


@dataclass(frozen=True)
class Choice:
    """Two or more axes; the reader chooses one: updates ↔ time."""

    label: str
    options: Sequence[Axis]
    default: str = ""  # a column; the first option if empty


@dataclass(frozen=True)
class Filter:
    """Show only the series whose `key` has the chosen value.

    options  values, or {value: label}; values without series are listed, disabled and
             marked "not measured yet". None lists the values that have series.
    """

    key: str
    label: str
    options: Sequence | Mapping | None = None
    kind: Literal["radio", "select"] = "radio"
    default: str | int | float | None = None  # first measured option if None


@dataclass(frozen=True)
class Toggle:
    """A checkbox for each value of `key` that shows or hides it: the legend."""

    key: str
    label: str
    options: Sequence | Mapping | None = None
    default: Sequence | None = None  # values shown at first; all if None


@dataclass(frozen=True)
class Crossing:
    """A readout: at which x each series first falls to a level of y that the reader sets.

    The first level is about the best that every visible series reaches.

    column   the y column in which the level lies, a loss
    label    of the slider: "Loss to reach"
    compare  two values of the colour key (a, b): "a needs 2× the time of b"
    """

    column: str
    label: str
    compare: tuple[str, str]


@dataclass(frozen=True)
class Provenance:
    """Where numbers come from; common parts of many records are shown once."""

    device: str
    commit: str
    date: str
    command: str
    href: str
