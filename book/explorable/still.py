"""The figure's first state as SVG, for readers without JavaScript and while plotly loads.

matplotlib draws with the palette's colours; they are then replaced by CSS variables,
so that one picture follows the page's light and dark themes and its fonts.
"""

import io
import re

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from . import palette
from .model import linear_ticks, log_ticks, resolve

WIDTH = 6.6  # inches; text of 9 pt then has the size of the page's small print
LABEL_GAP = 11  # points between two labels
POINTS = 2400  # in total, and at most 160 a line: more are not visible at this width
COORDINATE = re.compile(r"\d+\.\d{2,}")
GRID_ON_WHITE = "#E3E3E3"
INK, GRID = "#010203", "#010204"  # stand-ins for colours that only the page has
# Kept as text, not as paths: it is smaller and takes the page's font.
STYLE = {
    "svg.fonttype": "none",
    "path.simplify": True,
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
}


def still(figure, theme=None):
    """SVG of the default state, in the colours of `theme`, or in CSS variables if None."""
    return svg_of(lambda: _drawn(figure), figure.id, theme)


def svg_of(draw, name, theme=None):
    """SVG of the canvas that `draw()` returns; `name` makes its ids unique on a page."""
    with rc_context(STYLE | {"svg.hashsalt": name}):
        buffer = io.StringIO()
        FigureCanvasSVG(draw()).print_svg(buffer, metadata={"Date": None, "Creator": None})
    return _themed(_compact(buffer.getvalue(), name), theme)


def picture(figure, width=660, height=None):
    """PNG of the default state, light, for a notebook before it is run. Sizes in dots."""

    def on_white():
        canvas = _drawn(figure)
        if height:
            canvas.set_size_inches(WIDTH, WIDTH * height / width)
        (axes,) = canvas.axes
        for line in (*axes.get_xgridlines(), *axes.get_ygridlines()):
            line.set_color(GRID_ON_WHITE)
        return canvas

    return png_of(on_white, width / WIDTH)


def png_of(draw, dpi):
    """PNG, on white, of the canvas that `draw()` returns."""
    with rc_context(STYLE):
        canvas = draw()
        canvas.set_facecolor("white")
        canvas.set_dpi(dpi)
        buffer = io.BytesIO()
        FigureCanvasAgg(canvas).print_png(buffer, metadata={"Software": None})
    return buffer.getvalue()


def _drawn(figure):
    """The default state on a matplotlib canvas."""
    view = resolve(figure)
    canvas = Figure(figsize=(WIDTH, WIDTH / figure.aspect), layout="constrained", facecolor="none")
    axes = canvas.add_subplot(facecolor="none")
    for place, trace in enumerate(view.traces):
        _draw(axes, figure.mark, trace, view, place)
    names = _categories(view)
    if names:
        axes.yaxis.set_major_locator(FixedLocator(range(len(names))))
        axes.yaxis.set_major_formatter(FixedFormatter(names))
        axes.set_ylim(len(names) - 0.5, -0.5)
    else:
        _axis(axes, view, "y")
    _axis(axes, view, "x")
    _furnish(axes, view, names)
    _label_ends(axes, figure.mark, view)
    return canvas


def _categories(view):
    """Names of the groups of bars, along y; none in other plots."""
    values = (value for trace in view.traces for value in trace.y)
    return list(dict.fromkeys(value for value in values if isinstance(value, str)))


def _axis(axes, view, name):
    axis, side = getattr(view, name), getattr(axes, f"{name}axis")
    if axis.log:
        getattr(axes, f"set_{name}scale")("log")
    if axis.range:
        getattr(axes, f"set_{name}lim")(*axis.range)
    low, high = getattr(axes, f"get_{name}lim")()
    most = {"x": 6, "y": 5}[name]
    if axis.log:
        ticks = log_ticks(low, high, axis.log, most)
    else:
        ticks = linear_ticks(low, high, most, view.counts[name])
    side.set_major_locator(FixedLocator([value for value, _ in ticks]))
    side.set_major_formatter(FixedFormatter([text for _, text in ticks]))
    side.set_minor_locator(NullLocator())
    getattr(axes, f"set_{name}lim")(low, high)


def _draw(axes, mark, trace, view, place):
    curve = trace.curve
    color = palette.colour(curve.color)
    ceiling = curve.role == "ceiling"
    if mark in ("line", "line+dot") or ceiling:
        every = max(1, len(trace.x) // min(160, POINTS // len(view.traces)))
        xs, ys = trace.x[::every], trace.y[::every]
        width = {"ceiling": 1.2, "computer": 3}.get(curve.role, 1.9)
        # Matplotlib gives dashes in units of the line's width.
        style = (0, tuple(n / width for n in curve.dash)) if curve.dash else "-"
        dots = "o" if mark == "line+dot" and not ceiling else None
        axes.plot(xs, ys, color=color, linestyle=style, linewidth=width, marker=dots, markersize=4)
        if trace.low and mark == "line":
            axes.fill_between(
                xs, trace.low[::every], trace.high[::every], color=color, alpha=0.18, linewidth=0
            )
        elif trace.low:
            _bars_of_error(axes, trace, trace.x, trace.y, color, "y")
    elif mark == "dot":
        axes.plot(trace.x, trace.y, "o", color=color, markersize=5)
    else:
        _draw_bars(axes, trace, view, place, color)


def _draw_bars(axes, trace, view, place, color):
    names, count = _categories(view), len(view.traces)
    height = 0.7 / count
    places = [names.index(value) + (place - (count - 1) / 2) * height for value in trace.y]
    filled = {"color": "none", "edgecolor": color} if trace.curve.dash else {"color": color}
    axes.barh(places, trace.x, height * 0.92, **filled)
    if trace.low:
        _bars_of_error(axes, trace, trace.x, places, color, "x")


def _bars_of_error(axes, trace, xs, ys, color, along):
    centre = xs if along == "x" else ys
    spread = [
        [c - low for c, low in zip(centre, trace.low, strict=True)],
        [high - c for c, high in zip(centre, trace.high, strict=True)],
    ]
    axes.errorbar(
        xs, ys, **{f"{along}err": spread}, fmt="none", color=color, elinewidth=1.2, capsize=2
    )


def _label_ends(axes, mark, view):
    lines = {
        trace.curve.name: trace
        for trace in view.traces
        if mark.startswith("line") or trace.curve.role == "ceiling"
    }
    if not lines or len(lines) > 8:
        return
    floor = float("-inf")
    for trace in sorted(lines.values(), key=lambda trace: trace.y[-1]):
        end = (trace.x[-1], trace.y[-1])
        height = axes.transData.transform(end)[1] * 72 / axes.figure.dpi
        floor = max(height, floor + LABEL_GAP)
        axes.annotate(
            trace.curve.name,
            end,
            xytext=(5, floor - height),
            textcoords="offset points",
            va="center",
            color=palette.colour(f"{trace.curve.color}-text"),
            annotation_clip=True,
        )


def _furnish(axes, view, names):
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    for name in "xy":
        axes.tick_params(name, length=0, labelcolor=INK, pad=5)
    axes.grid(axis="x" if names else "both", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    title = "" if names else view.y.caption
    axes.set_title(title, loc="left", fontsize=9, color=INK, pad=8)
    axes.set_xlabel(view.x.caption, labelpad=6)


def _compact(svg, figure_id):
    """Only the drawing, with unique ids, and coordinates to a tenth of a point."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->|<style.*?</style>", "", svg, flags=re.S)
    svg = re.sub(
        r'<svg [^>]*viewBox="([^"]+)"[^>]*>',
        r'<svg viewBox="\1" aria-hidden="true" focusable="false">',
        svg,
        count=1,
    )
    used = set(re.findall(r"#([\w-]+)[\"')]", svg))
    svg = re.sub(
        r' id="([^"]+)"', lambda m: f' id="{figure_id}-{m[1]}"' if m[1] in used else "", svg
    )
    svg = re.sub(r"(url\(|xlink:href=\")#", rf"\1#{figure_id}-", svg).replace("xlink:href", "href")
    # Inside tags only: a number between tags is a tick label, whose digits all count.
    svg = re.sub(r"<[^>]+>", lambda tag: COORDINATE.sub(_tenth, tag[0]), svg)
    svg = re.sub(
        r"font-family: [^;\"]*;?|stroke-linecap: square|transform=\"rotate\(-0 [^\"]*\"", "", svg
    )
    return re.sub(r">\s+<", "><", re.sub(r"\s*\n\s*", " ", svg))


def _tenth(match):
    return f"{float(match[0]):.1f}".rstrip("0").rstrip(".")


def _themed(svg, theme):
    if theme:
        fixed = {
            INK: palette.colour("this-computer", theme),
            GRID: {"light": GRID_ON_WHITE, "dark": "#3A3F45"}[theme],
        }
    else:
        fixed = {INK: "currentColor", GRID: "var(--figure-grid)"}
    for name in palette.names():
        for used in (name, f"{name}-text"):
            fixed.setdefault(
                palette.colour(used),
                f"var(--{used})" if theme is None else palette.colour(used, theme),
            )
    return re.sub(r"#[0-9a-fA-F]{6}\b", lambda m: fixed.get(m[0].upper(), m[0]), svg)
