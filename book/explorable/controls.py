"""A figure's controls as HTML, which explorable.js listens to."""

from html import escape

from .curves import strokes
from .markup import tag
from .spec import NOT_MEASURED

FEW_CONTROLS = 3  # controls that a phone shows above a plot
MOST_NAMES = 7  # entries of a legend; more do not help to tell lines apart


def controls(figure, view):
    """All controls. On a phone more than FEW_CONTROLS would leave no space for the plot.

    So those after the first that are no legend are folded; explorable.css unfolds them elsewhere.
    """
    legend = {figure.color, figure.dash}
    if len(figure.controls) <= FEW_CONTROLS:
        return [_control(figure, control, view) for control in figure.controls]
    first, *others = figure.controls
    legends = [one for one in others if one.kind == "check" and one.name in legend]
    folds = [one for one in others if one not in legends]
    chosen = tag("span", cls="explorable-chosen")
    fold = tag(
        "details",
        tag("summary", tag("span", "More choices"), chosen, cls="figure-label"),
        *(_control(figure, control, view) for control in folds),
        cls="explorable-more",
    )
    shown = [_control(figure, control, view) for control in (first, *legends)]
    return [shown[0], fold if folds else "", *shown[1:]]


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
        _select(control) if control.kind == "select" else _range(control),
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
    note = tag("span", f" ({NOT_MEASURED})" if absent_here else "", cls="figure-hidden")
    text = tag("span", _swatch(figure, control, i), escape(label), note)
    return tag("label", box, text, cls="figure-choice", data_unmeasured=absent_here)


def _swatch(figure, control, i):
    value = list(control.options)[i]
    if control.kind != "check" or control.name not in (figure.color, figure.dash):
        return ""
    if control.name == figure.dash and figure.mark == "bar":
        return _box("none" if i else "currentColor")
    color = f"var(--{figure.palette[value]})" if control.name == figure.color else "currentColor"
    style = i if control.name == figure.dash else figure.strokes[value]
    return _line(color, strokes(style))


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


def limits(figure):
    """Names of the lines without a checkbox, for plots too narrow to label them."""
    others = {curve.name: curve for curve in figure.curves if curve.role != "series"}
    items = [
        tag("li", _line(f"var(--{curve.color})", curve.dash), escape(name))
        for name, curve in others.items()
    ]
    return tag("ul", *items, cls="explorable-limits") if items else ""
