"""The notebook's face of an Explorable: plotly's FigureWidget with ipywidgets.

The same controls, answered by Python through `resolve`; "this machine" joins the
stored curves as soon as it is measured.
"""

import ipywidgets as widgets
import plotly.graph_objects as go

from . import palette
from .numbers import log_ticks, quantity
from .page import inline
from .spec import NOT_MEASURED
from .view import crossings, resolve

INK = {"light": "#1f2328", "dark": "#e6e6e6"}
WIDTHS = {"ceiling": 1.5, "series": 2.4, "machine": 4}


class Live(widgets.VBox):
    """Controls above, plot below, readout beneath. `theme` is "light" or "dark"."""

    def __init__(self, figure, theme="light"):
        self.figure, self.theme = figure, theme
        figure.shown.append(self)
        self.state = figure.default_state()
        self.plot = go.FigureWidget()
        self.words = widgets.HTML()
        self.note = widgets.HTML()
        rows = [
            widgets.HBox(
                [self._control(control) for control in figure.controls],
                layout={"flex_flow": "row wrap"},
            )
        ]
        super().__init__(
            [
                *rows,
                self.note,
                self.plot,
                *self._level(),
                self.words,
                widgets.HTML(inline(figure.caption)),
            ]
        )
        self.refresh()

    def _caption(self):
        return widgets.HTML(inline(self.figure.caption))

    def refresh(self):
        """Draw what the controls now say."""
        view = resolve(self.figure, self.state)
        self.note.value = {
            "": "",
            "unmeasured": NOT_MEASURED.capitalize(),
            "unselected": "Nothing is selected",
        }[view.empty]
        with self.plot.batch_update():
            self.plot.data = ()
            self.plot.add_traces(
                [drawn for trace in view.traces for drawn in self._traces(trace, view)]
            )
            self.plot.layout = self._layout(view)
        if self.figure.crossing:
            self.words.value = self._answer(view)

    def _set(self, name, value):
        self.state[name] = value
        self.refresh()

    def _control(self, control):
        if control.kind == "check":
            return self._toggle(control)
        # ipywidgets cannot disable one option: what was not measured is named beside them.
        options = [
            (label, value) for value, label in control.options.items() if value in control.measured
        ]
        missing = [
            label for value, label in control.options.items() if value not in control.measured
        ]
        make = {
            "radio": widgets.ToggleButtons,
            "select": widgets.Dropdown,
            "range": widgets.SelectionSlider,
        }[control.kind]
        style = {"button_width": "auto"} if control.kind == "radio" else {}
        widget = make(
            options=options, value=control.default, description=control.label, style=style
        )
        widget.observe(lambda change: self._set(control.name, change["new"]), "value")
        if not missing:
            return widget
        return widgets.VBox([widget, widgets.HTML(f"{NOT_MEASURED}: {', '.join(missing)}")])

    def _toggle(self, control):
        boxes = {
            value: widgets.Checkbox(
                value in control.default,
                description=label,
                indent=False,
                disabled=value not in control.measured,
            )
            for value, label in control.options.items()
        }

        def chosen(_):
            self._set(control.name, tuple(value for value, box in boxes.items() if box.value))

        for box in boxes.values():
            box.observe(chosen, "value")
        return widgets.VBox([widgets.Label(control.label), *boxes.values()])

    def _level(self):
        crossing = self.figure.crossing
        if crossing is None:
            return []
        values = [y for curve in self.figure.curves for y in curve.columns[crossing.column]]
        level = crossings(self.figure, resolve(self.figure, self.state), self.state)[0]
        slider = widgets.FloatSlider(
            level, min=min(values), max=max(values), step=(max(values) - min(values)) / 200
        )
        slider.description, slider.readout_format = crossing.label, ".4g"
        slider.observe(lambda change: self._set("level", change["new"]), "value")
        return [slider]

    def _answer(self, view):
        _, rows, sentence = crossings(self.figure, view, self.state)
        lines = []
        for curve, at in rows:
            reached = " · ".join(
                quantity(at[x], axis)
                for x, axis in self.figure.axes["x"].items()
                if at[x] is not None
            )
            lines.append(f"<b>{curve.name}</b> {reached or 'not reached'}")
        return "<br>".join([*lines, sentence])

    def _traces(self, trace, view):
        curve, mark = trace.curve, self.figure.mark
        color = palette.colour(curve.color, self.theme)
        along = "y" if view.y.low else "x"
        common = {"x": trace.x, "y": trace.y, "name": curve.name}
        spread = {}
        if trace.low:
            centre = getattr(trace, along)
            up, down = (
                [abs(a - b) for a, b in zip(ends, centre, strict=True)]
                for ends in (trace.high, trace.low)
            )
            spread = {
                f"error_{along}": {
                    "array": up,
                    "arrayminus": down,
                    "color": color,
                    "thickness": 1.5,
                }
            }
        if mark == "bar" and curve.role != "ceiling":
            flat = isinstance(trace.y[0], str)
            hollow = {"color": "rgba(0,0,0,0)", "line": {"color": color, "width": 1.5}}
            marker = hollow if curve.dash else {"color": color}
            return [go.Bar(**common, **spread, orientation="h" if flat else "v", marker=marker)]
        lines = mark.startswith("line") or curve.role == "ceiling"
        mode = (
            ("lines+markers" if mark == "line+dot" and curve.role != "ceiling" else "lines")
            if lines
            else "markers"
        )
        line = {
            "color": color,
            "width": WIDTHS[curve.role],
            "dash": ",".join(f"{n}px" for n in curve.dash) or "solid",
        }
        if mark == "line" and trace.low:
            edge = {
                "x": trace.x,
                "mode": "lines",
                "line_width": 0,
                "hoverinfo": "skip",
                "showlegend": False,
            }
            fill = go.Scatter(**edge, y=trace.high, fill="tonexty", fillcolor=color, opacity=0.2)
            return [
                go.Scatter(**edge, y=trace.low),
                fill,
                go.Scatter(**common, mode=mode, line=line),
            ]
        return [
            go.Scatter(
                **common,
                **spread,
                mode=mode,
                line=line,
                marker={"color": color, "size": 7 if lines else 10},
            )
        ]

    def _layout(self, view):
        layout = go.Layout(
            template="none",
            hovermode="x unified",
            margin={"l": 60, "r": 20, "t": 40, "b": 50},
            height=420,
            paper_bgcolor="rgba(0,0,0,0)",
            plot_bgcolor="rgba(0,0,0,0)",
            font_color=INK[self.theme],
        )
        for name in ("x", "y"):
            axis = getattr(view, name)
            values = [value for trace in view.traces for value in getattr(trace, name)]
            drawn = {
                "title": {"text": axis.caption},
                "gridcolor": "rgba(128,128,128,0.25)",
                "zeroline": False,
            }
            if values and isinstance(values[0], str):
                drawn = {
                    "type": "category",
                    "autorange": "reversed" if name == "y" else True,
                    "automargin": True,
                }
            elif axis.log and values:
                low, high = axis.range or (min(values), max(values))
                ticks = log_ticks(low, high, axis.log, 8)
                drawn |= {
                    "type": "log",
                    "tickvals": [value for value, _ in ticks],
                    "ticktext": [text for _, text in ticks],
                }
            else:
                drawn |= {"separatethousands": True, "range": axis.range}
            layout[f"{name}axis"] = drawn
        return layout
