"""An Explorable on a page: HTML that is complete without JavaScript.

Controls, picture, table and provenance are written here, with their labels, so that they work
before or without the script. The data is beside them as JSON.
"""

import re
from html import escape
from pathlib import Path

from .controls import legend, settings
from .markup import inline, json_script, tag
from .model import payload, resolve
from .spec import NOT_MEASURED
from .still import still

BOLD = re.compile(r"\*\*.+?\*\*(?=\s|$)", re.S)
FEW_RUNS = 3  # links in the caption; of more runs only the number, which opens the list

_shown = {}  # id -> figure, to catch two figures of one name on a page


def page(figure):
    """The figure as HTML for `_static/explorable.js`. Raises ValueError for two of one name."""
    if _shown.setdefault(figure.id, figure) is not figure:
        raise ValueError(f"Explorable.id: expected one figure of a name, got {figure.id!r} twice")
    whole = html(figure)
    if not figure.fold:
        return whole
    return tag("details", tag("summary", escape(figure.fold)), whole, cls="folded explorable-fold")


def html(figure):
    """The figure as HTML, which the page's script makes interactive."""
    view = resolve(figure)
    name = f"{figure.id}-caption"
    message, caption = _parted(figure.caption)
    note = "The controls need JavaScript; picture and table show the first setting."
    return tag(
        "figure",
        tag("p", inline(message), id=name, cls="explorable-message") if message else "",
        settings(figure, view),
        tag("noscript", tag("p", note, cls="explorable-note")),
        tag(
            "div",
            _plot(figure, view),
            tag("p", NOT_MEASURED.capitalize(), cls="explorable-empty", hidden=not view.empty),
            cls="explorable-frame",
            style=f"--aspect: {figure.aspect:.4g}",
        ),
        legend(figure, view),
        _crossing(figure, view),
        json_script(payload(figure)),
        tag(
            "figcaption",
            tag("p", inline(caption), id=None if message else name) if caption else "",
            _provenance(figure.provenance),
            tag("div", _table(view), _csv_button(), cls="explorable-tools"),
        ),
        cls="explorable figure-frame",
        id=figure.id,
        aria_labelledby=name,
    )


def _parted(caption):
    """The bold words that a caption begins with, as a message of their own, and the rest."""
    bold = BOLD.match(caption)
    return (bold[0], caption[bold.end() :].strip()) if bold else ("", caption)


def _plot(figure, view):
    picture = "" if view.empty else still(figure)
    return tag("div", picture, cls="explorable-plot", role="img", aria_label=figure.alt)


def _crossing(figure, view):
    if figure.crossing is None:
        return ""
    read = view.crossings
    axis = figure.axes["y"][figure.crossing.column]
    label, name = figure.crossing.label, f"{figure.id}-level"
    return tag(
        "div",
        tag(
            "div",
            tag("label", escape(label), cls="figure-label", **{"for": name}),
            tag("input", type="range", id=name, step="any", min="0", max="1"),
            tag("input", type="number", step="any", aria_label=f"{label}, typed", value=read.level),
            tag("span", escape(axis.unit), cls="explorable-unit"),
            cls="explorable-level-control",
        ),
        tag(
            "div",
            tag("ul", *(tag("li", _answer(curve, text)) for curve, _, text in read.rows)),
            tag("p", escape(read.sentence)),
            cls="explorable-answer",
            aria_live="polite",
        ),
        cls="explorable-crossing",
    )


def _answer(curve, text):
    name = tag("b", escape(curve.name), style=f"color: var(--{curve.color}-text)")
    return f"{name} {escape(text)}"


def _table(view):
    head = tag("tr", *(tag("th", escape(text), scope="col") for text in view.head))
    rows = [
        tag("tr", tag("th", escape(name), scope="row"), *(tag("td", escape(one)) for one in cells))
        for name, *cells in view.rows
    ]
    # The script makes the table when it is opened, so pages do not carry its cells as elements.
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


def _csv_button():
    return tag("button", "Download CSV", type="button", cls="explorable-csv", hidden=True)


def _provenance(records):
    """One line for all records: common values are given once, dates as a range.

    The files of many runs are folded below their number, with their commands and commits.
    """
    if not records:
        return ""

    def values(field):
        return escape(", ".join(dict.fromkeys(getattr(record, field) for record in records)))

    dates = sorted({record.date for record in records})
    span = escape(dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}")
    links = list(dict.fromkeys(record.href for record in records))
    # A link shows the file's name, which identifies its run; "JSON 7" would not.
    names = ["JSON"] if len(links) == 1 else [Path(href).stem for href in links]
    data = ", ".join(
        tag("a", escape(name), href=href) for name, href in zip(names, links, strict=True)
    )
    device, commit, command = values("device"), values("commit"), tag("code", values("command"))
    if len(links) <= FEW_RUNS:
        return tag("p", _dotted(device, commit, span, command, data), cls="figure-provenance")
    return tag(
        "details",
        tag("summary", _dotted(f"From {len(links)} stored runs", device, span)),
        tag("p", _dotted(commit, command, data)),
        cls="figure-provenance",
    )


def _dotted(*parts):
    return " · ".join(parts)
