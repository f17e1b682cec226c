"""A figure's controls as HTML, which explorable.js listens to.

Settings stand above the plot. Below it stands the legend, whose choices show and hide what they
name.
"""

from html import escape

from .curves import strokes
from .markup import tag
from .spec import NOT_MEASURED

FEW_CONTROLS = 3  # controls that a phone shows around a plot
MOST_NAMES = 7  # entries of a legend; more do not help to tell lines apart


def settings(figure, view):
    """The controls above the plot.

    If a figure has more than FEW_CONTROLS, those after the first are folded on a phone, to leave
    space for the plot; explorable.css unfolds them elsewhere.
    """
    chosen = [one for one in figure.controls if not _names_marks(figure, one)]
    first, others = chosen[:1], chosen[1:]
    shown = [_control(figure, control, view) for control in first]
    folded = [_control(figure, control, view) for control in others]
    if folded and len(figure.controls) > FEW_CONTROLS:
        words = tag("span", "More choices"), tag("span", cls="explorable-chosen")
        summary = tag("summary", *words, cls="figure-label")
        folded = [tag("details", summary, *folded, cls="explorable-more")]
    return _row("settings", shown + folded)


def legend(figure, view):
    """The controls that name marks and show or hide them.

    Names of lines without a checkbox follow, for plots too narrow to label them.
    """
    named = [
        _control(figure, control, view)
        for control in figure.controls
        if _names_marks(figure, control)
    ]
    others = {curve.name: curve for curve in figure.curves if curve.role != "series"}
    items = [
        tag("li", _swatch(_mark(figure, curve), f"var(--{curve.color})", curve.dash), escape(name))
        for name, curve in others.items()
    ]
    drawn = any(trace.curve.role != "series" for trace in view.traces)
    limits = [tag("ul", *items, cls="explorable-limits", hidden=not drawn)] if items else []
    return _row("legend", named + limits)


def _row(name, parts):
    return tag("div", *parts, cls=f"explorable-controls explorable-{name}") if parts else ""


def _names_marks(figure, control):
    return control.kind == "check" and control.name in (figure.color, figure.dash)


def _control(figure, control, view):
    label = escape(control.label)
    if control.kind in ("radio", "check"):
        choices, more = _split(
            control, [_choice(figure, control, i, view) for i in range(len(control.options))]
        )
        missing = set(control.options) - control.measured
        key = tag("span", NOT_MEASURED, cls="explorable-key", aria_hidden="true")
        return tag(
            "fieldset",
            tag("legend", label, cls="figure-label"),
            tag("span", *choices, cls="figure-choices"),
            _more(control, more),
            key if missing and control.kind == "radio" else "",
            cls=f"figure-control figure-{control.kind}",
            data_control=control.name,
        )
    return tag(
        "label",
        tag("span", label, cls="figure-label"),
        _select(control),
        cls="figure-control",
        data_control=control.name,
    )


def _split(control, choices):
    """The choices that are shown, and those behind a fold: of a long legend, those not drawn."""
    if control.kind != "check" or len(choices) <= MOST_NAMES:
        return choices, []
    named = sorted(
        range(len(choices)), key=lambda i: list(control.options)[i] not in control.default
    )
    seen = sorted(named[:MOST_NAMES])
    return [choices[i] for i in seen], [choices[i] for i in range(len(choices)) if i not in seen]


def _more(control, choices):
    if not choices:
        return ""
    noun = control.label.lower()
    return tag(
        "details",
        tag("summary", escape(f"More {noun if noun.endswith('s') else f'{noun}s'}")),
        tag("span", *choices, cls="figure-choices"),
        cls="explorable-rest",
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
    note = tag("span", f" ({NOT_MEASURED})" if absent_here else "", cls="figure-hidden")
    text = tag("span", _look(figure, control, i), escape(label), note)
    return tag("label", box, text, cls="figure-choice", data_unmeasured=absent_here)


def _look(figure, control, i):
    """The swatch of a choice of the legend."""
    if not _names_marks(figure, control):
        return ""
    value = list(control.options)[i]
    color = f"var(--{figure.palette[value]})" if control.name == figure.color else None
    style = i if control.name == figure.dash else figure.strokes[value]
    return _swatch(figure.mark, color, strokes(style))


def _mark(figure, curve):
    return "line" if curve.role == "ceiling" else figure.mark


def _swatch(mark, color, dash):
    """A small picture of a mark, the same as in explorable-draw.js.

    The dot is at the end of its line, because in the middle it would cover a gap between strokes.
    """
    line = tag("path", d="M0 5H22", stroke_dasharray=" ".join(map(str, dash)) or None)
    fill = "none" if dash else "currentColor"
    width, shapes = {
        "line": (22, [line]),
        "line+dot": (24, [line, tag("circle", cx=20.5, cy=5, r=2)]),
        "dot": (10, [tag("circle", cx=5, cy=5, r=3.5)]),
        "bar": (10, [tag("path", d="M1 1h8v8H1Z", stroke_width=1.5, fill=fill)]),
    }[mark]
    return tag(
        "svg",
        *shapes,
        cls="explorable-swatch",
        color=color,
        width=width,
        height=10,
        aria_hidden="true",
    )
