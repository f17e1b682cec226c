"""What the ribbon is told are the stored results."""

import json
import re

import pytest

from book.figures.long_context import ribbon
from book.figures.long_context.distant_recall import shares
from book.figures.long_context.long_context import MAIN, gain_at


def test_without_results_the_page_says_what_to_run(store):
    missing = ribbon.data()
    assert not missing and "experiments run long_context" in repr(missing)


def test_every_point_is_a_stored_one_with_its_bar():
    told_all = json.loads(re.search(r">(.*)<", ribbon.data().data, re.DOTALL)[1])
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
