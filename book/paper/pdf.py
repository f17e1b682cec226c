"""The book as one PDF, printed by a browser: `python -m book.paper.pdf`, after `make book`.

All chapters are joined into one document, in which no script runs. Still pictures replace stages
and charts, and folded parts are open. A link to another chapter leads to its page of the PDF, and
one to a result or a notebook to the published book, if BOOK_URL gives its address.
"""

from __future__ import annotations

import os
import posixpath
import sys
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urljoin, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag
from playwright.sync_api import Browser

from book.paper.browser import launched

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
NAME = "book.pdf"
MOST_BYTES = 15_000_000
SHEET = Path(__file__).with_name("paper.css")
# Controls, text for screen readers only, second copies of formulas, and the list of all runs.
UNPRINTED = (
    "script, template, button, select, .headerlink, .copybtn, .visually-hidden, .stage, "
    ".stage-note, .explorable-note, .explorable-settings, .explorable-tools, .katex-mathml, "
    ".explorable-level-control, .tag_filterable, details.hide > summary"
)
FOOTER = (
    '<p style="width: 100%; font: 8px sans-serif; text-align: center">'
    '<span class="pageNumber"></span></p>'
)


def contents(toc: Mapping) -> Iterator[tuple[str, list[str]]]:
    """The parts of the book in order: the caption of each, and its pages in the site."""
    yield "", [f"{toc['root']}.html"]
    for part in toc.get("parts", ()):
        yield part["caption"], [f"{chapter['file']}.html" for chapter in part["chapters"]]


def joined(
    pages: Mapping[str, str], parts: list[tuple[str, list[str]]], site: str, base: str = ""
) -> str:
    """One document of all pages, given as HTML by path in the site, in the order of the parts.

    site: folder of its files, for the browser. base: address of the published book, or "".
    """
    soups = {page: BeautifulSoup(html, "html.parser") for page, html in pages.items()}
    articles = {page: soup.select_one("article.bd-article") for page, soup in soups.items()}
    anchors = {page: {one["id"] for one in root.select("[id]")} for page, root in articles.items()}
    for page, article in articles.items():
        _prepare(page, article, anchors, base)
        for picture in article.select("img[src]"):
            picture["src"] = f"{site}/{_path(picture['src'], page)}"
    title = soups[parts[0][1][0]].select_one("h1").get_text().strip()
    listed = "".join(
        f"<p>{escape(caption)}</p><ul>{''.join(_line(page, articles[page]) for page in names)}</ul>"
        for caption, names in parts
    )
    body = "".join(str(articles[page]) for _, names in parts for page in names)
    return (
        f'<!DOCTYPE html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        f'<title>{escape(title)}</title><link rel="stylesheet" href="{site}/_static/page.css">'
        f"<style>{SHEET.read_text(encoding='utf-8')}</style></head>"
        f'<body><main class="bd-main"><div class="bd-content"><div class="bd-article-container">'
        f'<nav class="bd-article paper-contents"><p class="paper-title">{escape(title)}</p>{listed}'
        f"</nav>{body}</div></div></main></body></html>"
    )


def _line(page: str, article: Tag) -> str:
    heading = article.select_one("h1")
    return f'<li><a href="#{_anchor(page)}">{heading.decode_contents()}</a></li>'


def _anchor(page: str, name: str = "") -> str:
    """An id, unique in the document, for `name` in a page, or for the page."""
    return f"{posixpath.basename(page).removesuffix('.html')}.{name}"


def _prepare(page: str, article: Tag, anchors: Mapping[str, set[str]], base: str) -> None:
    """Remove what paper cannot show, open folds, and adapt ids and links to the whole document."""
    for element in article.select(UNPRINTED):
        if not element.decomposed:  # removed with its parent
            element.decompose()
    for view in article.select("a.figure-view"):
        view.unwrap()
    for code in article.select("details.hide"):
        code.unwrap()
    for fold in article.select("details.folded"):
        fold["open"] = ""
    article["id"] = _anchor(page)
    for element in article.find_all(True):
        if "id" in element.attrs:
            element["id"] = _anchor(page, element["id"])
        for name in [name for name in element.attrs if name.startswith("aria-")]:
            if name != "aria-label":
                del element[name]
        for name, value in element.attrs.items():
            if isinstance(value, str) and "url(#" in value:
                element[name] = value.replace("url(#", f"url(#{_anchor(page)}")
        if element.name == "use":
            element["href"] = f"#{_anchor(page, element['href'][1:])}"
        elif element.name == "a" and "href" in element.attrs:
            _lead(element, _address(element["href"], page, anchors, base))


def _lead(link: Tag, address: str | None) -> None:
    if address is None:
        del link["href"]
    else:
        link["href"] = address


def _address(href: str, page: str, anchors: Mapping[str, set[str]], base: str) -> str | None:
    """Target of a page's link in the PDF; None if there is none."""
    parts = urlsplit(href)
    if parts.scheme:
        return href
    target = _path(parts.path, page) if parts.path else page
    if target in anchors:
        name = unquote(parts.fragment)
        return f"#{_anchor(target, name if name in anchors[target] else '')}"
    return urljoin(f"{base.rstrip('/')}/", target) if base else None


def _path(address: str, page: str) -> str:
    """Path in the site of a page's relative address."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(address)))


def print_whole(browser: Browser, html: str, target: Path) -> None:
    """Print a document to a PDF with numbered pages and an outline of its headings."""
    with TemporaryDirectory() as folder:
        whole = Path(folder, "whole.html")
        whole.write_text(html, encoding="utf-8")
        tab = browser.new_page(java_script_enabled=False)
        tab.goto(whole.as_uri(), timeout=300_000)
        tab.pdf(
            path=target,
            prefer_css_page_size=True,
            print_background=True,
            display_header_footer=True,
            header_template="<p></p>",
            footer_template=FOOTER,
            outline=True,
            tagged=True,
        )
        tab.close()


def write(site: Path = SITE) -> Path:
    """Print the book of a built site to its book.pdf. Raises ValueError if it is too heavy."""
    parts = list(contents(yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))))
    names = [page for _, pages in parts for page in pages]
    pages = {page: (site / page).read_text(encoding="utf-8") for page in names}
    base, target = os.environ.get("BOOK_URL", ""), site / NAME
    whole = joined(pages, parts, site.resolve().as_uri(), base)
    with launched() as browser:
        print_whole(browser, whole, target)
    size = target.stat().st_size
    if size > MOST_BYTES:
        raise ValueError(f"{target}: expected at most {MOST_BYTES:,} bytes, got {size:,}")
    return target


if __name__ == "__main__":
    written = write(*map(Path, sys.argv[1:]))
    print(f"The book: {written} ({written.stat().st_size / 1e6:.1f} MB)")
