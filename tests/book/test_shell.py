"""The page shell's own parts, without building the book or starting a browser."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup
from sphinx.errors import ExtensionError

from book.theme import extension as shell
from book.theme import previews as shell_previews
from tests.book.test_palette import contrast

ROOT = Path(__file__).resolve().parents[2]
BOOK_CSS = (ROOT / "book" / "theme" / "static" / "book.css").read_text(encoding="utf-8")


def app_at(site: Path, notebooks: tuple[str, ...] = ()) -> SimpleNamespace:
    metadata = {name: {"kernelspec": "{}"} for name in notebooks}
    env = SimpleNamespace(metadata=metadata, found_docs=set(notebooks))
    return SimpleNamespace(outdir=site, env=env)


def pathto(name: str, resource: int) -> str:
    return f"../{name}"


def test_a_notebook_is_offered_without_any_service(tmp_path, monkeypatch):
    monkeypatch.delenv("BOOK_REPOSITORY_URL", raising=False)
    app = app_at(tmp_path, ("book/sampling",))
    (link,) = shell.header_links(app, "book/sampling", pathto)
    assert link["href"] == "../_notebooks/sampling.ipynb"
    assert link["download"]
    assert shell.header_links(app, "book/notation", pathto) == []


def test_published_notebooks_open_on_colab(tmp_path, monkeypatch):
    monkeypatch.setenv("BOOK_REPOSITORY_URL", "https://github.com/someone/book/")
    app = app_at(tmp_path, ("book/sampling",))
    links = {
        link["text"]: link["href"] for link in shell.header_links(app, "book/sampling", pathto)
    }
    assert links["Colab"].endswith("/someone/book/blob/gh-pages/_notebooks/sampling.ipynb")
    assert links["Source"] == "https://github.com/someone/book"
    assert links["PDF"] == "../book.pdf"
    wide = [
        link["text"] for link in shell.header_links(app, "book/sampling", pathto) if "wide" in link
    ]
    assert wide == ["Colab", "Source"], "a phone has no room for these"


def test_results_that_a_page_cites_come_along(tmp_path, monkeypatch):
    root, site = tmp_path / "root", tmp_path / "site"
    source = root / "results" / "kernels" / "H100" / "run a.json"
    source.parent.mkdir(parents=True)
    source.write_text("{}")
    monkeypatch.setattr(shell, "ROOT", root)
    page = site / "book" / "kernels.html"
    shell.publish_results(app_at(site), page, '<a href="../results/kernels/H100/run%20a.json">')
    assert (site / "results" / "kernels" / "H100" / "run a.json").read_text() == "{}"

    with pytest.raises(ExtensionError, match=r"not in results/"):
        shell.publish_results(app_at(site), page, '<a href="../results/missing.json">')
    with pytest.raises(ExtensionError, match="does not lead"):
        shell.publish_results(app_at(site), page, '<a href="results/kernels/run.json">')


def test_what_a_preview_shows_and_where_its_links_lead():
    page = Path("/site/book/state-machines.html")
    reader = Path("/site/book/sub/sampling.html")
    html = BeautifulSoup(
        '<div class="proof result" id="res-a"><p id="x">By <a href="#def-b">b</a> and '
        '<a href="bibliography.html#id1">c</a><a class="headerlink" href="#res-a">#</a></p></div>'
        '<dl><dt id="term-state">state</dt><dd>What is kept.</dd></dl><h2 id="title">No</h2>',
        "html.parser",
    )
    assert shell_previews.block(html.find(id="term-state")).name == "dd"
    assert shell_previews.block(html.find(id="title")) is None
    shown = shell_previews.render(
        html.find(id="res-a"), page, reader, "../state-machines.html#res-a"
    )
    assert 'data-href="../state-machines.html#res-a"' in shown
    assert 'href="../state-machines.html#def-b"' in shown
    assert 'href="../bibliography.html#id1"' in shown
    assert "headerlink" not in shown and 'id="' not in shown


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_of_text_can_be_read(theme):
    rule = re.search(rf'html\[data-theme="{theme}"\] \{{(.*?)\}}', BOOK_CSS, re.DOTALL)[1]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", rule))
    for name in ("ink", "muted", "link", "code-string", "code-number"):
        for ground in ("page", "surface"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
    for name in ("focus", "rule-strong"):
        assert contrast(colours[name], colours["page"]) >= 3, name


def test_fonts_named_are_there_with_their_licence():
    fonts = ROOT / "book" / "theme" / "static" / "fonts"
    named = set(re.findall(r'url\("fonts/([^"]+)"\)', BOOK_CSS))
    assert named == {path.name for path in fonts.glob("*.woff2")}
    assert "SIL OPEN FONT LICENSE" in (fonts / "OFL.txt").read_text(encoding="utf-8")
