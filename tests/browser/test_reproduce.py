"""The list of all runs: a box of its own that a reader filters."""

from __future__ import annotations

import re

import pytest

from experiments.harness.core import record

pytestmark = pytest.mark.browser


def test_the_list_of_runs_is_filtered_by_words_and_stays_in_its_box(open_page):
    tab = open_page("book/reproduce.html")
    cell = tab.locator(".tag_filterable")
    runs = len(record.load())
    assert cell.get_by_role("status").inner_text() == f"{runs:,} of {runs:,}"
    box = cell.locator(".pst-scrollable-table-container")
    assert box.bounding_box()["height"] < 600
    cell.get_by_role("searchbox", name="Rows that contain").fill("race  16384")
    shown = cell.locator("tbody tr:visible").all_inner_texts()
    assert cell.get_by_role("status").inner_text() == f"{len(shown):,} of {runs:,}"
    assert 0 < len(shown) < runs
    assert all(re.search("race", text) and "16384" in text for text in shown)
    assert tab.evaluate("document.documentElement.scrollHeight") < 20_000
