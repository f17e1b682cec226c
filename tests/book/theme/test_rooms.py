"""Blocks that are laid out late say how much room they will need, and nothing else changes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from book.theme.rooms import with_rooms

STYLE = re.compile(r' style="--letters:(\d+);--rest:([\d.]+)"')

words = st.text("abc é&<>\n\f\u2028", max_size=60).map(
    lambda text: text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
)
inline = st.one_of(
    words,
    words.map(lambda text: f"<em>{text}</em><br/>"),
    words.map(lambda text: f"<img alt='{text.replace(chr(39), '')}'>"),
)
blocks = st.recursive(
    st.one_of(
        inline.map(lambda text: f"<p>{text}</p>\n"),
        words.map(lambda text: f"<pre>{text}</pre>"),
        words.map(lambda text: f'<div class="math"><math><mtr>{text}</mtr></math></div>'),
    ),
    lambda inner: st.tuples(st.sampled_from(["div", "ul", "details", "td"]), inner).map(
        lambda both: f"<{both[0]}\n  class='x'>{both[1]}</{both[0]}>"
    ),
    max_leaves=4,
)


def page(*inside: str) -> str:
    below = f'<section id="b">{"".join(inside)}</section>'
    return f'<section id="a"><h1>A</h1><p>Above</p>{below}</section>'


def room(block: str) -> tuple[int, float]:
    letters, rest = STYLE.findall(with_rooms(page(block)))[0]
    return int(letters), float(rest)


@given(st.lists(blocks, max_size=5))
def test_every_block_gets_a_style_and_nothing_else_changes(inside):
    body = page(*inside)
    styled = with_rooms(body)
    assert STYLE.sub("", styled) == body
    assert len(STYLE.findall(styled)) == len(inside)


@pytest.mark.parametrize("body", ["", "text", '<section id="a"><p>Above</p></section>'])
def test_what_is_laid_out_at_once_has_no_style(body):
    assert with_rooms(body) == body


def test_a_block_with_a_style_of_its_own_keeps_it():
    body = page('<p style="color: red">x</p>')
    assert with_rooms(body) == body


def test_letters_are_those_that_a_reader_sees():
    formula = '<span class="katex-mathml">x^2</span><span class="katex-html">x2</span>'
    assert room("<p>four\n  more</p>")[0] == len("four more ")
    assert room(f"<p>{formula}</p>")[0] == len("x2 ")
    assert room('<p>a<script type="application/json">[1, 2]</script></p>')[0] == len("a ")
    assert room("<p>a &lt; b</p>")[0] == len("a < b ")


def test_what_is_folded_needs_a_line():
    folded = "<details><summary>Show</summary><p>much</p><pre>\n\n\n</pre></details>"
    assert room(folded) == room("<details><summary>Hide</summary></details>")


def test_code_rows_and_formulas_need_room_at_any_width():
    code = [room("<pre>" + "x\n" * lines + "</pre>")[1] for lines in (1, 11, 21)]
    assert code[1] - code[0] == pytest.approx(code[2] - code[1], abs=0.11)
    assert 10 < code[1] - code[0] < 11
    rows = "<tr><td>x</td></tr>"
    assert room(f"<table>{rows * 3}</table>")[1] > room(f"<table>{rows}</table>")[1] > 0
    assert room('<div class="math"><math><mtr></mtr><mtr></mtr></math></div>')[1] > 4
    assert room("<div><p>a</p><p>b</p></div>")[1] > 2 * room("<p>a</p>")[1]


def test_controls_of_a_figure_have_room_of_their_own():
    """Not that of the cell around them, which holds the figure too."""
    for name in ("explorable-controls", "explorable-crossing"):
        few, many = (
            with_rooms(page(f'<div class="cell">code<div class="{name}">{label * n}</div></div>'))
            for n, label in ((2, "<label>abc</label>"), (9, "<label>abc</label>"))
        )
        (cell, small), (same, large) = (STYLE.findall(text) for text in (few, many))
        assert int(small[0]) < int(large[0])
        assert cell == same == (str(len("code ")), "0.0")
