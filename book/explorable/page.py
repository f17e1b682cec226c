"""The page's face of an Explorable: HTML that is whole without JavaScript.

Controls, picture, table and provenance are written here, so that they exist,
labelled, before or without the script; the data lies beside them as JSON.
"""

import json
import re
from dataclasses import asdict
from html import escape
from pathlib import Path

from .numbers import format_number, progression, quantity
from .spec import NOT_MEASURED
from .still import still
from .view import crossings, resolve, strokes

TABLE_ROWS = 160  # in all, and at least 4 a series; every point is in the CSV
FEW_RUNS = 3  # whose links stand in the caption; of more, their number does, and opens to the list
FEW_CONTROLS = 3  # that a phone shows above a plot

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
        tag("div", *_controls(figure, view), _limits(figure), cls="explorable-controls"),
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
        cls="explorable",
        id=figure.id,
        aria_labelledby=caption,
    )


def tag(name, /, *children, **attributes):
    """An HTML element. `cls` is class; True gives a bare attribute, False and None none.

    Children are HTML: text has to be escaped by the caller; attributes are escaped here.
    """
    written = ""
    for key, value in attributes.items():
        key = "class" if key == "cls" else key.replace("_", "-")
        if value is True:
            written += f" {key}"
        elif value is not False and value is not None:
            written += f' {key}="{escape(str(value))}"'
    opening = f"<{name}{written}>"
    return opening if name == "input" else f"{opening}{''.join(children)}</{name}>"


def inline(text):
    """Escaped HTML of text with *emphasis*, **strength**, `code` and [links](target)."""
    text = escape(text, quote=False)
    for pattern, replacement in (
        (r"`([^`]+)`", r"<code>\1</code>"),
        (r"\[([^\]]+)\]\(([^)\s]+)\)", r'<a href="\2">\1</a>'),
        (r"\*\*([^*]+)\*\*", r"<strong>\1</strong>"),
        (r"\*([^*]+)\*", r"<em>\1</em>"),
    ):
        text = re.sub(pattern, replacement, text)
    return text


def json_script(document, **attributes):
    """Data in a script element, whatever its strings hold.

    No `<` is left: `<!--<script>` alone would swallow the rest of a page.
    """
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    text = text.replace("<", "\\u003c")
    return tag("script", text, type="application/json", **attributes)


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


def _controls(figure, view):
    """All controls; of more than FEW_CONTROLS those that are no legend fold on a phone, after the
    first: beside them the plot would not fit the screen. explorable.css unfolds them elsewhere."""
    legend = {figure.color, figure.dash}
    if len(figure.controls) <= FEW_CONTROLS:
        return [_control(figure, control, view) for control in figure.controls]
    first, *others = figure.controls
    legends = [one for one in others if one.kind == "check" and one.name in legend]
    folds = [one for one in others if one not in legends]
    fold = tag(
        "details",
        tag("summary", "More choices", cls="explorable-label"),
        *(_control(figure, control, view) for control in folds),
        cls="explorable-more",
    )
    shown = [_control(figure, control, view) for control in (first, *legends)]
    return [shown[0], fold if folds else "", *shown[1:]]


def _control(figure, control, view):
    label = escape(control.label)
    if control.kind in ("radio", "check"):
        choices = [_choice(figure, control, i, view) for i in range(len(control.options))]
        missing = set(control.options) - control.measured
        key = tag("span", NOT_MEASURED, cls="explorable-key", aria_hidden="true")
        return tag(
            "fieldset",
            tag("legend", label, cls="explorable-label"),
            tag("span", *choices, cls="explorable-choices"),
            key if missing and control.kind == "radio" else "",
            cls=f"explorable-control explorable-{control.kind}",
            data_control=control.name,
        )
    return tag(
        "label",
        tag("span", label, cls="explorable-label"),
        _select(control) if control.kind == "select" else _range(control),
        cls="explorable-control",
        data_control=control.name,
    )


def _select(control):
    return tag(
        "select",
        *(
            tag(
                "option",
                escape(label if value in control.measured else f"{label} – {NOT_MEASURED}"),
                value=value,
                selected=value == control.default,
                disabled=value not in control.measured,
            )
            for value, label in control.options.items()
        ),
    )


def _range(control):
    text = control.options[control.default]
    slider = tag(
        "input",
        type="range",
        min="0",
        max=len(control.options) - 1,
        step="1",
        value=list(control.options).index(control.default),
        aria_valuetext=text,
    )
    return slider + tag("output", escape(text))


def _choice(figure, control, i, view):
    value, label = list(control.options.items())[i]
    check = control.kind == "check"
    absent = value not in control.measured
    absent_here = absent or value in view.unmeasured.get(control.name, ())
    box = tag(
        "input",
        type="checkbox" if check else "radio",
        name=f"{figure.id}-{control.name}",
        value=value,
        checked=value in control.default if check else value == control.default,
        disabled=absent,
    )
    note = tag("span", f" ({NOT_MEASURED})" if absent_here else "", cls="explorable-hidden")
    text = tag("span", _swatch(figure, control, i), escape(label), note)
    return tag("label", box, text, cls="explorable-choice", data_unmeasured=absent_here)


def _swatch(figure, control, i):
    value = list(control.options)[i]
    if control.kind != "check" or control.name not in (figure.color, figure.dash):
        return ""
    if control.name == figure.dash and figure.mark == "bar":
        return _box("none" if i else "currentColor")
    color = f"var(--{figure.palette[value]})" if control.name == figure.color else "currentColor"
    return _line(color, strokes(i) if control.name == figure.dash else ())


def _line(color, dash):
    path = tag(
        "path",
        d="M0 5H22",
        stroke=color,
        stroke_width="3",
        stroke_dasharray=" ".join(map(str, dash)) or "none",
    )
    return _picture(path)


def _box(fill):
    path = tag("path", d="M1 1H21V9H1Z", fill=fill, stroke="currentColor", stroke_width="1.5")
    return _picture(path)


def _picture(path):
    return tag("svg", path, cls="explorable-swatch", width="22", height="10", aria_hidden="true")


def _limits(figure):
    """Names of the lines that no checkbox names, for plots too narrow to label them."""
    others = {curve.name: curve for curve in figure.curves if curve.role != "series"}
    items = [
        tag("li", _line(f"var(--{curve.color})", curve.dash), escape(name))
        for name, curve in others.items()
    ]
    return tag("ul", *items, cls="explorable-limits") if items else ""


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
            tag("label", escape(label), cls="explorable-label", **{"for": name}),
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
        return tag("p", _dotted(device, commit, span, command, data), cls="explorable-provenance")
    return tag(
        "details",
        tag("summary", _dotted(f"From {len(links)} stored runs", device, span)),
        tag("p", _dotted(commit, command, data)),
        cls="explorable-provenance",
    )


def _dotted(*parts):
    return " · ".join(filter(None, parts))
