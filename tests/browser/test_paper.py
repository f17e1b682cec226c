"""Stages where no script runs, and the book as a PDF."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from book.paper import pdf, stills
from tests.browser.pages import CHAPTER_PAGES, WIDER, soup_of
from tests.browser.stages import PLACES

MOST_BYTES = 3_000_000  # of all still pictures
LOADED = "(picture) => picture.decode().then(() => picture.naturalWidth)"
PARTS = """<style>* { margin: 0 } section { width: 200px; font: 16px/20px sans-serif }
b { border: 2px dashed #ff0000; background: rgb(0 0 255 / 50%) } path { stroke: #00ff00 }
.gone { display: none } .cut { height: 10px; overflow: hidden }</style>
<section>two words <b>bold</b><i class="gone">not seen</i><input value="typed">
<svg viewBox="0 0 10 10" width="20" height="20"><path d="M0.12345 0H5" /></svg>
<div class="cut">some<br>more</div><canvas width="4" height="4"></canvas></section>"""


def test_a_still_picture_is_of_its_stage_as_it_is_now(built_book: Path):
    soups = [soup_of(built_book, page) for page in CHAPTER_PAGES]  # which other tests have read
    frames = [(soup, frame) for soup in soups for frame in soup.select("[data-stage]")]
    assert {str(frame["id"]) for _, frame in frames} == set(PLACES)
    now = {str(frame["id"]): stills.digest(built_book, soup, frame) for soup, frame in frames}
    old = [name for name, digest in now.items() if stills.kept_digest(name) != digest]
    assert not old, f"run make stills, then make book: {', '.join(old)}"
    kept = list(stills.STILLS.iterdir())
    assert {still.stem for still in kept} == set(PLACES)
    assert sum(still.stat().st_size for still in kept) < MOST_BYTES


def test_a_still_picture_is_old_once_a_script_its_data_or_a_rule_of_it_is_another(tmp_path):
    static, frame = tmp_path / "_static", '<div data-stage="s" data-scripts="s" id="s"></div>'
    (static / "stages").mkdir(parents=True)
    sheets = [static / sheet for sheet in stills.SHEETS]
    for sheet in sheets:
        sheet.write_text(".one { color: red } .two { color: red }")
    script = static / "stages" / "s.js"
    (tmp_path / "book").mkdir()
    page = tmp_path / "book" / "page.html"

    def digest(data: str) -> str:
        page.write_text(f'{frame}<script id="s-data" type="application/json">{data}</script>')
        ((_, soup, found),) = stills.stages(tmp_path)
        return stills.digest(tmp_path, soup, found)

    script.write_text('read("s-data", "one")')
    first = digest("[0.1234567891]")
    assert digest("[0.1234567892]") == first, "processors differ in the last digits"
    assert digest("[0.12345]") != first
    sheets[2].write_text(".one { color: red } .two { color: blue }")
    assert digest("[0.1234567891]") == first, "no script of it names this class"
    sheets[2].write_text(".one { color: blue } .two { color: red }")
    assert digest("[0.1234567891]") != first
    sheets[2].write_text(sheets[1].read_text())
    script.write_text('read("s-data", "one", 2)')
    assert digest("[0.1234567891]") != first


def test_a_part_of_a_page_is_drawn_as_it_stands(browser):
    tab = browser.new_page()
    tab.set_content(PARTS)
    tab.evaluate(stills.SCRIPT.read_text(encoding="utf-8"))
    svg = tab.locator("section").evaluate("(section) => Still.of(section, 'a < b')")
    tab.close()
    assert "<title>a &lt; b</title>" in svg
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert texts == ["two words", "bold", "some", "more"]
    assert 'fill="#0000ff" fill-opacity="0.5"' in svg
    assert re.search('stroke="#ff0000"[^>]* stroke-dasharray', svg)
    assert 'd="M0.12 0H5"' in svg and 'stroke="#00ff00"' in svg
    assert 'overflow="hidden"' in svg and "data:image/webp" in svg


@pytest.mark.parametrize("page", ["book/index.html", "book/three-modes.html"])
def test_without_javascript_a_stage_is_its_still_picture(browser, built_book, page):
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(f"file://{built_book}/{page}")
    frames = tab.locator("[data-stage]")
    assert frames.count() == len(soup_of(built_book, page).select("[data-stage]"))
    for width in (1280, 375):
        tab.set_viewport_size({"width": width, "height": 900})
        for frame in frames.all():
            picture = frame.locator("img")
            expect(picture).to_be_visible()
            assert picture.evaluate(LOADED) > 600
            room, shown = frame.bounding_box(), picture.bounding_box()
            assert shown["width"] == pytest.approx(room["width"], abs=1)
            expect(frame.locator(".stage-note")).to_be_visible()
        assert tab.evaluate(WIDER) <= 0
    context.close()


def test_a_chapter_is_printed_with_its_pictures_and_an_outline(browser, built_book, tmp_path):
    page = "book/many-devices.html"
    pages = {page: (built_book / page).read_text(encoding="utf-8")}
    target = tmp_path / "chapter.pdf"
    pdf.print_whole(browser, pdf.joined(pages, [("", [page])], built_book.as_uri()), target)
    printed = target.read_bytes()
    assert printed.startswith(b"%PDF")
    assert b"/Outlines" in printed
    assert 2 <= len(re.findall(rb"/Type /Page\b(?!s)", printed)) <= 20
    assert str(built_book).encode() not in printed
    assert len(printed) < 1_500_000
