"""The palette: what the book promises, readable in both themes, and a colour for each layer."""

from itertools import combinations, product

import pytest

from book.explorable import palette
from book.figures.relatives.family import MEMBERS, VARIANTS
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


@pytest.mark.parametrize("name", sorted(MEMBERS.keys() - VARIANTS.keys()))
def test_every_layer_that_a_chapter_tells_of_has_a_colour_and_a_label(name):
    assert name in palette.names()
    assert palette.label(name), f"{name}: palette.css names no label"


def test_no_two_layers_look_alike():
    coloured = [name for name in LAYERS if name in palette.names()]
    near = {(a, b) for a, b in combinations(coloured, 2) if palette.difference(a, b) < 0.05}
    assert not near


def test_spare_colours_look_like_no_other_spare_and_like_no_colour_that_the_book_promises():
    """Where dashes tell of another key, a chart of other things than layers has these alone."""
    common = ["softmax", "linear", "taylor", "none", "attention", "recurrent", "chunked", "rnn"]
    pairs = [*combinations(palette.OTHERS, 2), *product(palette.OTHERS, common)]
    assert not [pair for pair in pairs if palette.alike(*pair)]


def test_differences_are_those_of_oklab():
    """Ottosson (2020): white has lightness 1 and no hue, so black is 1 away; red is 0.628."""
    assert palette._oklab("#FFFFFF", palette.EYES[0]) == pytest.approx([1, 0, 0], abs=1e-4)
    assert palette._oklab("#FF0000", palette.EYES[0]) == pytest.approx(
        [0.6280, 0.2249, 0.1258], abs=1e-4
    )
    grey = [palette._oklab("#808080", eye) for eye in palette.EYES]
    assert grey[1] == pytest.approx(grey[0], abs=1e-4)  # neither blindness changes a grey
