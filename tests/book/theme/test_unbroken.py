"""Names with a hyphen, numbers with their spread, formulas with their comma stay on one line."""

import pytest
from bs4 import BeautifulSoup
from docutils import nodes

from book.theme import formulas, unbroken


def test_names_stand_whole_and_code_stays_as_it_is():
    text = nodes.paragraph("", "", nodes.Text("GPT-2, as a one-layer Mamba-2, "))
    text += nodes.literal("", "GPT-2")
    unbroken.keep_names(text)
    assert text.astext() == "GPT-2, as a one-layer Mamba-2, GPT-2"
    assert [one.astext() for one in text.findall(nodes.inline)] == ["GPT-2", "Mamba-2"]


def test_a_number_stays_with_its_spread():
    text = nodes.paragraph("", "", nodes.Text("0.41 ± 0.39, 89% ± 3 and ± 2"))
    text += nodes.literal("", "1 ± 2")
    unbroken.keep_spreads(text)
    spread = "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}"
    assert text.astext() == f"0.41{spread}0.39, 89%{spread}3 and ± 21 ± 2"


def test_punctuation_goes_to_its_formula():
    text = nodes.paragraph("", "", nodes.Text("keys ("), nodes.math("", "k"), nodes.Text("), or "))
    text += [nodes.math("", "q"), nodes.Text(" alone")]
    unbroken.keep_punctuation(text)
    first, second = text.findall(nodes.math)
    assert (first["before"], first["after"]) == ("(", "),")
    assert not {"before", "after"} & second.attributes.keys()
    assert text.astext() == "keys k or q alone"


def test_punctuation_elsewhere_stays_where_it_is():
    text = nodes.paragraph(
        "", "", nodes.emphasis("", "key"), nodes.Text("."), nodes.Text("\nAt most ")
    )
    text += [nodes.math("", "K"), nodes.Text(".")]
    unbroken.keep_punctuation(text)
    (formula,) = text.findall(nodes.math)
    assert formula["after"] == "."
    assert text.astext() == "key.\nAt most K"


@pytest.mark.parametrize("tex", ["a = b", "a = b + c"])
@pytest.mark.parametrize(("before", "after"), [("(", ")."), ("", ","), ("(", "")])
def test_a_formula_shows_its_punctuation_and_says_it_once(tex, before, after):
    html = BeautifulSoup(formulas.bound(formulas.render(tex, {}), before, after), "html.parser")
    for part in html.select(".katex-mathml"):
        part.decompose()
    shown = html.select_one(".katex-html").get_text()
    assert html.get_text() == before + shown + after
    parts = html.select(".katex-base")
    assert [part.get("data-before") for part in parts] == [before or None] + [None] * len(parts[1:])
    assert [part.get("data-after") for part in parts] == [None] * len(parts[1:]) + [after or None]
