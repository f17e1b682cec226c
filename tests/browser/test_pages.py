"""Every page of the built book: local, quiet, accessible, and readable at any width."""

import importlib.util
import itertools
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Page, expect

from tests.browser.charts import move_pointer
from tests.browser.controls import assert_every_control_can_be_pressed
from tests.browser.pages import (
    CHAPTER_PAGES,
    CHAPTERS,
    CUT_LINES,
    PAGES,
    ROOT,
    TOC,
    assert_every_link_sets_its_figure,
    assert_whole_before_a_touch,
    leave_out_prose,
    sets_figures,
    soup_of,
)
from tests.browser.stages import (
    assert_stages_hold_their_parts,
    assert_stages_stand_in_their_room,
    assert_stages_step,
    assert_the_address_keeps_stages,
)

REDIRECT = "index.html"

# References to these say what they refer to: a definition, a formula, a work, a term.
SHOWN = re.compile(r"#(def-|res-|equation-|id\d+$|term-)|bibliography\.html#")
WHOLE_OUTPUT = ("book/relatives.html", "book/sampling.html")  # others print what is wider

WITHOUT_PREVIEW = """(wanted) => wanted.filter((href) => {
    const link = document.querySelector(`main a.internal[href="${CSS.escape(href)}"]`);
    const fold = link.closest("details:not([open])");
    if (fold) fold.open = true;
    link.focus();
    const preview = document.getElementById("preview");
    const shown = !preview.hidden && preview.textContent.trim().length > 10;
    link.blur();
    if (fold) fold.open = false;
    return !shown;
})"""


@cache
def ids_of(book: Path, page: Path) -> set[str]:
    name = page.relative_to(book).as_posix()
    return {tag["id"] for tag in soup_of(book, name).select("[id]")}


def is_notebook(chapter: str) -> bool:
    text = (ROOT / f"{chapter}.md").read_text(encoding="utf-8")
    return text.startswith("---") and "kernelspec" in text.split("---")[1]


def test_no_page_is_left_out(built_book):
    built = {
        str(path.relative_to(built_book))
        for path in built_book.rglob("*.html")
        if "_static" not in path.parts
    }
    assert built == {*PAGES, REDIRECT}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_local_quiet_accessible_and_whole_and_can_be_used(reader, built_book, page):
    """All that a page shows before it is touched, then its references, stages and controls.

    Everything in one load, which is most of what a browser does here, but that stages are loaded
    again with what their address says. The reader wants less motion, so that nothing waits for a
    movement; test_weight.py has a page on a phone, with motion.
    """
    tab = reader.open(page, reduced_motion="reduce")
    assert_whole_before_a_touch(tab, page, "light")
    assert not tab.evaluate(CUT_LINES, "cell_input"), "code wider than its column"
    assert page not in WHOLE_OUTPUT or not tab.evaluate(CUT_LINES, "cell_output")
    assert_references_show(tab, soup_of(built_book, page))
    assert_stages_stand_in_their_room(tab, page)
    assert_stages_hold_their_parts(tab, page)
    assert_stages_step(tab, page)
    if page in CHAPTER_PAGES and sets_figures(page):
        assert_every_link_sets_its_figure(tab)
    if tab.locator("figure.explorable, [data-stage]").count():
        leave_out_prose(tab)
        assert_the_address_keeps_stages(tab, page, lambda said: reader.load(tab, f"{page}#{said}"))
        move_pointer(tab, 5, 5)
        assert_every_control_can_be_pressed(tab, page)


def assert_references_show(tab: Page, soup: BeautifulSoup) -> None:
    """A keyboard's focus opens the preview of each; a long page has more than a hundred."""
    links = soup.select("main a.internal[href]")
    wanted = {link["href"] for link in links if SHOWN.search(link["href"])}
    tab.keyboard.press("Tab")  # from here on focus counts as the keyboard's
    assert not tab.evaluate(WITHOUT_PREVIEW, sorted(wanted))


def test_the_chapter_on_kernels_has_interpreted_them(built_book):
    if not importlib.util.find_spec("triton"):
        pytest.skip("Triton is not installed")
    assert "chunked mode: agrees" in soup_of(built_book, "book/kernels.html").get_text()


@pytest.mark.parametrize("page", CHAPTER_PAGES)
def test_headings_step_down_one_at_a_time(built_book, page):
    article = soup_of(built_book, page).select_one("article")
    levels = [int(heading.name[1]) for heading in article.select("h1, h2, h3, h4, h5, h6")]
    assert levels.count(1) == 1 and levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), levels


@pytest.mark.parametrize("page", CHAPTER_PAGES)
def test_ids_are_unique(built_book, page):
    ids = [tag["id"] for tag in soup_of(built_book, page).select("[id]")]
    assert sorted(ids) == sorted(set(ids))


@pytest.mark.parametrize("page", [*PAGES, REDIRECT])
def test_links_inside_the_book_lead_somewhere(built_book, page):
    broken = []
    for link in soup_of(built_book, page).select("a[href], link[href], script[src], img[src]"):
        href = link.get("href") or link.get("src")
        parts = urlsplit(href)
        if parts.scheme or parts.netloc:
            continue
        target = (built_book / page).parent / unquote(parts.path)
        target = target.resolve() if parts.path else built_book / page
        if not target.is_file():
            broken.append(href)
        elif parts.fragment and target.suffix == ".html":
            # A figure keeps the state of its controls behind its id.
            name = unquote(parts.fragment).split(":")[0]
            if name and name not in ids_of(built_book, target):
                broken.append(href)
    assert not broken


@pytest.mark.parametrize("chapter", filter(is_notebook, CHAPTERS))
def test_chapter_can_be_taken_away_as_a_notebook(built_book, chapter):
    link = soup_of(built_book, f"{chapter}.html").select_one(".header-link[download]")
    path = (built_book / chapter).parent / link["href"]
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source]
    first = code.pop(0)  # looks for the book's code where a notebook stands alone
    assert "lsa" in first.source and not first.outputs
    assert code and all(cell.execution_count for cell in code)
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert not re.findall(r"\{[a-z:]+\}`|^:::.*|^```\{.*", prose, re.MULTILINE)
    site = path.parent
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)", prose)
    assert not [link for link in links if not (site / link).exists()]


@pytest.mark.parametrize("width", [1280, 375])
def test_one_search_and_it_finds_from_a_file(open_page, width):
    tab = open_page(f"{TOC['root']}.html", width=width)
    buttons = tab.locator(".search-button__button:visible, input[type=search]:visible")
    assert buttons.count() == 1
    buttons.first.click()
    tab.keyboard.type("attention")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/search.html?q=attention")
    tab.wait_for_selector("#search-results .search li a")
    # A page from a file may not read the others: the words come from a script.
    excerpt = tab.locator("#search-results .search li p.context").first
    assert "attention" in excerpt.inner_text().lower()


def test_theme_switch_is_kept(open_page):
    tab = open_page(f"{TOC['root']}.html", theme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    before = tab.evaluate(background)
    for _ in range(3):
        tab.locator(".theme-switch-button").click()
        if tab.evaluate("document.documentElement.dataset.theme") == "dark":
            break
    assert tab.evaluate(background) != before
    tab.reload()
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.parametrize("width", [1280, 375])
def test_contents_lead_to_a_chapter(open_page, width):
    tab = open_page(f"{TOC['root']}.html", width=width)
    link = tab.locator(".bd-links a", has_text="Notation")
    if width < 992:
        tab.locator(".primary-toggle:visible").click()
    link.click()
    tab.wait_for_url("**/book/notation.html")


def test_contents_fold_away_beside_the_text_and_a_scrolled_page_has_a_rule(open_page):
    tab = open_page(CHAPTER_PAGES[1])
    contents, toggle = tab.locator("#pst-primary-sidebar"), tab.locator(".primary-toggle:visible")
    for fold in (expect(contents).to_be_hidden, expect(contents).to_be_visible):
        toggle.click()
        fold()
    rule = "getComputedStyle(document.querySelector('.bd-header-article')).boxShadow"
    assert tab.evaluate(rule) == "none"
    # At once: what a key begins, a busy browser drops where it lays the page out anew.
    tab.evaluate("scrollTo({ top: 999, behavior: 'instant' })")
    expect(tab.locator("body")).to_have_class(re.compile(r"\bscrolled\b"))
    assert tab.evaluate(rule) != "none"


def test_a_citation_shows_what_it_cites(built_book, open_page):
    """By keyboard, on a page that may not read the bibliography's file."""
    page = next(
        page
        for page in CHAPTER_PAGES
        if soup_of(built_book, page).select_one("main p a.internal[href*='bibliography.html#']")
    )
    tab = open_page(page)
    link = tab.locator("main p a.internal[href*='bibliography.html#']").first
    cited = link.inner_text().split(",")[0].split(" ")[0]
    tab.keyboard.press("Tab")
    link.focus()
    preview = tab.locator("#preview")
    assert cited in preview.inner_text()
    assert link.get_attribute("aria-describedby") == "preview"
    tab.keyboard.press("Escape")
    assert preview.is_hidden()


def test_no_output_is_without_text(built_book):
    for page in CHAPTER_PAGES:
        soup = soup_of(built_book, page)
        outputs = soup.select(".cell_output .output pre")
        assert all(one.get_text(strip=True) for one in outputs), f"{page}: an output without text"


def test_icons_are_all_drawn(built_book):
    """The theme's icon library is left out: an icon without a picture would be a blank."""
    for page in PAGES:
        icons = soup_of(built_book, page).select("[class*='fa-']")
        assert icons, page
        assert all(icon.select("svg > path") for icon in icons), page


def test_no_image_is_made_by_a_style_sheet(built_book):
    """A browser makes a document for each, before it shows anything of the page."""
    css = (built_book / "_static" / "page.css").read_text(encoding="utf-8")
    assert "data:image" not in css
