"""A cell of a table holds its words, and an element only where it has two."""

from bs4 import BeautifulSoup
from sphinx.application import Sphinx

TABLE = """\
```{list-table}
* - [race](#x), again
  - one

    two
```

(x)=
Below.
"""


def test_a_cell_of_one_paragraph_holds_its_words_itself(tmp_path):
    (tmp_path / "index.md").write_text(f"# Words\n\n{TABLE}")
    extensions = ["myst_parser", "book.theme.cells"]
    app = Sphinx(
        tmp_path, None, tmp_path / "out", tmp_path / "trees", "html",
        confoverrides={"extensions": extensions}, status=None,
    )  # fmt: skip
    app.build()
    page = BeautifulSoup((tmp_path / "out" / "index.html").read_text(), "html.parser")
    first, second = page.select("td")
    assert not first.select("p") and first.get_text() == "race, again"
    assert [one.get_text() for one in second.select("p")] == ["one", "two"]
    assert page.find("p", string="Below.")
