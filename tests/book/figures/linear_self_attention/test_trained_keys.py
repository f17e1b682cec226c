"""What the memory lab is told of trained keys."""

import re

from book.figures.linear_self_attention import trained_keys
from experiments.harness.core.record import ROOT
from tests.book.figures.made_up import page_data


def test_the_lab_gets_the_files_of_both_memories():
    html = trained_keys.data().data
    files = re.search(r'data-files="([^"]*)"', html)[1].split()
    told = page_data(html)
    assert told["files"] == {"state": "recall-linear", "cache": "recall-softmax"}
    assert [file.rpartition("/")[2].partition(".")[0] for file in files] == [
        *told["files"].values()
    ]
    assert all((ROOT / file).stat().st_size < 30_000 for file in files)
