"""Citations by author and year in round brackets: (Vaswani et al., 2017)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from sphinx.application import Sphinx
from sphinxcontrib.bibtex.plugin import register_plugin
from sphinxcontrib.bibtex.style.referencing import BracketStyle
from sphinxcontrib.bibtex.style.referencing.author_year import AuthorYearReferenceStyle

round_brackets = partial(BracketStyle, left="(", right=")")


@dataclass
class RoundAuthorYear(AuthorYearReferenceStyle):
    bracket_textual: BracketStyle = field(default_factory=round_brackets)
    bracket_parenthetical: BracketStyle = field(default_factory=round_brackets)
    bracket_year: BracketStyle = field(default_factory=round_brackets)


def setup(app: Sphinx) -> None:
    register_plugin("sphinxcontrib.bibtex.style.referencing", "author_year_round", RoundAuthorYear)
