"""Reading time: words of prose alone are counted, and the time is told in round numbers."""

from types import SimpleNamespace

import pytest
from docutils import nodes

from book.theme import minutes


def test_prose_is_counted_and_nothing_else():
    page = nodes.section(
        "",
        nodes.title("", "Two words"),
        nodes.paragraph("", "A sentence – of five words", nodes.math("", "a + b"), nodes.Text(".")),
        nodes.comment("", "not shown"),
        nodes.literal_block("", "code = 1"),
        nodes.raw("", "<p>a picture</p>", format="html"),
        nodes.table("", nodes.paragraph("", "a table")),
        nodes.bullet_list("", nodes.list_item("", nodes.paragraph("", "and a list"))),
    )
    assert minutes.words(page) == 2 + 5 + 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (0, "0 min"),
        (1, "1 min"),
        (1861, "10 min"),
        (11_800, "59 min"),
        (12_000, "1 h"),
        (18_000, "1.5 h"),
    ],
)
def test_the_time_is_told_in_minutes_or_half_hours(words, said):
    assert minutes.reading_time(words) == said


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("index", {"reading_time": "5 min", "book_time": "20 min"}),
        ("one", {"reading_time": "10 min"}),
        ("back", {}),
    ],
)
def test_the_first_page_tells_the_time_of_the_numbered_chapters_too(page, said):
    counts = {"index": 1000, "one": 2000, "two": 1000, "back": 9000}
    env = SimpleNamespace(
        metadata={name: {minutes.KEY: count} for name, count in counts.items()},
        toc_secnumbers={"one": {"": (1,)}, "two": {"": (2,)}, "back": {}},
    )
    app = SimpleNamespace(env=env, config=SimpleNamespace(root_doc="index"))
    context = {}
    minutes.prepare(app, page, "page.html", context, None)
    assert context == said
