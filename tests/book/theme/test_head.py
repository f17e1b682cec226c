"""What a page says of itself and what it may load."""

import struct
from pathlib import Path
from types import SimpleNamespace

import pytest
from sphinx.errors import ExtensionError

from book.theme import head

BOOK = SimpleNamespace(project="The book", html_baseurl="https://example.org/book/")


def test_a_description_is_the_question_else_the_first_paragraph():
    asked = '<div class="question"><p class="block-label">Q</p><p>Why  so?</p></div>'
    assert head.description(f"<p>First.</p>{asked}") == "Why so?"
    assert head.description("<h1>T</h1><p>First.</p><p>Second.</p>") == "First."
    assert head.description("") == ""
    long = head.description(f"<p>{'word ' * 60}</p>")
    assert len(long) <= head.DESCRIPTION_LENGTH + 2
    assert long.endswith("word …")


def test_a_page_loads_only_the_scripts_it_needs():
    plain, search = head.scripts("book/a", "<p>"), head.scripts("search", "<p>")
    figure_mark = '<figure class="explorable figure-frame"><pre class="highlight">'
    figure = head.scripts("book/a", figure_mark)
    assert not [name for name in plain if "explorable" in name or "search" in name]
    assert "../searchindex.js" in search
    assert "explorable.js" in figure and "copybutton.js" in figure
    assert len(set(figure)) == len(figure)
    two = '<div data-stage="a" data-scripts="stage a"><div data-stage="b" data-scripts="stage b">'
    stages = [f"stages/{name}.js" for name in ("stage", "a", "b")]
    assert head.stage_scripts(two) == [*head.BEFORE_STAGES, *stages]
    assert not set(head.scripts("book/a", two + figure_mark)) & set(head.stage_scripts(two))


def test_the_policy_allows_the_books_own_files_only():
    app = SimpleNamespace(config=BOOK)
    meta = head.tags(app, "book/a", {"title": "A &amp; B", "body": '<p>Say "so".</p>'})
    assert "default-src &#x27;none&#x27;; script-src &#x27;self&#x27;;" in meta
    assert "http" not in meta.split("/>")[0].replace("http-equiv", "")
    assert 'content="Say &quot;so&quot;."' in meta
    assert 'content="A &amp; B"' in meta
    assert 'content="https://example.org/book/book/a.html"' in meta


def test_a_shared_link_shows_the_first_figure():
    meta = head.tags(SimpleNamespace(config=BOOK), "book/a", {"title": "A", "body": "<p>Say.</p>"})
    assert 'property="og:image" content="https://example.org/book/_static/card.png"' in meta
    assert "summary_large_image" in meta
    card = (Path(head.__file__).parent / "static" / "card.png").read_bytes()
    assert struct.unpack(">II", card[16:24]) == (1200, 630)  # as a PNG's head says it
    at_home = SimpleNamespace(config=SimpleNamespace(project="The book", html_baseurl=""))
    assert "og:image" not in head.tags(at_home, "book/a", {"body": ""})


@pytest.mark.parametrize(
    "html", ["<script>x()</script>", '<p onclick="x()">', "<SCRIPT type=module>x()</SCRIPT>"]
)
def test_a_script_in_a_page_fails_the_build(html):
    with pytest.raises(ExtensionError, match=r"a\.html: expected scripts in files only"):
        head.check_policy("a.html", html)


def test_data_and_files_are_no_scripts_in_a_page():
    head.check_policy("a.html", '<script defer src="a.js"></script>')
    head.check_policy("a.html", '<script type="application/json">{"a": "u003cscript>"}</script>')


def test_a_sitemap_needs_to_know_where_the_book_is(tmp_path):
    env = SimpleNamespace(found_docs={"book/b", "book/a"})
    head.write_sitemap(SimpleNamespace(outdir=tmp_path, env=env, config=BOOK))
    places = (tmp_path / "sitemap.xml").read_text()
    assert places.index("https://example.org/book/book/a.html") < places.index("/book/b.html")
    assert "https://example.org/book/sitemap.xml" in (tmp_path / "robots.txt").read_text()
    nowhere = SimpleNamespace(html_baseurl="")
    head.write_sitemap(SimpleNamespace(outdir=tmp_path / "no", env=env, config=nowhere))
    assert not (tmp_path / "no").exists()
