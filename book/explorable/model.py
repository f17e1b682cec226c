"""The view of one state of a figure's controls, computed by `explorable-model.js`.

The page's script calls the same functions in the reader's browser, so picture, table and readout
are the same before and after it runs.
"""

import json
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

from ..javascript import call
from .curves import Curve, progression
from .spec import Axis

SCRIPT = Path(__file__).with_name("explorable-model.js")
# A curve is returned as its index in the figure's list, without its columns.
SHOWN = """(document, changes) => {
    const model = ExplorableModel, spec = model.decode(JSON.parse(document));
    spec.curves.forEach((curve, i) => { curve.toJSON = () => i; });
    const state = { ...model.defaults(spec), ...JSON.parse(changes) };
    const view = model.resolve(spec, state);
    const none = { level: null, rows: [], sentence: "" };
    const crossings = spec.crossing ? model.crossings(spec, view, state) : none;
    return { ...view, table: model.table(view), crossings };
}"""


@dataclass(frozen=True)
class Trace:
    """A curve with the chosen columns; low and high are None without a spread."""

    curve: Curve
    x: list
    y: list
    low: list | None
    high: list | None


@dataclass(frozen=True)
class Crossings:
    """Where each visible series reaches a level; none if the level is None.

    rows      [(curve, {x column: value or None}, the same in words)]
    sentence  compares two of them, or is empty
    """

    level: float | None
    rows: list[tuple[Curve, dict[str, float | None], str]]
    sentence: str


@dataclass(frozen=True)
class View:
    """One state of the controls, ready to be shown.

    counts      whether x, and y, count things: whole numbers without a unit
    empty       "", "unmeasured" (no run was made) or "unselected" (the reader hid them all)
    unmeasured  key of a toggle -> values without a run under the present filters
    head, rows  texts of the table
    """

    x: Axis
    y: Axis
    traces: list[Trace]
    counts: dict[Literal["x", "y"], bool]
    empty: str
    unmeasured: dict[str, list[str]]
    head: list[str]
    rows: list[list[str]]
    crossings: Crossings


def resolve(figure, changes=None):
    """The View of `figure` with its default controls, except for the `changes`: {name: value}.

    A toggle's value is the list of shown values; "level" is that of a Crossing.
    """
    found = _shown(json.dumps(payload(figure)), json.dumps(changes or {}))
    read = found["crossings"]
    return View(
        *(figure.axes[name][found[name]["column"]] for name in "xy"),
        [Trace(**one | {"curve": figure.curves[one["curve"]]}) for one in found["traces"]],
        found["counts"],
        found["empty"],
        found["unmeasured"],
        **found["table"],
        crossings=Crossings(
            read["level"],
            [(figure.curves[one["curve"]], one["at"], one["text"]) for one in read["rows"]],
            read["sentence"],
        ),
    )


# Page and picture are made in turn from one state.
@lru_cache(maxsize=4)
def _shown(document, changes):
    return call(SCRIPT, SHOWN, document, changes)


@cache
def format_number(value, digits=4):
    """A number for a reader: 131072 -> "131,072", 3.2071 -> "3.207", 12345.6 -> "12,346"."""
    return call(SCRIPT, "ExplorableModel.formatNumber", value, digits)


@cache
def log_ticks(low, high, base, most):
    """`[(value, text)]` for a log axis: powers of the base, thinned to at most `most`.

    Base two counts in binary thousands (4096 reads 4k), base ten in decimal ones.
    Under two decades, base ten also marks 2 and 5.
    """
    return call(SCRIPT, "ExplorableModel.logTicks", low, high, base, most)


@cache
def linear_ticks(low, high, most, whole=False):
    """`[(value, text)]` at round steps, about `most` of them, all with the same decimals.

    whole: at whole numbers only, as of a count.
    """
    return call(SCRIPT, "ExplorableModel.linearTicks", low, high, most, whole)


def payload(figure):
    """Data of a figure for the page's script; each distinct column is stored once."""
    arrays, index = [], {}

    def place(values):
        stored = progression(values) or values
        key = json.dumps(stored)
        if key not in index:
            index[key] = len(arrays)
            arrays.append(stored)
        return index[key]

    return {
        "id": figure.id,
        "mark": figure.mark,
        "color": figure.color,
        "axes": {
            name: [
                asdict(axis) | {"caption": axis.caption, "noun": axis.noun}
                for axis in axes.values()
            ]
            for name, axes in figure.axes.items()
        },
        "controls": [
            {
                "name": control.name,
                "kind": control.kind,
                "label": control.label,
                "options": list(control.options.items()),
                "default": control.default,
                "axis": control.name in figure.axes,
            }
            for control in figure.controls
        ],
        "crossing": asdict(figure.crossing) if figure.crossing else None,
        "curves": [
            vars(curve) | {"columns": {name: place(v) for name, v in curve.columns.items()}}
            for curve in figure.curves
        ],
        "arrays": arrays,
    }
