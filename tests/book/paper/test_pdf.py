"""The whole book as one document: what paper cannot do is gone, and links still lead somewhere."""

import pytest
from bs4 import BeautifulSoup

from book.paper.pdf import contents, joined

INDEX = """<html><body><article class="bd-article"><section id="a-result"><h1>A <em>result</em>
<a class="headerlink" href="#a-result">#</a></h1>
<p><a href="modes.html#fast">fast</a>
<a href="modes.html#gone">gone</a> <a href="modes.html">all</a>
<a href="../results/race/run.json">run</a> <a href="https://example.org/x">web</a>
<a class="figure-view" href="#race:by=minutes">minutes<span
class="visually-hidden"> (sets)</span></a></p>
<div class="stage-frame" data-stage="race" id="race" aria-labelledby="race-title"><noscript>
<p class="stage-note">needs JavaScript</p>
<img class="stage-still" src="../_static/stages/stills/race.svg" alt="Step 0" /></noscript>
<div class="stage"></div></div><script>run()</script></section></article></body></html>"""
MODES = """<html><body><article class="bd-article"><section id="fast"><h1>Modes</h1>
<svg><defs><clipPath id="clip"></clipPath></defs><g clip-path="url(#clip)">
<use href="#clip"></use></g></svg>
<details class="folded"><summary>Reveal</summary><p id="race">Up.</p></details>
<details class="hide"><summary>Show the code</summary><pre>code</pre></details>
<a href="index.html#race">race</a></section></article></body></html>"""
PAGES = {"book/index.html": INDEX, "book/modes.html": MODES}
PARTS = [("", ["book/index.html"]), ("Computation", ["book/modes.html"])]


def whole(base: str = "") -> BeautifulSoup:
    return BeautifulSoup(joined(PAGES, PARTS, "file:///site", base), "html.parser")


def links(soup: BeautifulSoup) -> dict[str, str | None]:
    return {link.get_text(): link.get("href") for link in soup.select("article a")}


def test_links_between_chapters_stay_inside_and_no_path_of_this_computer_is_left():
    assert links(whole()) == {
        "fast": "#modes.fast",
        "gone": "#modes.",
        "all": "#modes.",
        "run": None,
        "web": "https://example.org/x",
        "race": "#index.race",
    }
    soup = whole("https://example.org/book")
    assert links(soup)["run"] == "https://example.org/book/results/race/run.json"
    named = [one["id"] for one in soup.select("[id]")]
    assert len(set(named)) == len(named)
    inside = [link["href"][1:] for link in soup.select("a[href^='#']")]
    assert set(inside) <= set(named)
    assert soup.select_one("g")["clip-path"] == "url(#modes.clip)"
    assert soup.select_one("use")["href"] == "#modes.clip"


def test_what_paper_cannot_do_is_gone_and_what_is_folded_is_open():
    soup = whole()
    assert not soup.select("script, .stage, .headerlink, .visually-hidden, [aria-labelledby]")
    assert "JavaScript" not in soup.get_text() and "Show the code" not in soup.get_text()
    assert "minutes" in soup.get_text() and "code" in soup.get_text()
    still = "file:///site/_static/stages/stills/race.svg"
    assert [picture["src"] for picture in soup.select("img")] == [still]
    assert all("open" in fold.attrs for fold in soup.select("details"))


def test_the_contents_list_the_parts_in_their_order():
    chapter = {"file": "book/modes"}
    toc = {"root": "book/index", "parts": [{"caption": "Computation", "chapters": [chapter]}]}
    assert list(contents(toc)) == PARTS
    listed = whole().select_one(".paper-contents")
    words = [part.get_text().strip() for part in listed.select("p")]
    assert words == ["A result", "", "Computation"]
    assert [link["href"] for link in listed.select("a")] == ["#index.", "#modes."]


@pytest.mark.parametrize("base", ["https://example.org/book", "https://example.org/book/"])
def test_the_address_of_the_book_may_end_in_a_slash(base):
    assert links(whole(base))["run"] == "https://example.org/book/results/race/run.json"
