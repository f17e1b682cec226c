"""Ratios of times: the table, the stage and the prose of the first page say one number."""

from book.figures.index import speedup
from book.figures.lib.format import times
from tests.book.figures.made_up import page_data


def test_the_table_the_stage_and_the_prose_say_one_ratio():
    cells = {row[0]: row[1] for row in speedup.table().cells}
    (layer, *_) = page_data(speedup.data())
    assert layer["name"] == "the layer alone"
    assert [times(ratio) for ratio in layer["ratios"]] == [
        cells[f"{length:,}"] for length in layer["lengths"]
    ]
    assert float(cells["131,072"].removesuffix("×")) == layer["ratios"][-1]
    assert speedup.numbers()["layer_longest"].startswith(cells["131,072"] + " ")
