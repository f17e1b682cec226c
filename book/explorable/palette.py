"""The palette in Python, read from the CSS file that the pages use."""

import re
from functools import cache
from math import dist
from pathlib import Path

PALETTE_CSS = Path(__file__).resolve().parents[1] / "theme" / "static" / "palette.css"
OTHERS = tuple(f"other-{i}" for i in range(1, 6))

# Linear RGB as seen by eyes without the cones for red, or for green: table 1 of Machado et al.
# (2009).
EYES = (
    ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
)
# Linear RGB to cone responses and to Oklab, in which distances match perception (Ottosson, 2020).
CONES = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
OKLAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)


@cache
def _declarations(theme):
    """`{variable: value}` of one theme ("light" or "dark"), in file order."""
    selector = {"light": r":root", "dark": r'html\[data-theme="dark"\]'}[theme]
    block = re.search(selector + r"\s*\{(.*?)\n\}", PALETTE_CSS.read_text("utf-8"), re.S)
    return dict(re.findall(r"--([\w-]+):\s*([^;]+);", block.group(1)))


def names():
    """All names that have a colour, in the order of legends."""
    return [name for name in _declarations("light") if not name.endswith(("-text", "-label"))]


def colour(name, theme="light"):
    """The colour of a name as "#RRGGBB"; `name + "-text"` gives that of its words."""
    return _declarations(theme)[name]


def label(name):
    """A name's label in prose, or None if it has none."""
    quoted = _declarations("light").get(f"{name}-label")
    return quoted.strip('"') if quoted else None


def assign(values):
    """Give each value a palette name: its own if it has one, else the next spare one.

    Returns `{value: palette name}` in legend order. Raises ValueError if there are too few spare
    ones: two lines must never share a colour.
    """
    known = names()
    strangers = [value for value in values if value not in known]
    if len(strangers) > len(OTHERS):
        raise ValueError(
            f"color: expected at most {len(OTHERS)} values that palette.css does not name, "
            f"got {strangers}"
        )
    ordered = [name for name in known if name in values]
    return {name: name for name in ordered} | dict(zip(strangers, OTHERS, strict=False))


@cache
def difference(one, other, eyes=EYES):
    """Distance of two colours in Oklab: the smallest over both themes and all `eyes`.

    About 0.02 is noticed side by side.
    """
    return min(
        dist(_oklab(colour(one, theme), eye), _oklab(colour(other, theme), eye))
        for theme in ("light", "dark")
        for eye in eyes
    )


def alike(one, other):
    """Whether lines of two names need more than their colours to differ."""
    return difference(one, other) < 0.05 or difference(one, other, EYES[:1]) < 0.08


def _oklab(color, eye):
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    rgb = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    seen = [max(0, value) for value in _times(eye, rgb)]
    return _times(OKLAB, [value ** (1 / 3) for value in _times(CONES, seen)])


def _times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]
