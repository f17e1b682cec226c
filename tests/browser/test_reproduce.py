"""The list of all runs: a box of its own that a reader filters."""

import re

from experiments.harness.core import record

# First cells whose one word takes more than a line.
BROKEN = """() => [...document.querySelectorAll("td:first-child")].filter((cell) => {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), tops = new Set();
    const word = document.createRange();
    while (texts.nextNode()) {
        if (!texts.currentNode.data.trim()) continue;
        word.selectNodeContents(texts.currentNode);
        for (const { top } of word.getClientRects()) tops.add(Math.round(top));
    }
    return !/\\s/.test(cell.textContent.trim()) && tops.size > 1;
}).map((cell) => cell.textContent)"""

DAYS = "rows => rows.map((row) => row.cells[3].textContent.slice(0, 10))"


def test_the_list_of_runs_is_filtered_by_words_and_stays_in_its_box(open_page):
    tab = open_page("book/reproduce.html")
    cell = tab.locator(".tag_filterable")
    runs = len(record.load())
    line = tab.locator(".table-filter")
    assert line.get_by_role("status").inner_text() == f"{runs:,} of {runs:,}"
    box = cell.locator(".pst-scrollable-table-container")
    assert box.bounding_box()["height"] < 600
    line.get_by_role("searchbox", name="Rows that contain").fill("race  16384")
    shown = cell.locator("tbody tr:visible").all_inner_texts()
    assert line.get_by_role("status").inner_text() == f"{len(shown):,} of {runs:,}"
    assert 0 < len(shown) < runs
    assert all(re.search("race", text) and "16384" in text for text in shown)
    assert tab.evaluate("document.documentElement.scrollHeight") < 20_000
    cell.get_by_role("button", name="made").click()
    days = cell.locator("tbody tr").evaluate_all(DAYS)
    assert days == sorted(days)


def test_on_a_phone_names_stand_on_one_line_and_each_verdict_beside_its_claim(open_page):
    tab = open_page("book/reproduce.html", width=320)
    titles = tab.locator("table >> nth=0").locator("th").all()
    assert [title.inner_text() for title in titles[:2]] == ["claim", "verdict"]
    for width in (320, 375):
        tab.set_viewport_size({"width": width, "height": 900})
        assert tab.evaluate(BROKEN) == []
        box = titles[1].bounding_box()
        assert box["x"] + box["width"] <= width
