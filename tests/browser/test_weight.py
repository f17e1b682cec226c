"""What a page costs before a reader does anything: bytes, elements, movement; nothing is timed."""

import functools
import gzip
import http.server
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from book.theme import head
from tests.browser.conftest import LAY_OUT, NOTE_VIOLATIONS, watch
from tests.browser.pages import (
    CHAPTER_PAGES,
    CUT_FORMULAS,
    PAGES,
    assert_fits_with_a_readers_spacing,
    assert_whole_before_a_touch,
    soup_of,
)
from tests.browser.stages import (
    NEXT_FRAME,
    assert_stages_hold_their_parts,
    assert_stages_stand_in_their_room,
)

# Bounds that a page must not grow past unnoticed; formulas are most of the elements.
MOST_KB = 320
MOST_ELEMENTS = 18_000
# Before the reader scrolls: what costs time is these. A browser lays out one and a half screens
# more than it shows, and a block of formulas has some 600.
MOST_LAID_OUT = 3000
MOST_SHIFT = 0.01
MOST_GROWTH = 0.08  # of a page's height, until all of it is laid out

LAID_OUT = """() => [...document.querySelectorAll("body *")]
    .filter((element) => element.checkVisibility({ contentVisibilityAuto: true })).length"""
# Its text in its own letters: where these come late, a page has been laid out in others.
HEIGHT = """async () => {
    document.body.offsetHeight;
    await document.fonts.ready;
    return document.documentElement.scrollHeight;
}"""
NOTE_SHIFTS = """
window.shift = 0;
new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""
# A script that stands in the page must be stopped, or the policy holds nothing.
TRY_A_SCRIPT = """() => {
    const script = document.createElement("script");
    script.textContent = "window.ranInPage = true";
    document.body.append(script);
    return Boolean(window.ranInPage);
}"""
CHANGE_A_PICTURE = """() => {
    const picture = document.querySelector(".explorable-plot svg");
    picture.append(document.createElementNS(picture.namespaceURI, "g"));
    return document.body.offsetHeight;
}"""


def sent(book: Path, url: str) -> int:
    """Bytes of a file as a web server sends it: texts compressed."""
    body = (book / url.partition("//")[2].partition("/")[2]).read_bytes()
    return len(body if url.endswith((".woff2", ".png")) else gzip.compress(body, 6))


@pytest.fixture(scope="module")
def served(built_book) -> Iterator[str]:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=built_book)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_page_opened_from_a_file_lies_still_while_its_letters_come(browser, built_book):
    tab = browser.new_page(viewport={"width": 375, "height": 800})
    tab.add_init_script(NOTE_SHIFTS)
    tab.goto(f"{built_book.as_uri()}/book/linear-self-attention.html")
    tab.wait_for_selector("html[data-ready]", state="attached")
    late = "[...document.fonts].some((one) => one.display === 'swap' && one.status === 'loaded')"
    tab.wait_for_function(late)
    tab.wait_for_function("!document.documentElement.style.visibility")
    tab.wait_for_timeout(200)
    assert tab.evaluate("window.shift") < MOST_SHIFT
    tab.close()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_light_and_lies_still_and_is_whole_on_a_phone(browser, built_book, served, page):
    """Before any touch: no drawing library, few bytes, nothing moves. Then its stages, spacing.

    In the dark, and as wide as a small phone; test_pages.py has a page in the light at a desk.
    """
    context = browser.new_context(
        viewport={"width": 412, "height": 823}, has_touch=True, color_scheme="dark"
    )
    tab = context.new_page()
    tab.add_init_script(NOTE_VIOLATIONS)
    tab.add_init_script(NOTE_SHIFTS)
    troubles, asked = [], []
    tab.on("requestfinished", lambda request: asked.append(request.url))
    watch(tab, troubles, local=(served, "data:", "blob:"))
    tab.goto(f"{served}/{page}", wait_until="networkidle")
    tab.wait_for_selector("html[data-ready]", state="attached")
    sizes = {url: sent(built_book, url) for url in asked if url.startswith("http")}
    assert not [url for url in sizes if re.search("plotly|mathjax", url)]
    if page != "search.html":
        assert not [url for url in sizes if "searchindex" in url]
    assert sum(sizes.values()) < MOST_KB * 1000, sizes
    assert tab.evaluate("document.querySelectorAll('*').length") < MOST_ELEMENTS
    assert tab.evaluate(LAID_OUT) < MOST_LAID_OUT
    assert tab.evaluate("window.shift") < MOST_SHIFT
    guessed = tab.evaluate(HEIGHT)
    tab.evaluate(LAY_OUT)
    assert abs(tab.evaluate(HEIGHT) / guessed - 1) < MOST_GROWTH
    assert_stages_stand_in_their_room(tab, page)
    tab.evaluate("scrollTo(0, 0)")

    tab.set_viewport_size({"width": 375, "height": 900})
    tab.evaluate(NEXT_FRAME)
    assert_whole_before_a_touch(tab, page, "dark")
    assert not tab.evaluate(CUT_FORMULAS), "formulas wider than a phone"
    assert_stages_hold_their_parts(tab, page)
    if page in CHAPTER_PAGES:
        assert_fits_with_a_readers_spacing(tab)
    assert not troubles
    assert not tab.evaluate(TRY_A_SCRIPT), "the policy lets a script in the page run"
    context.close()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_what_it_is_and_runs_no_script_of_its_own(built_book, page):
    soup = soup_of(built_book, page)
    for name in ("description", "twitter:card"):
        assert soup.select_one(f"meta[name='{name}']")["content"]
    for name in ("og:title", "og:description"):
        assert soup.select_one(f"meta[property='{name}']")["content"]
    inside = soup.select("script:not([src]):not([type='application/json'])")
    assert not inside
    # All but the stages wait for the first paint.
    loaded = [script["src"] for script in soup.select("script[src]")]
    names = {Path(src).name for src in loaded if not re.search("/(stages|data)/", src)}
    names -= {Path(name).name for name in head.stage_scripts(str(soup))}
    assert names == {"theme-mode.js", "after-paint.js"}
    policy = soup.select_one("meta[http-equiv='Content-Security-Policy']")
    first = soup.select_one("script, link[rel=stylesheet]")
    assert policy.sourceline < first.sourceline, "a policy holds for what comes after it"


@pytest.mark.parametrize("page", ["index", "three-modes"])
def test_what_changes_in_a_picture_has_little_else_styled_again(browser, open_page, page):
    """A rule of what a section has, for a part of it, had all of its words: 20 ms a press."""
    tab = open_page(f"book/{page}.html")
    browser.start_tracing(page=tab, categories=["devtools.timeline"])
    tab.evaluate(CHANGE_A_PICTURE)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    styled = [one["args"]["elementCount"] for one in events if one["name"] == "UpdateLayoutTree"]
    assert styled and sum(styled) < 100


def test_descriptions_differ(built_book):
    said = [
        soup_of(built_book, page).select_one("meta[name=description]")["content"]
        for page in CHAPTER_PAGES
    ]
    assert len(set(said)) == len(said)
