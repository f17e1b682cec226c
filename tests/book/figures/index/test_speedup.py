"""Ratios of times: the table, the stage and the prose of the first page say one number."""

import json
import re

from book.figures.index import speedup
from book.figures.lib.format import times


def test_the_table_the_stage_and_the_prose_say_one_ratio():
    cells = {row[0]: row[1] for row in speedup.table().cells}
    (layer, *_) = json.loads(re.search(r">(.*)</script>", speedup.data().data, re.DOTALL)[1])
    assert layer["name"] == "the layer alone"
    assert [times(ratio) for ratio in layer["ratios"]] == [
        cells[f"{length:,}"] for length in layer["lengths"]
    ]
    assert float(cells["131,072"].removesuffix("×")) == layer["ratios"][-1]
    assert speedup.numbers()["layer_longest"].startswith(cells["131,072"] + " ")
