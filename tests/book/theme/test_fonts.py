"""The formulas' fonts hold what the formulas need, and little else."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from fontTools.ttLib import TTFont

from book.theme import fonts, formulas

KEPT = formulas.KATEX / "fonts"
FACES = sorted(KEPT.glob("*.woff2"))


def known(font: Path) -> set[str]:
    return {chr(code) for code in TTFont(font).getBestCmap()}


@pytest.fixture
def site(tmp_path):
    (tmp_path / formulas.PUBLISHED / "fonts").mkdir(parents=True)
    return tmp_path


FORMULAS = (r"x \in \R", r"\sum_{i\le t} \frac{\phi(q)}{Z} < \infty", r"\bigl\lceil a \bigr\rceil")


@pytest.mark.slow
def test_a_font_keeps_the_characters_of_the_formulas_and_loses_others(site):
    macros = {"R": "\\mathbb{R}"}
    set_ = "".join(formulas.render(tex, macros, display=True) for tex in FORMULAS)
    inline = formulas.bound(formulas.render("a+b", macros), "(", ";")
    (site / "a.html").write_text(f"<p>{inline} then — words</p><div>{set_}</div>\n")
    fonts.fit_fonts(site)
    page = BeautifulSoup((site / "a.html").read_text(), "html.parser")
    text = {c for one in page.select(".katex-html") for c in one.get_text()} | set("(;")
    assert set("R∑≤∈ϕ∞<⌈+") <= text
    for face in FACES:
        cut = site / formulas.PUBLISHED / "fonts" / face.name
        assert known(cut) >= known(face) & text
        assert "Ω" not in known(cut)
    sizes = [
        sum(path.stat().st_size for path in folder.glob("*.woff2")) for folder in (KEPT, cut.parent)
    ]
    assert sizes[1] < sizes[0] / 2


@pytest.mark.slow
def test_the_same_pages_have_the_same_fonts(site):
    (site / "a.html").write_text(f"<p>{formulas.render('x', {})}</p>")
    target = site / formulas.PUBLISHED / "fonts"
    fonts.fit_fonts(site)
    before = {path.name: path.read_bytes() for path in target.iterdir()}
    fonts.fit_fonts(site)
    assert before == {path.name: path.read_bytes() for path in target.iterdir()}
    assert len(before) == len(FACES)


def test_what_stands_beside_a_formula_does_not_enter_its_font():
    html = f"<p>{formulas.render('x', {})}</p><p>— Ω</p>"
    assert fonts.characters(html) >= {"x"}
    assert not fonts.characters(html) & set("—Ω")
