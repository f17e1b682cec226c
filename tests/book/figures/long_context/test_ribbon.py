"""What the ribbon is told are the stored results."""

from types import SimpleNamespace

import pytest

from book.figures.long_context import ribbon
from book.figures.long_context.distant_recall import shares
from book.figures.long_context.long_context import MAIN, gain_at
from experiments import long_context
from experiments.harness.learning import corpora
from experiments.harness.learning.prepared import open_prepared
from tests.book.figures.made_up import page_data


def test_every_point_is_a_stored_one_with_its_bar():
    told_all = page_data(ribbon.data())
    between, found = told_all["between"], shares()
    assert [*between] == ["novel", "noise", "pairs"]
    names = {name: model for model, name in ribbon.PARTS.items()}
    for kind, lines in between.items():
        assert len(lines) == (2 if kind == "novel" else 4)
        for line in lines:
            model = names[line["name"]]
            for distance, value, low, high in line["points"]:
                assert low <= value <= high
                if kind == "novel":
                    one = gain_at(model, MAIN, "again", distance)
                    assert value == pytest.approx(1000 * one["gain"], abs=1e-3)
                    assert high - low == pytest.approx(2000 * one["half"], abs=2e-3)
                else:
                    assert value == pytest.approx(100 * found[model, kind, distance].mean, abs=0.06)
    assert told_all["sources"]
    for distance, (after, left, before) in told_all["example"]["between"].items():
        assert left > 0
        assert len(ribbon.PASSAGE) + len(after) + left + len(before) == int(distance)


def test_the_examples_words_are_the_novels():
    novels = open_prepared(corpora._default_cache() / "novels.npz")
    if novels is None:
        pytest.skip("the novels are not prepared on this machine")
    pieces = long_context.texts(
        long_context.BASE,
        SimpleNamespace(corpus=lambda name: novels, device="cpu"),
    )
    text = bytes(pieces[ribbon.PLACE].tolist()).decode()
    assert text.startswith(ribbon.PASSAGE + ribbon.AFTER)
    assert len(ribbon.PASSAGE) == long_context.PASSAGE
    for distance, before in ribbon.BEFORE.items():
        assert text[:distance].endswith(before)
