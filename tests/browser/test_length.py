"""Chapters are no longer than planned, in words of prose and captions."""

import re

import pytest

from tests.browser.pages import soup_of

MOST = {"kernels": 3600, "training": 4000, "trained-model": 3320, "many-devices": 3000}
TWELVE = (
    "sequences", "sequence-transformations", "causal-transformations", "state-machines",
    "linear-self-attention", "three-modes", "kernels", "sampling", "training", "long-context",
    "relatives", "state-spaces",
)  # fmt: skip
MOST_IN_ALL = 34_000  # of the first page and these
CODE_AND_FORMULAS = "script, style, pre, svg, math, .math, table, .headerlink"
EXERCISES = ".predict, .check, section[id^=exercises]"
CONTROLS = (
    "button, .explorable-controls, .explorable-legend, .explorable-tools, .explorable-data,"
    ".explorable-message, .explorable-empty, .figure-provenance, .visually-hidden, .figure-hidden"
)


def count_words(built_book, name: str) -> int:
    article = soup_of(built_book, f"book/{name}.html").select_one("article")
    left_out = {*map(id, article.select(f"{CODE_AND_FORMULAS}, {EXERCISES}, {CONTROLS}"))}
    texts = [
        text
        for text in article.find_all(string=True)
        if not any(id(parent) in left_out for parent in text.parents)
    ]
    return sum(bool(re.search(r"\w", word)) for word in " ".join(texts).split())


@pytest.mark.parametrize("name", MOST)
def test_a_chapter_is_no_longer_than_planned(built_book, name):
    assert 1000 < count_words(built_book, name) <= MOST[name]


def test_the_book_is_no_longer_than_planned(built_book):
    assert sum(count_words(built_book, name) for name in ("index", *TWELVE)) <= MOST_IN_ALL
