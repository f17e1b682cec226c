"""Numbers in words, and tables that no result can write markup into."""

from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser

from book.figures.lib import format, tables
from experiments.harness.core import record

HOSTILE = "<img src=x onerror=alert(1)>|`*a*_b_[c](d)$e${f}`g`\\n# h --- \\\\ &lt;"


CONFIG = yaml.safe_load((Path(__file__).parents[4] / "_config.yml").read_text(encoding="utf-8"))
PAGE = MdParserConfig(enable_extensions=set(CONFIG["parse"]["myst_enable_extensions"]))
NOTEBOOK = MarkdownIt("commonmark", {"html": True}).enable("table")


def rendered(table) -> BeautifulSoup:
    """What the page makes of a table, after seeing that a plain Markdown makes the same of it."""
    written = table._repr_markdown_()
    page, notebook = (
        BeautifulSoup(parser.render(written), "html.parser")
        for parser in (create_md_parser(PAGE, RendererHTML), NOTEBOOK)
    )
    for cells in ("td", "td *"):  # a title may hold a formula, which only the page typesets
        found, plain = (
            [(x.name, x.get_text()) for x in soup.select(cells)] for soup in (page, notebook)
        )
        assert found == plain
    return page


def test_a_cell_shows_its_text_and_nothing_else():
    text = HOSTILE.encode().decode("unicode_escape")
    soup = rendered(
        tables.Table([text, "b"], [[text, tables.link(text, "../a b<.json")]], wrap=True)
    )
    shown = text.replace("\n", " ")
    assert [cell.get_text() for cell in soup.select("th, td")] == [shown, "b", shown, shown]
    assert {tag.name for tag in soup.select("td *, th *")} == {"a"}
    assert soup.a.attrs == {"href": "../a%20b%3C.json"}


def test_code_cannot_end_its_span():
    assert tables.code("a`<b>|c d") == "`a<b>cd`"


@pytest.fixture
def hostile(monkeypatch):
    """A stored record of each experiment, with markup wherever a record says a string."""
    runs = deepcopy([*{run["experiment"]: run for run in record.load()}.values()])
    for run in runs:
        origin = run["provenance"]
        origin["device"]["name"] = run["name"] = HOSTILE
        origin["commit"] = origin["started"] = HOSTILE
        origin["versions"] = {HOSTILE: HOSTILE}
    monkeypatch.setattr(
        record, "load", lambda name=None: [r for r in runs if name in (None, r["experiment"])]
    )


def test_no_table_lets_a_record_write_markup(hostile):
    from book.figures.reproduce import runs
    from book.figures.three_modes import chunk_sizes

    for table in (chunk_sizes.table(), runs.stored_runs(), runs.versions()):
        soup = rendered(table)
        assert not soup.select("img, script")
        assert all(set(link.attrs) == {"href"} for link in soup.select("a"))
        assert "<img" in soup.get_text()


def test_the_stages_data_cannot_leave_its_script(hostile, monkeypatch):
    from book.figures.three_modes import roofline

    script = BeautifulSoup(roofline.data() + "<p>after</p>", "html.parser")
    assert script.p and "onerror" in script.script.string


def test_shares_are_said_as_a_reader_would():
    shares = (0.00034, 0.034, 0.34, 1.0, 12.3)
    assert [format.percent(share) for share in shares] == [
        "0.034%", "3.4%", "34%", "100%", "1,230%",
    ]  # fmt: skip


def test_a_range_stays_on_one_line():
    table = tables.Table(["", "a"], [["x", "1.2 ms (1.1–1.3)"]], wrap=True)
    assert "1.1–\N{WORD JOINER}1.3" in repr(table)
    assert "1.1–&#8288;1.3" in table._repr_markdown_()
