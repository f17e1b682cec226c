"""Formulas set while the book is built."""

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from sphinx.errors import ExtensionError

from book.theme import formulas

MACROS = {"R": "\\mathbb{R}", "argmax": "\\operatorname*{arg\\,max}"}


def test_a_formula_is_set_for_the_eye_and_for_the_ear_and_keeps_its_source():
    html = BeautifulSoup(formulas.render(r"x \in \R^d < 1", MACROS), "html.parser")
    assert html.select_one("math annotation").get_text() == r"x \in \R^d < 1"
    assert html.select_one("math [mathvariant=double-struck]").get_text() == "R"
    assert html.select_one(".katex-html")["aria-hidden"] == "true"
    assert "display" in formulas.render("x", {}, display=True)


def test_a_formula_that_cannot_be_set_is_named():
    with pytest.raises(ExtensionError, match=r"got '\\\\sqr x'.*\\sqr"):
        formulas.render(r"\sqr x", MACROS)


@pytest.mark.parametrize(
    ("tex", "rows"),
    [
        ("a = b", "a = b"),
        ("a &= b \\\\\n c &= d", r"\begin{split}a &= b \\ c &= d\end{split}"),
        ("a\n\n  b", r"\begin{gathered}a\\b\end{gathered}"),
    ],
)
def test_rows_stand_in_an_environment(tex, rows):
    done = formulas.rows_aligned(tex)
    assert " ".join(done.split()) == rows
    formulas.render(done, {}, display=True)


def test_what_is_published_is_what_the_styles_name():
    css = (formulas.KATEX / "katex.min.css").read_text(encoding="utf-8")
    named = set(re.findall(r"fonts/([\w-]+\.woff2)", css))
    there = {path.name for path in (formulas.KATEX / "fonts").iterdir()}
    assert there <= named
    for vendored in (Path(formulas.KATEX).parent).iterdir():
        assert "MIT" in (vendored / "LICENSE").read_text(encoding="utf-8")
        assert re.search(r"-\d+\.\d+\.\d+$", vendored.name), "a copy says its version"
