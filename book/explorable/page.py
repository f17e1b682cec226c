"""The page's face of an Explorable: HTML that is whole without JavaScript.

Controls, picture, table and provenance are written here, so that they exist,
labelled, before or without the script; the data lies beside them as JSON.
"""

import json
from dataclasses import asdict
from html import escape
from pathlib import Path

from .controls import controls, limits
from .markup import inline, json_script, tag
from .numbers import format_number, progression, quantity
from .spec import NOT_MEASURED
from .still import still
from .view import crossings, resolve

TABLE_ROWS = 160  # in all, and at least 4 a series; every point is in the CSV
FEW_RUNS = 3  # whose links stand in the caption; of more, their number does, and opens to the list

_shown = {}  # id -> figure, to catch two figures of one name on a page


def page(figure):
    """The figure as HTML, one of its name on a page, for `_static/explorable.js`."""
    if _shown.setdefault(figure.id, figure) is not figure:
        raise ValueError(f"Explorable.id: expected one figure of a name, got {figure.id!r} twice")
    return html(figure)


def html(figure):
    """The figure as HTML, for the page's script to bring to life."""
    state = figure.default_state()
    view = resolve(figure, state)
    caption = f"{figure.id}-caption"
    note = "The controls need JavaScript; picture and table show the first setting."
    return tag(
        "figure",
        tag("div", *controls(figure, view), limits(figure), cls="explorable-controls"),
        tag("noscript", tag("p", note, cls="explorable-note")),
        tag(
            "div",
            _plot(figure, view),
            tag("p", NOT_MEASURED.capitalize(), cls="explorable-empty", hidden=not view.empty),
            cls="explorable-frame",
            style=f"--aspect: {figure.aspect:.4g}",
        ),
        _crossing(figure, view, state),
        tag("div", _table(view), _csv_button(), cls="explorable-tools"),
        tag(
            "figcaption",
            tag("p", inline(figure.caption), id=caption),
            _provenance(figure.provenance),
        ),
        json_script(payload(figure)),
        cls="explorable figure-frame",
        id=figure.id,
        aria_labelledby=caption,
    )


def payload(figure):
    """What the page's script needs of a figure; each distinct column is stored once."""
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
                "link": control.link,
                "options": list(control.options.items()),
                "default": control.default,
                "axis": control.name in figure.axes,
            }
            for control in figure.controls
        ],
        "crossing": asdict(figure.crossing) if figure.crossing else None,
        "curves": [
            asdict(curve) | {"columns": {name: place(v) for name, v in curve.columns.items()}}
            for curve in figure.curves
        ],
        "arrays": arrays,
    }


def _plot(figure, view):
    picture = "" if view.empty else still(figure)
    return tag("div", picture, cls="explorable-plot", role="img", aria_label=figure.alt)


def _crossing(figure, view, state):
    if figure.crossing is None:
        return ""
    level, rows, sentence = crossings(figure, view, state)
    axis = figure.axes["y"][figure.crossing.column]
    label, name = figure.crossing.label, f"{figure.id}-level"
    return tag(
        "div",
        tag(
            "div",
            tag("label", escape(label), cls="figure-label", **{"for": name}),
            tag("input", type="range", id=name, step="any", min="0", max="1"),
            tag("input", type="number", step="any", aria_label=f"{label}, typed", value=level),
            tag("span", escape(axis.unit), cls="explorable-unit"),
            cls="explorable-level-control",
        ),
        tag(
            "div",
            tag("ul", *(tag("li", _answer(figure, curve, at)) for curve, at in rows)),
            tag("p", escape(sentence)),
            cls="explorable-answer",
            aria_live="polite",
        ),
        cls="explorable-crossing",
    )


def _answer(figure, curve, at):
    name = tag("b", escape(curve.name), style=f"color: var(--{curve.color}-text)")
    if None in at.values():
        return f"{name} not reached"
    return f"{name} {escape(' · '.join(quantity(at[x], a) for x, a in figure.axes['x'].items()))}"


def _table(view):
    spread = any(trace.low for trace in view.traces)
    heads = ["Series", view.x.caption, view.y.caption] + (["from", "to"] if spread else [])
    rows, most = [], max(4, TABLE_ROWS // max(1, len(view.traces)))
    for trace in view.traces:
        for i in range(0, len(trace.x), -(-len(trace.x) // most)):
            cells = [_cell(trace.x[i], view.x), _cell(trace.y[i], view.y)]
            if spread:
                ends = (trace.low, trace.high)
                cells += [_cell(end[i] if end else None, view.y) for end in ends]
            name = tag("th", escape(trace.curve.name), scope="row")
            rows.append(tag("tr", name, *(tag("td", escape(cell)) for cell in cells)))
    head = tag("tr", *(tag("th", escape(text), scope="col") for text in heads))
    # The script makes the table when it is opened: no page carries its cells as elements.
    table = tag("noscript", tag("table", tag("thead", head), tag("tbody", *rows)))
    scroll = tag(
        "div",
        table,
        cls="explorable-scroll",
        tabindex="0",
        role="region",
        aria_label="Data of the figure",
    )
    return tag("details", tag("summary", "Table"), scroll, cls="explorable-data")


def _cell(value, axis):
    return value if isinstance(value, str) else format_number(value, axis.digits)


def _csv_button():
    return tag("button", "Download CSV", type="button", cls="explorable-csv", hidden=True)


def _provenance(records):
    """One line for all records: what they share is said once, dates as a span.

    The files of many runs fold, with what was typed and under which commits, below their number.
    """
    if not records:
        return ""

    def said(field):
        return escape(", ".join(dict.fromkeys(getattr(record, field) for record in records)))

    dates = sorted({record.date for record in records})
    span = escape(dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}")
    links = list(dict.fromkeys(record.href for record in records if record.href))
    # A file's name says which run it is of; "JSON 7" says nothing.
    names = ["JSON"] if len(links) == 1 else [Path(href).stem for href in links]
    data = ", ".join(
        tag("a", escape(name), href=href) for name, href in zip(names, links, strict=True)
    )
    device, commit, command = said("device"), said("commit"), tag("code", said("command"))
    if len(links) <= FEW_RUNS:
        return tag("p", _dotted(device, commit, span, command, data), cls="figure-provenance")
    return tag(
        "details",
        tag("summary", _dotted(f"From {len(links)} stored runs", device, span)),
        tag("p", _dotted(commit, command, data)),
        cls="figure-provenance",
    )


def _dotted(*parts):
    return " · ".join(filter(None, parts))
