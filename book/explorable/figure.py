"""Interactive figures, declared once and shown in three forms.

An `Explorable` declares which columns of which results to draw, what colours them and which
controls choose among them. From this declaration come

- the page: native controls, inline data, a picture and a table for readers
  without JavaScript, and a plot drawn by `explorable.js` (`page`);
- the still picture, as SVG (`still`);
- the notebook: the page's HTML and script in a cell's output (`notebook`).

Page and picture call `resolve(figure)` in `model` to decide what to draw.
"""

import os
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Literal

from . import palette
from .curves import Curve, round_column, strokes
from .model import format_number
from .spec import Axis, Choice, Crossing, Filter, Provenance, Series, Toggle, require

__all__ = ["Axis", "Choice", "Crossing", "Explorable", "Filter", "Provenance", "Series", "Toggle"]

MARKS = ("line", "line+dot", "dot", "bar")
RESERVED = ("x", "y", "level")
MOST_BUTTONS = 4  # buttons in a row; more would fill half of a phone's screen


@dataclass(frozen=True)
class Control:
    """A control in the form that all outputs use, made from a Choice, a Filter or a Toggle."""

    name: str  # "x", "y" or a key
    kind: Literal["radio", "select", "check"]
    label: str
    options: dict[str, str]  # value -> label
    measured: frozenset[str]
    default: str | tuple[str, ...]


class Explorable:
    """A figure: data, axes, controls, and the finding that its first state shows.

    id        anchor on the page and key in the URL's hash: lower case, digits, hyphens
    caption   the finding, as text with *emphasis*, **strength**, `code`, [links](#id)
    alt       what the figure shows, for readers who cannot see it
    series    the measured curves
    x, y      an Axis, or a Choice of them
    color     key that colours the series; its legend is added unless a control has this key
    dash      optional second key, told apart by dashes; of bars the first is filled, others hollow
    mark      "line", "line+dot" (few points), "dot" or "bar" (strings on y)
    controls  filters and toggles, in reading order
    ceilings  limits, each with a label; dashed, and grey unless they have the key `color`
    crossing  a Crossing to read off below the plot
    aspect    width / height on a wide page
    fold      words that open the figure, if it is folded

    Raises ValueError naming the argument and what was expected.
    """

    def __init__(
        self, *, id, caption, alt, series, x, y, color,
        dash=None, mark="line", controls=(), ceilings=(), crossing=None, provenance=(),
        aspect=16 / 9, fold="",
    ):  # fmt: skip
        require(
            re.fullmatch(r"[a-z][a-z0-9-]*", id or ""), "id", "lower case, digits and hyphens", id
        )
        require(caption and alt, f"Explorable({id!r})", "a caption and an alt text", (caption, alt))
        require(series, f"Explorable({id!r}).series", "at least one Series", series)
        require(mark in MARKS, "mark", f"one of {MARKS}", mark)
        self.id, self.caption, self.alt, self.mark, self.aspect = id, caption, alt, mark, aspect
        self.color, self.dash, self.provenance = color, dash, list(provenance)
        self.fold = fold
        self.axes = {name: _axes(name, given) for name, given in (("x", x), ("y", y))}
        self.crossing = crossing
        self.shown = []  # notebook widgets to update when a computer is added
        self._check_columns(series)
        require(not ceilings or mark != "bar", "ceilings", "none beside bars", ceilings)
        for i, limit in enumerate(ceilings):
            where = f"ceilings[{i}].label"
            require(limit.label, where, "a name for the end of its line", limit.label)
            for name, axes in self.axes.items():  # otherwise it would not be drawn
                drawn = any(set(axis.columns) <= set(limit.columns) for axis in axes.values())
                expected = f"all columns of an axis {name}"
                require(drawn, f"ceilings[{i}].columns", expected, list(limit.columns))
        for key in self._legend_keys:
            _require_key(key, series)
        self.controls = self._controls({"x": x, "y": y}, controls, series)
        self.labels = {key: self._labels(key, series) for key in self._legend_keys}
        self.palette = palette.assign(list(self.labels[color]))
        self.strokes = self._strokes()
        grey = (limit.label for limit in ceilings if color not in limit.keys)
        self.limits = list(dict.fromkeys(grey))  # told apart by their dashes
        self.curves = sorted((self._curve(single, "series") for single in series), key=self._order)
        self.curves += [self._curve(limit, "ceiling") for limit in ceilings]
        self._check_crossing()

    def __repr__(self):
        return f"Explorable({self.id!r}, {len(self.curves)} series)"

    def add_computer(self, series):
        """Add a Series measured on this computer: a thick line in the colour of the text.

        Its keys need only include those that filters select on. Returns the figure.
        """
        self._check_columns([series])
        self.curves.append(self._curve(series, "computer"))
        for face in self.shown:
            face.refresh()
        return self

    def _repr_mimebundle_(self, include=None, exclude=None):
        """In a build, the page's HTML and a notebook's picture; in a notebook, a widget."""
        if os.environ.get("BOOK_STATIC"):
            from .page import page
            from .still import picture

            return {
                "text/html": page(self),
                "image/png": b64encode(picture(self)).decode(),
                "text/plain": repr(self),
            }
        try:
            return self.live()._repr_mimebundle_()
        except ImportError:
            from .still import still

            return {"image/svg+xml": still(self, theme="light"), "text/plain": repr(self)}

    def live(self):
        """The figure as a widget, for a running notebook."""
        from .notebook import Live

        return Live(self)

    @property
    def _legend_keys(self):
        return [key for key in (self.color, self.dash) if key]

    def _all_axes(self):
        return [axis for axes in self.axes.values() for axis in axes.values()]

    def _check_columns(self, series):
        for i, single in enumerate(series):
            for axis in self._all_axes():
                for column in axis.columns:
                    require(
                        column in single.columns,
                        f"series[{i}].columns",
                        f"a column {column!r}",
                        list(single.columns),
                    )
                values = single.columns[axis.column]
                if axis.log:
                    where = f"series[{i}].columns[{axis.column!r}]"
                    require(min(values) > 0, where, "positive values (log axis)", min(values))
            for name, axes in self.axes.items():
                for column in axes:
                    require(
                        isinstance(single.columns[column][0], str)
                        == (name == "y" and self.mark == "bar"),
                        f"series[{i}].columns[{column!r}]",
                        "strings along y of bars, numbers elsewhere",
                        single,
                    )
            for column in self.axes["x"] if self.mark.startswith("line") else ():
                values = single.columns[column]
                rising = all(a <= b for a, b in pairwise(values))
                require(
                    rising,
                    f"series[{i}].columns[{column!r}]",
                    "values that never fall (x of a line)",
                    single,
                )

    def _check_crossing(self):
        if self.crossing:
            columns, values = list(self.axes["y"]), list(self.labels[self.color])
            require(
                self.crossing.column in columns,
                "Crossing.column",
                f"one of {columns}",
                self.crossing.column,
            )
            for value in self.crossing.compare:
                require(value in values, "Crossing.compare", f"among {values}", value)

    def _controls(self, axes, given, series):
        controls = [
            _axis_control(name, axis) for name, axis in axes.items() if isinstance(axis, Choice)
        ]
        controls += [_control(control, series) for control in given]
        for key in self._legend_keys:
            legend = _control(Toggle(key, key.replace("_", " ").capitalize()), series)
            if key not in [control.key for control in given] and len(legend.options) > 1:
                controls.append(legend)
        names = [control.name for control in controls]
        require(len(names) == len(set(names)), "controls", "one control for each key", names)
        return controls

    def _labels(self, key, series):
        """`{value: label}` of a key, in legend order."""
        own = next((control for control in self.controls if control.name == key), None)
        return (own or _control(Toggle(key, key), series)).options

    def _curve(self, series, role):
        digits = {}
        for axis in self._all_axes():
            digits |= {column: max(axis.digits, digits.get(column, 0)) for column in axis.columns}
        columns = {
            name: round_column(values, digits.get(name, 6))
            for name, values in series.columns.items()
        }
        keys = {key: str(value) for key, value in series.keys.items()}
        if role == "ceiling":
            color = self.palette.get(keys.get(self.color), "ceiling")
            i = self.limits.index(series.label) if series.label in self.limits else 0
            return Curve(
                series.label, color, strokes(i, limit=True), role, keys, columns, series.source
            )
        if role == "computer":
            name = series.label or palette.label("this-computer")
            return Curve(name, "this-computer", strokes(0), role, keys, columns, series.source)
        told_apart = self.labels | {c.name: c.options for c in self.controls if c.kind == "check"}
        parts = [
            labels[keys[key]]
            for key, labels in told_apart.items()
            if key == self.color or len(labels) > 1
        ]
        if self.dash:
            i = list(self.labels[self.dash]).index(keys[self.dash])
        else:
            i = self.strokes[keys[self.color]]
        return Curve(
            series.label or ", ".join(parts),
            self.palette[keys[self.color]],
            strokes(i),
            role,
            keys,
            columns,
            series.source,
        )

    def _strokes(self):
        """`{value: line style}`: values with similar colours get different styles.

        All get one style if dashes are used for another key.
        """
        chosen = {}
        for value, name in self.palette.items():
            used = {chosen[other] for other in chosen if palette.alike(self.palette[other], name)}
            free = next(style for style in count() if style not in used)
            chosen[value] = free if self.mark.startswith("line") and not self.dash else 0
        return chosen

    def _order(self, curve):
        return [list(labels).index(curve.keys[key]) for key, labels in self.labels.items()]


def _axes(name, given):
    axes = given.options if isinstance(given, Choice) else [given]
    for axis in axes:
        require(isinstance(axis, Axis), name, "an Axis or a Choice of Axis", axis)
    require(
        len({axis.column for axis in axes}) == len(axes),
        name,
        "a different column in each option",
        axes,
    )
    return {axis.column: axis for axis in axes}


def _axis_control(name, choice):
    options = {axis.column: axis.title for axis in choice.options}
    default = choice.default or next(iter(options))
    require(default in options, f"{name}.default", f"one of {list(options)}", default)
    kind = "radio" if len(options) <= MOST_BUTTONS else "select"
    return Control(name, kind, choice.label, options, frozenset(options), default)


def _control(given, series):
    where = f"{type(given).__name__}({given.key!r})"
    require(given.key not in RESERVED, where, f"a key other than {RESERVED}", given.key)
    _require_key(given.key, series)
    options = _options(given.options, [single.keys[given.key] for single in series])
    measured = frozenset(str(single.keys[given.key]) for single in series)
    require(
        measured <= set(options), f"{where}.options", f"all of {sorted(measured)}", list(options)
    )
    present = [value for value in options if value in measured]
    if isinstance(given, Toggle):
        kind, wanted = (
            "check",
            present if given.default is None else [str(value) for value in given.default],
        )
        default = tuple(value for value in options if value in wanted)
    else:
        kind, default = given.kind, present[0] if given.default is None else str(given.default)
        wanted = [default]
        require(kind in ("radio", "select"), f"{where}.kind", "radio or select", kind)
    require(set(wanted) <= measured, f"{where}.default", f"measured values, {present}", wanted)
    return Control(given.key, kind, given.label, options, measured, default)


def _require_key(key, series):
    for i, single in enumerate(series):
        require(key in single.keys, f"series[{i}].keys", f"a key {key!r}", dict(single.keys))


def _options(given, values):
    if isinstance(given, Mapping):
        return {str(value): label for value, label in given.items()}
    if given is None:
        known = [name for name in palette.names() if name in values]
        rest = list(dict.fromkeys(value for value in values if value not in known))
        given = known + (rest if any(isinstance(value, str) for value in rest) else sorted(rest))
    return {str(value): _option_label(value) for value in given}


def _option_label(value):
    return palette.label(value) or value if isinstance(value, str) else format_number(float(value))
