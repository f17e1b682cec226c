"""Drawings: pictures of an idea, without measured numbers and without interaction."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Polygon, Rectangle

from . import palette
from .markup import inline, tag
from .still import INK, png_of, svg_of

UNIT = 100  # units of a drawing in an inch; a phone shows 360 units in full size


@dataclass(frozen=True)
class Box:
    """A rectangle. `colour`: a name of the palette, or grey. `text` is written inside."""

    x: float
    y: float
    width: float
    height: float
    colour: str = ""
    text: str = ""
    dashed: bool = False
    filled: bool = True

    def draw(self, axes: Axes) -> None:
        ink = palette.colour(self.colour) if self.colour else INK
        place, size = (self.x, self.y), (self.width, self.height)
        if self.filled:
            axes.add_patch(Rectangle(place, *size, facecolor=ink, alpha=0.18, linewidth=0))
        style = "--" if self.dashed else "-"
        axes.add_patch(Rectangle(place, *size, fill=False, edgecolor=ink, ls=style, lw=1))
        if self.text:
            Words(self.x + self.width / 2, self.y + self.height / 2, self.text).draw(axes)


@dataclass(frozen=True)
class Triangle:
    """The lower left half of a square."""

    x: float
    y: float
    width: float
    colour: str

    def draw(self, axes: Axes) -> None:
        corners = ((self.x, self.y), (self.x, self.y + self.width))
        corners = (*corners, (self.x + self.width, self.y + self.width))
        ink = palette.colour(self.colour)
        axes.add_patch(Polygon(corners, facecolor=ink, alpha=0.4, linewidth=0))
        axes.add_patch(Polygon(corners, fill=False, edgecolor=ink, linewidth=1))


@dataclass(frozen=True)
class Arrow:
    """An arrow from one point to another."""

    start: tuple[float, float]
    end: tuple[float, float]

    def draw(self, axes: Axes) -> None:
        head = {"arrowstyle": "-|>", "mutation_scale": 8, "shrinkA": 0, "shrinkB": 0}
        axes.add_patch(FancyArrowPatch(self.start, self.end, color=INK, linewidth=1, **head))


@dataclass(frozen=True)
class Words:
    """A line of text around a point, or from it to the right."""

    x: float
    y: float
    text: str
    colour: str = ""
    align: str = "center"

    def draw(self, axes: Axes) -> None:
        ink = palette.colour(f"{self.colour}-text") if self.colour else INK
        axes.text(self.x, self.y, self.text, color=ink, ha=self.align, va="center")


Shape = Box | Triangle | Arrow | Words


class Drawing:
    """A picture of shapes, in the page's colours and fonts, above its caption.

    id       anchor on the page
    caption  as for an Explorable: its first sentence says what to see
    alt      what the picture shows, for readers who cannot see it
    size     width and height in units; y runs down
    """

    def __init__(
        self, id: str, caption: str, alt: str, size: tuple[float, float], shapes: Sequence[Shape]
    ) -> None:
        self.id, self.caption, self.alt = id, caption, alt
        self.size, self.shapes = size, shapes

    def __repr__(self) -> str:
        return f"Drawing({self.id!r})"

    def _drawn(self) -> Figure:
        width, height = self.size
        canvas = Figure(figsize=(width / UNIT, height / UNIT), facecolor="none")
        axes = canvas.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
        axes.set_axis_off()
        for shape in self.shapes:
            shape.draw(axes)
        return canvas

    def svg(self, theme: str | None = None) -> str:
        """The picture in the colours of a theme, or in CSS variables if None."""
        return svg_of(self._drawn, self.id, theme)

    def html(self) -> str:
        caption = f"{self.id}-caption"
        return tag(
            "figure",
            tag("div", self.svg(), cls="drawing-plot", role="img", aria_label=self.alt),
            tag("figcaption", tag("p", inline(self.caption), id=caption)),
            cls="drawing figure-frame",
            id=self.id,
            aria_labelledby=caption,
        )

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        """In a build, the page's HTML and a notebook's picture; in a notebook, the SVG."""
        if not os.environ.get("BOOK_STATIC"):
            return {"image/svg+xml": self.svg("light"), "text/plain": repr(self)}
        return {
            "text/html": self.html(),
            "image/png": b64encode(png_of(self._drawn, 2 * UNIT)).decode(),
            "text/plain": repr(self),
        }
