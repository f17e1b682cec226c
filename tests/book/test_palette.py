"""The palette: what the book promises, readable in both themes, and a colour for every layer."""

from itertools import combinations

import pytest
import torch

from book.explorable import palette
from lsa.layers import LAYERS

DARK_PAGE = "#14181e"


def contrast(one, other):
    def luminance(color):
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_palette_keeps_the_colours_the_book_promises():
    promised = {
        "softmax": "#D55E00",
        "linear": "#0072B2",
        "attention": "#E69F00",
        "recurrent": "#CC79A7",
        "chunked": "#009E73",
    }
    assert {name: palette.colour(name) for name in promised} == promised


@pytest.mark.parametrize("name", palette.names())
def test_palette_is_readable_in_both_themes(name):
    assert contrast(palette.colour(name, "dark"), DARK_PAGE) >= 3
    assert contrast(palette.colour(f"{name}-text", "dark"), DARK_PAGE) >= 4.5
    assert contrast(palette.colour(f"{name}-text"), "#ffffff") >= 4.5


def test_no_two_names_share_a_colour():
    for theme in ("light", "dark"):
        colours = [palette.colour(name, theme) for name in palette.names()]
        assert len(colours) == len(set(colours))


@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_has_a_colour_and_a_label(name):
    assert name in palette.names()
    assert palette.label(name)


# What the two common kinds of colour blindness make of linear RGB: Machado et al. (2009), table 1.
SEEN = {
    "all colours": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "no red": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no green": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}
# Linear RGB to the cones and on to Oklab, in which distances are as the eye sees them (Ottosson).
CONES = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
]
OKLAB = [
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
]


def oklab(color, seen):
    rgb = torch.tensor([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    rgb = torch.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    rgb = (torch.tensor(seen, dtype=rgb.dtype) @ rgb).clamp(min=0)
    return torch.tensor(OKLAB) @ (torch.tensor(CONES) @ rgb) ** (1 / 3)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("seen", SEEN)
def test_no_two_layers_look_alike(theme, seen):
    """0.02 is about the least difference that is noticed side by side."""
    colours = {name: oklab(palette.colour(name, theme), SEEN[seen]) for name in LAYERS}
    near = {(a, b) for a, b in combinations(LAYERS, 2) if (colours[a] - colours[b]).norm() < 0.05}
    assert not near
