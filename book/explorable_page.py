"""The page's face of an Explorable: HTML that is whole without JavaScript.

Controls, picture, table and provenance are written here, so that they exist,
labelled, before or without the script; the data lies beside them as JSON.
"""

import json
import re
from dataclasses import asdict
from html import escape

from explorable import crossings, resolve
from explorable_numbers import format_number, progression, quantity
from explorable_still import still

NOT_MEASURED = "not measured yet"
DASHES = ("", "7 4", "2 3", "8 3 2 3", "12 4")
TABLE_ROWS = 16  # a series in the table; all of them are in the CSV

_shown = {}  # id -> figure, to catch two figures of one name on a page


def page(figure):
    """The figure as HTML for `_static/explorable.js` to bring to life."""
    other = _shown.setdefault(figure.id, figure)
    if other is not figure:
        raise ValueError(f"Explorable.id: expected an id used once on a page, got {figure.id!r} twice")
    state = figure.default_state()
    view = resolve(figure, state)
    controls = "\n".join(_control(figure, control, view) for control in figure.controls)
    plot = still(figure) if not view.empty else ""
    return f"""\
<figure class="explorable" id="{figure.id}" aria-labelledby="{figure.id}-caption">
<div class="explorable-controls">
{controls}
</div>
<noscript><p class="explorable-note">The controls need JavaScript; picture and table show the first setting.</p></noscript>
<div class="explorable-frame" style="--aspect: {figure.aspect:.4g}">
<div class="explorable-plot" role="img" aria-label="{escape(figure.alt)}">{plot}</div>
<p class="explorable-empty"{"" if view.empty else " hidden"}>{NOT_MEASURED.capitalize()}</p>
</div>
{_crossing(figure, view, state)}<div class="explorable-tools">
<details class="explorable-data"><summary>Table</summary>
<div class="explorable-scroll" tabindex="0" role="region" aria-label="Data of the figure">{_table(view)}</div>
</details>
<button type="button" class="explorable-csv" hidden>Download CSV</button>
</div>
<figcaption><p id="{figure.id}-caption">{inline(figure.caption)}</p>{_provenance(figure.provenance)}</figcaption>
<script type="application/json">{payload(figure)}</script>
</figure>"""


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


def payload(figure):
    """Compact JSON of the figure; each distinct column is stored once."""
    arrays, index = [], {}

    def place(values):
        key = json.dumps(progression(values) or values, separators=(",", ":"))
        if key not in index:
            index[key] = len(arrays)
            arrays.append(progression(values) or values)
        return index[key]

    curves = [
        {
            "name": curve.name, "color": curve.color, "dash": curve.dash, "role": curve.role,
            "keys": curve.keys, "source": curve.source,
            "columns": {name: place(values) for name, values in curve.columns.items()},
        }
        for curve in figure.curves
    ]  # fmt: skip
    controls = [
        {
            "name": control.name, "kind": control.kind, "label": control.label, "link": control.link,
            "options": list(control.options.items()), "default": control.default,
            "axis": control.name in figure.axes,
        }
        for control in figure.controls
    ]  # fmt: skip
    axes = {
        name: [asdict(axis) | {"caption": axis.caption, "noun": axis.noun} for axis in axes.values()]
        for name, axes in figure.axes.items()
    }
    document = {
        "id": figure.id, "mark": figure.mark, "color": figure.color, "axes": axes, "controls": controls,
        "crossing": asdict(figure.crossing) if figure.crossing else None, "curves": curves, "arrays": arrays,
    }  # fmt: skip
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")


def _control(figure, control, view):
    legend = f'<span class="explorable-label">{escape(control.label)}</span>'
    if control.kind in ("radio", "check"):
        choices = "".join(_choice(figure, control, i, view) for i in range(len(control.options)))
        missing = set(control.options) - control.measured
        note = f'<span class="explorable-key" aria-hidden="true">{NOT_MEASURED}</span>' if missing else ""
        return (
            f'<fieldset class="explorable-control explorable-{control.kind}" data-control="{escape(control.name)}">'
            f'<legend class="explorable-label">{escape(control.label)}</legend>'
            f'<span class="explorable-choices">{choices}</span>{note}</fieldset>'
        )
    opening = f'<label class="explorable-control" data-control="{escape(control.name)}">{legend}'
    if control.kind == "select":
        choices = "".join(
            f'<option value="{escape(value)}"'
            + (" selected" if value == control.default else "")
            + (f">{escape(label)}" if value in control.measured else f" disabled>{escape(label)} – {NOT_MEASURED}")
            + "</option>"
            for value, label in control.options.items()
        )
        return f"{opening}<select>{choices}</select></label>"
    position = list(control.options).index(control.default)
    text = escape(control.options[control.default])
    return (
        f'{opening}<input type="range" min="0" max="{len(control.options) - 1}" step="1" value="{position}" '
        f'aria-valuetext="{text}"><output>{text}</output></label>'
    )


def _choice(figure, control, i, view):
    value, label = list(control.options.items())[i]
    chosen = value in control.default if control.kind == "check" else value == control.default
    absent = value not in control.measured
    here = absent or value in view.unmeasured.get(control.name, ())
    kind = {"radio": "radio", "check": "checkbox"}[control.kind]
    return (
        f'<label class="explorable-choice"{" data-unmeasured" if here else ""}><input type="{kind}" '
        f'name="{figure.id}-{escape(control.name)}" value="{escape(value)}"'
        f"{' checked' if chosen else ''}{' disabled' if absent else ''}>"
        f"<span>{_swatch(figure, control, i, value)}{escape(label)}"
        f'<span class="explorable-hidden">{f" ({NOT_MEASURED})" if here else ""}</span></span></label>'
    )


def _swatch(figure, control, i, value):
    if control.name not in (figure.color, figure.dash) or control.kind != "check":
        return ""
    color = f"var(--{figure.palette[value]})" if control.name == figure.color else "currentColor"
    dash = f' stroke-dasharray="{DASHES[i % len(DASHES)]}"' if control.name == figure.dash and i else ""
    return (
        '<svg class="explorable-swatch" width="22" height="10" aria-hidden="true">'
        f'<path d="M0 5H22" stroke="{color}" stroke-width="3"{dash}/></svg>'
    )


def _crossing(figure, view, state):
    if figure.crossing is None:
        return ""
    level, rows, sentence = crossings(figure, view, state)
    axis = figure.axes["y"][figure.crossing.column]
    value = "" if level is None else f' value="{level}"'
    answers = "".join(f"<li>{_answer(figure, curve, at)}</li>" for curve, at in rows)
    unit = f'<span class="explorable-unit">{escape(axis.unit)}</span>'
    name = f"{figure.id}-level"
    return f"""\
<div class="explorable-crossing">
<div class="explorable-level-control"><label class="explorable-label" for="{name}">{escape(figure.crossing.label)}</label>
<input type="range" id="{name}" step="any" min="0" max="1"><input type="number" step="any" aria-label="{escape(figure.crossing.label)}, typed"{value}>{unit}</div>
<div class="explorable-answer" aria-live="polite"><ul>{answers}</ul><p>{escape(sentence)}</p></div>
</div>
"""


def _answer(figure, curve, at):
    name = f'<b style="color: var(--{curve.color}-text)">{escape(curve.name)}</b>'
    if all(value is None for value in at.values()):
        return f"{name} not reached"
    return f"{name} " + " · ".join(escape(quantity(at[x], axis)) for x, axis in figure.axes["x"].items())


def _table(view):
    spread = any(trace.low for trace in view.traces)
    heads = ["Series", view.x.caption, view.y.caption] + (["from", "to"] if spread else [])
    rows = []
    for trace in view.traces:
        every = max(1, -(-len(trace.x) // TABLE_ROWS))
        for i in range(0, len(trace.x), every):
            cells = [(trace.x[i], view.x), (trace.y[i], view.y)]
            if spread:
                cells += [(ends[i] if ends else None, view.y) for ends in (trace.low, trace.high)]
            numbers = "".join(f"<td>{escape(_cell(value, axis))}</td>" for value, axis in cells)
            rows.append(f'<tr><th scope="row">{escape(trace.curve.name)}</th>{numbers}</tr>')
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _cell(value, axis):
    return value if isinstance(value, str) else format_number(value, axis.digits)


def _provenance(records):
    if not records:
        return ""

    def said(field):
        return ", ".join(dict.fromkeys(getattr(record, field) for record in records))

    dates = sorted({record.date for record in records})
    date = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    links = list(dict.fromkeys(record.href for record in records if record.href))
    data = " ".join(
        f'<a href="{escape(href)}">{"JSON" if len(links) == 1 else f"JSON {i}"}</a>' for i, href in enumerate(links, 1)
    )
    parts = [escape(said("device")), escape(said("commit")), date, f"<code>{escape(said('command'))}</code>"]
    return f'<p class="explorable-provenance">{" · ".join(filter(None, [*parts, data]))}</p>'
