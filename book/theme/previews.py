"""Previews: the target of a reference, copied to the page that refers to it.

A reader who hovers over a citation or over "Definition 2.1" should see it at once, but a page
opened from a file may not read another page. So, when all pages are written, each gets copies of
the blocks that it refers to elsewhere, as inert templates that shell.js shows. Blocks on the same
page need no copy.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

from bs4 import BeautifulSoup, Tag
from sphinx.application import Sphinx

ADDED = re.compile(r'\s*<template class="preview-source".*?</template>', re.DOTALL)
REFERENCE = re.compile(r'<a class="[^"]*\binternal\b[^"]*" href="([^"#]*)#([^"]+)"')


def block(anchor: Tag) -> Tag | None:
    """The block that a preview of `anchor` should show, or None."""
    classes = set(anchor.get("class", []))
    if classes & {"proof", "citation", "math"}:
        return anchor
    if anchor.name == "dt":
        return anchor.find_next_sibling("dd")
    return None


def absolute_links(fragment: Tag, page: Path, reader: Path) -> None:
    """Rewrite the links of `fragment` of `page` so that they work on page `reader`."""
    for link in fragment.find_all("a", href=True):
        href = link["href"]
        if ":" in href.split("/")[0]:
            continue
        path, _, anchor = href.partition("#")
        target = os.path.normpath(page.parent / path) if path else str(page)
        link["href"] = os.path.relpath(target, reader.parent) + (f"#{anchor}" if anchor else "")


def render(element: Tag, page: Path, reader: Path, href: str) -> str:
    fragment = BeautifulSoup(str(element), "html.parser")
    for tag in fragment.find_all(id=True):
        del tag["id"]
    for tag in fragment.select(".headerlink, .backrefs"):
        tag.decompose()
    absolute_links(fragment, page, reader)
    return f'<template class="preview-source" data-href="{href}">{fragment}</template>'


def add_previews(app: Sphinx) -> None:
    pages: dict[Path, BeautifulSoup] = {}

    def parsed(path: Path) -> BeautifulSoup:
        if path not in pages:
            pages[path] = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        return pages[path]

    for name in app.env.found_docs:
        reader = Path(app.builder.get_outfilename(name))
        # A page that this build did not write has the previews of the last build.
        html = ADDED.sub("", reader.read_text(encoding="utf-8"))
        templates = []
        for path, anchor in sorted(set(REFERENCE.findall(html))):
            target = Path(os.path.normpath(reader.parent / unquote(path)))
            if not path or target == reader or not target.is_file():
                continue
            named = parsed(target).find(id=unquote(anchor))
            element = block(named) if named else None
            if element:
                templates.append(render(element, target, reader, f"{path}#{anchor}"))
        html = html.replace("</body>", "\n".join([*templates, "</body>"]))
        reader.write_text(html, encoding="utf-8")
