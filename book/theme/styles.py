"""One style sheet for all pages: the theme's and the book's, without unused rules.

The theme brings Bootstrap and all its own widgets, 65 KB compressed. The pages use a sixth of it.
It comes in a dozen files, each of which delays the first paint. So, when all pages are written, the
sheets are joined in the order in which they would have been loaded. Rules for a class or an id that
neither a page nor a script names are dropped, and so are unused variables.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

PALETTE = "palette.css"
SHEETS = (
    "basic.css",
    "styles/pydata-sphinx-theme.css",
    "pygments.css",
    "styles/sphinx-book-theme.css",
    "copybutton.css",
    "mystnb.*.css",
    "proof.css",
    "katex-*/katex.min.css",
    # Colours first, then the page, then the figures that use both.
    PALETTE,
    "book.css",
    "explorable.css",
    "stages/stage.css",
)
JOINED = "page.css"
# Opened from a file, fonts load at once, and the page may wait for them: theme-mode.js loads these.
FONTS_AT_HAND = "fonts-at-hand.css"
# Their class names are their own, or of elements that the pages never show.
FOREIGN_SCRIPTS = re.compile(r"bootstrap|togglebutton|design-tabs|language_data|locales")

TOKEN = re.compile(
    r"""/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|url\([^"')]*\)|[{};]""", re.DOTALL
)
NAME = re.compile(r"[.#](-?[A-Za-z_][\w-]*)")
ALTERNATIVES = re.compile(r":(?:not|is|where|has)\((?:[^()]|\([^()]*\))*\)")
ADDRESS = re.compile(r"""url\(\s*(["']?)(?!data:|#|https?:)([^"')]+)\1\s*\)""")
VARIABLE = re.compile(r"(?<![\w-])(--[\w-]+)\s*:")
DECLARATION = (
    r"""(?<![\w-]){}\s*:(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|url\([^"')]*\)|[^;{{}}"'])*;?"""
)
ANIMATION = re.compile(r"animation(?:-name)?\s*:([^;}]*)")
READ = re.compile(r"var\(\s*(--[\w-]+)")
# A chart's script builds these names; Python alone uses the labels.
COLOUR = re.compile(r"(--[\w-]+):\s*#")
GROUPS = ("@media", "@supports", "@container", "@layer")


def rules(css: str) -> Iterator[tuple[str, str | None]]:
    """`(prelude, body)` of each rule; the body is None for a statement such as @charset."""
    start = opened = depth = 0
    prelude = ""
    for token in TOKEN.finditer(css):
        mark = token[0]
        if mark == "{":
            if depth == 0:
                prelude, opened = css[start : token.start()], token.end()
            depth += 1
        elif mark == "}":
            depth -= 1
            if depth == 0:
                yield prelude.strip(), css[opened : token.start()].strip()
                start = token.end()
        elif mark == ";" and depth == 0:
            yield css[start : token.end()].strip(), None
            start = token.end()


def selectors(prelude: str) -> list[str]:
    """The selectors of a list; a comma inside brackets does not separate them."""
    parts, depth = [""], 0
    for letter in prelude:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def needed(css: str, used: set[str]) -> str:
    """`css` without comments and without rules for a class or an id that is not in `used`."""
    css = TOKEN.sub(lambda token: "" if token[0].startswith("/*") else token[0], css)
    remaining = []
    for prelude, body in rules(css):
        if body is not None and prelude.startswith(GROUPS):
            body = needed(body, used)
        elif body is not None and not prelude.startswith("@"):
            prelude = ",".join(
                one
                for one in selectors(prelude)
                if set(NAME.findall(ALTERNATIVES.sub("", one))) <= used
            )
        if prelude and body != "":
            remaining.append((prelude, body))
    return as_text(remaining)


def less_unread(css: str, read: set[str]) -> str:
    """`css` without animations and variables that neither it nor `read` names."""
    moved = set(re.findall(r"[\w-]+", " ".join(ANIMATION.findall(css))))
    css = as_text(
        (prelude, body)
        for prelude, body in rules(css)
        if not prelude.startswith("@keyframes") or prelude.split()[1] in moved
    )
    while unread := set(VARIABLE.findall(css)) - read - set(READ.findall(css)):
        for name in unread:
            css = re.sub(DECLARATION.format(name), "", css)
    return as_text((prelude, body) for prelude, body in rules(css) if body != "")


def as_text(rules: Iterable[tuple[str, str | None]]) -> str:
    """Rules as a style sheet, one after the other."""
    return "\n".join(prelude if body is None else f"{prelude}{{{body}}}" for prelude, body in rules)


def names_in_use(site: Path) -> set[str]:
    """Classes, ids and variables of the pages' elements, and every word of their scripts."""
    used: set[str] = set()
    scripts: set[Path] = set()
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for names in re.findall(r'(?:class|id)="([^"]*)"', text):
            used.update(names.split())
        used.update(READ.findall(text))
        # Only scripts that a page loads: an older build may have left others there.
        for element in re.findall(r"<script[^>]*>", text):
            if not (address := re.search(r'\ssrc="([^"?#:]+\.js)', element)):
                continue
            script = (page.parent / address[1]).resolve()
            # after-paint.js lists the scripts that it loads, relative to its own folder.
            later = re.search(r'data-scripts="([^"]*)"', element)
            names = later[1].split() if later else ()
            scripts.update([script, *((script.parent / name).resolve() for name in names)])
    for script in scripts:
        if script.is_file() and not FOREIGN_SCRIPTS.search(script.name):
            used.update(re.findall(r"(?:--)?[A-Za-z_][\w-]*", script.read_text(encoding="utf-8")))
    return used


def join_sheets(site: Path) -> None:
    """Write `_static/page.css` from the site's own sheets, with adapted addresses."""
    static = site / "_static"
    used = names_in_use(site)
    joined = []
    for pattern in SHEETS:
        for sheet in sorted(static.glob(pattern)):
            folder = os.path.relpath(sheet.parent, static)

            def moved(match: re.Match, folder: str = folder) -> str:
                return f'url("{posixpath.normpath(posixpath.join(folder, match[2]))}")'

            css = sheet.read_text(encoding="utf-8").lstrip("\ufeff")
            if sheet.name == PALETTE:
                used.update(COLOUR.findall(css))
            joined.append(needed(ADDRESS.sub(moved, css), used))
    page = less_unread("\n".join(joined), used)
    (static / JOINED).write_text(page, encoding="utf-8")
    faces = re.findall(r"@font-face\{[^}]*optional[^}]*\}", page)
    swapped = "\n".join(face.replace("optional", "swap") for face in faces)
    (static / FONTS_AT_HAND).write_text(swapped, encoding="utf-8")
