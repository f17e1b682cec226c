"""Drawings: words and shapes in the page's own colours, and a picture for notebooks."""

import re

import pytest

from book.explorable import palette
from book.explorable.drawing import Arrow, Box, Drawing, Triangle, Words
from book.figures.linear_self_attention import products
from book.figures.sequence_transformations import unrolled


@pytest.fixture
def drawing():
    shapes = [Box(5, 5, 20, 10, "softmax", "A"), Triangle(30, 5, 10, "attention")]
    shapes += [Arrow((0, 0), (5, 5)), Words(50, 30, "words", "softmax")]
    return Drawing("one", "**To see.** <b>", 'A box & "more"', (100, 60), shapes)


def test_it_follows_the_pages_theme_and_fonts(drawing):
    svg = drawing.svg()
    used = {*re.findall(r"var\([\w-]+\)|currentColor", svg)}
    assert {"var(--softmax)", "var(--softmax-text)", "currentColor"} <= used
    assert not re.search("#[0-9A-Fa-f]{6}", svg) and "font-family" not in svg
    assert ">words</text>" in svg
    assert palette.colour("softmax") in drawing.svg("light").upper()


def test_a_prime_is_drawn_as_a_prime():
    """matplotlib sets TeX's from another font, as whose text it reads 0."""
    svg = products.far_blocks().svg()
    assert ">′<" in svg
    assert ">0<" not in svg


def test_a_page_has_its_caption_and_a_notebook_its_picture(drawing, monkeypatch):
    assert set(drawing._repr_mimebundle_()) == {"image/svg+xml", "text/plain"}
    monkeypatch.setenv("BOOK_STATIC", "1")
    bundle = drawing._repr_mimebundle_()
    html = bundle["text/html"]
    assert 'aria-label="A box &amp; &quot;more&quot;"' in html
    assert "<strong>To see.</strong> &lt;b&gt;" in html
    assert bundle["image/png"].startswith("iVBOR")


@pytest.mark.parametrize("turn", [unrolled.time_major, unrolled.layer_major])
def test_a_box_of_an_unrolled_network_comes_after_what_it_needs(turn):
    boxes = [(layer, t) for layer in range(unrolled.LAYERS) for t in range(unrolled.TICKS)]
    assert sorted(turn(*box) for box in boxes) == [*range(1, len(boxes) + 1)]
    for layer, t in boxes:
        assert not layer or turn(layer - 1, t) < turn(layer, t)
        assert not t or turn(layer, t - 1) < turn(layer, t)
