"""What `compare_pages.py` reports: every change that a reader would meet, and nothing else."""

from pathlib import Path

import pytest

from tests.compare_pages import differences, main

PAGE = """<!doctype html><html><head><title>Sums</title><link href="page.css?v=1"></head><body>
<h1 id="sums">Sums</h1>
<p>They <em>grow</em>, see <a href="#roof:x=update">updates</a>.</p>
<ul><li>Outer<ul><li>Inner</li></ul></li></ul>
<div class="math" id="equation-a"><math><msup><mi>x</mi><mn>2</mn></msup></math></div>
<pre>def f():
    return 1
</pre>
<figure class="explorable" id="roof">
<label><input type="checkbox" checked><svg class="swatch"><path d="M0 5H22"/></svg>linear</label>
<div role="img" aria-label="A line."><svg><path d="M1 1L2 2"/></svg></div>
<figcaption><p>It <b>falls</b>.</p></figcaption>
<script type="application/json">{"arrays": [[1, 2]]}</script>
</figure>
<div id="modes" data-stage="modes" data-part="one"><div class="stage"></div></div>
<script src="stage.js?v=1"></script>
</body></html>"""

CHANGES = {
    "a word": ("<em>grow</em>", "<em>shrink</em>", "They shrink, see"),
    "a word beside a block": ("Outer", "Other", "+Other"),
    "an indent of code": ("    return", "  return", "+  return 1"),
    "a display equation": ("<mn>2</mn>", "<mn>3</mn>", "+x3"),
    "where a view leads": ("x=update", "x=minutes", '<a href="#roof:x=minutes">'),
    "an anchor": ('id="equation-a"', 'id="equation-b"', "equation-b"),
    "a stage's part": ('data-part="one"', 'data-part="two"', 'data-part="two"'),
    "a setting": (" checked", "", '-<input checked="">'),
    "words for those who cannot see": ("A line.", "A bar.", 'aria-label="A bar."'),
    "a still picture": ("M1 1L2 2", "M1 1L2 3", "picture of roof"),
    "a legend's swatch": ("M0 5H22", "M0 5H20", "picture of roof"),
    "data": ("[[1, 2]]", "[[1, 3]]", "data of roof"),
}


def written(folder: Path, text: str) -> Path:
    """A book of this one page."""
    folder.mkdir()
    (folder / "page.html").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_reported_and_no_other(change, tmp_path):
    old, new, said = CHANGES[change]
    assert PAGE.count(old) == 1
    before = written(tmp_path / "before", PAGE)
    after = written(tmp_path / "after", PAGE.replace(old, new))
    found = differences(before / "page.html", after / "page.html")
    assert any(said in line for line in found)
    assert len(found) <= 2, "a line before, a line after"
    assert main(before, after) == 1


def test_equal_pages_differ_in_nothing(tmp_path, capsys):
    # A style sheet's or a script's version is nothing that a reader sees, nor is a line's break.
    after = PAGE.replace("?v=1", "?v=2").replace("They <em>", "They\n  <em>")
    folders = written(tmp_path / "before", PAGE), written(tmp_path / "after", after)
    assert main(*folders) == 0
    assert not capsys.readouterr().out


def test_a_page_that_only_one_book_has_is_reported(tmp_path, capsys):
    before, after = written(tmp_path / "before", PAGE), written(tmp_path / "after", PAGE)
    (after / "more.html").write_text(PAGE, encoding="utf-8")
    assert main(before, after) == 1
    assert capsys.readouterr().out.split("\n") == ["more.html", "  only after", ""]


def test_data_that_stand_apart_from_their_page_are_compared(tmp_path, capsys):
    page = PAGE.replace(
        "</body>", '<script type="application/json" id="film" data-apart></script></body>'
    )
    folders = written(tmp_path / "before", page), written(tmp_path / "after", page)
    for folder, losses in zip(folders, ("[1, 2]", "[1, 3]"), strict=True):
        (folder / "_static" / "data").mkdir(parents=True)
        (folder / "_static" / "data" / "film.js").write_text(f'film = "{losses}";')
    assert main(folders[0], folders[0]) == 0
    assert main(*folders) == 1
    assert capsys.readouterr().out == "_static/data/film.js\n  data\n"


def test_a_folder_without_pages_is_no_book(tmp_path):
    with pytest.raises(SystemExit, match="expected a folder with HTML"):
        main(written(tmp_path / "before", PAGE), tmp_path / "nowhere")
