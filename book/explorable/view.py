"""What one state of a figure's controls shows, whichever face asks.

`explorable-model.js` says the same in JavaScript; a browser test compares the
two over every state that a reader can reach.
"""

import math
from dataclasses import dataclass
from typing import Literal

from .numbers import crossing_share, eased, format_number
from .spec import Axis

DASHES = ((), (7, 4), (2, 3), (8, 3, 2, 3), (12, 4))
LIMIT_DASHES = ((4, 4), (1, 3), (9, 4))


def strokes(i, limit=False):
    """The i-th style of a line, or of a limit: lengths of strokes and gaps in px."""
    styles = LIMIT_DASHES if limit else DASHES
    return styles[i % len(styles)]


@dataclass(frozen=True)
class Curve:
    """A series as every face sees it: named, coloured, rounded."""

    name: str
    color: str  # a palette name
    dash: tuple[int, ...]  # strokes and gaps in px; () is solid
    role: Literal["series", "ceiling", "computer"]
    keys: dict[str, str]
    columns: dict[str, list]
    source: str


@dataclass(frozen=True)
class Trace:
    """A curve with the chosen columns taken out of it."""

    curve: Curve
    x: list
    y: list
    low: list | None = None
    high: list | None = None


@dataclass(frozen=True)
class View:
    """What one state of the controls shows.

    empty       "", "unmeasured" (no run was made) or "unselected" (the reader hid them all)
    unmeasured  key of a toggle -> values without a run under the present filters
    """

    x: Axis
    y: Axis
    traces: list[Trace]
    empty: str
    unmeasured: dict[str, list[str]]


def resolve(figure, state):
    """What `state` (see `Explorable.default_state`) shows, as a View."""
    x, y = (axes[state.get(name, next(iter(axes)))] for name, axes in figure.axes.items())
    filters = {
        c.name: state[c.name]
        for c in figure.controls
        if c.name not in figure.axes and c.kind != "check"
    }
    toggles = {c.name: state[c.name] for c in figure.controls if c.kind == "check"}
    # A curve without the key is not subject to the control: a ceiling, or this computer.
    eligible = [
        c
        for c in figure.curves
        if all(c.keys.get(key, value) == value for key, value in filters.items())
    ]
    shown = [
        c
        for c in eligible
        if all(key not in c.keys or c.keys[key] in on for key, on in toggles.items())
    ]
    columns = {*x.columns, *y.columns}
    shown = [curve for curve in shown if columns <= set(curve.columns)]
    measured = [curve for curve in eligible if curve.role != "ceiling"]
    unmeasured = {
        c.name: [
            value
            for value in c.options
            if all(curve.keys.get(c.name) != value for curve in measured)
        ]
        for c in figure.controls
        if c.kind == "check"
    }
    empty = (
        ""
        if any(curve.role != "ceiling" for curve in shown)
        else "unselected"
        if measured
        else "unmeasured"
    )
    return View(x, y, [_trace(curve, x, y) for curve in shown], empty, unmeasured)


def _trace(curve, x, y):
    low, high = (
        curve.columns[column] if column else None for column in (y.low or x.low, y.high or x.high)
    )
    return Trace(curve, curve.columns[x.column], curve.columns[y.column], low, high)


def crossing_level(figure, view, state):
    """The level the reader chose, or else the best one that every visible series reaches."""
    if state.get("level") is not None:
        return state["level"]
    runs = [
        t.curve.columns[figure.crossing.column] for t in view.traces if t.curve.role != "ceiling"
    ]
    if not runs:
        return None
    falling = figure.crossing.falling
    best = max(map(min, runs)) if falling else min(map(max, runs))
    return eased(best, figure.axes["y"][figure.crossing.column].digits - 1, upwards=falling)


def crossings(figure, view, state):
    """`(level, [(curve, {x column: value or None})], sentence)` for the figure's Crossing."""
    level, rows = crossing_level(figure, view, state), []
    if level is None:
        return None, [], ""
    for trace in view.traces:
        columns = trace.curve.columns
        if trace.curve.role != "ceiling":
            found = crossing_share(columns[figure.crossing.column], level, figure.crossing.falling)
            rows.append(
                (
                    trace.curve,
                    {x: _at(columns[x], found, axis) for x, axis in figure.axes["x"].items()},
                )
            )
    return level, rows, _ratio_sentence(figure, rows)


def _at(values, found, axis):
    if found is None:
        return None
    i, share = found
    if i == 0:
        return values[0]
    value = values[i - 1] + share * (values[i] - values[i - 1])
    # A count has no fractions: a level is reached at an update, not between two.
    counted = not axis.unit and all(float(end).is_integer() for end in values[i - 1 : i + 1])
    return math.ceil(value) if counted else value


def _ratio_sentence(figure, rows):
    """ "Softmax attention needs 0.77× the updates and 4.2× the time of linear attention."""
    pair = [
        [row for row in rows if row[0].keys.get(figure.color) == value]
        for value in figure.crossing.compare or ()
    ]
    if len(pair) != 2 or any(len(found) != 1 for found in pair):
        return ""
    (first, a), (second, b) = pair[0][0], pair[1][0]
    parts = [
        f"{format_number(a[x] / b[x], 2)}× the {axis.noun}"
        for x, axis in figure.axes["x"].items()
        if a[x] is not None and b[x]
    ]
    name = second.name if second.name[:2].isupper() else second.name[0].lower() + second.name[1:]
    return f"{first.name} needs {' and '.join(parts)} of {name}." if parts else ""
