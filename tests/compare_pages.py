"""What differs between two built books: text, formulas, links, settings, pictures and data.

python tests/compare_pages.py BEFORE AFTER     two folders with HTML; exits 1 where they differ
"""

import difflib
import json
import sys
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from bs4 import BeautifulSoup, Tag

# Text of one of these is a line of its own; a display equation, code's output and a stage are divs.
BLOCKS = (
    "p", "pre", "li", "td", "th", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6", "label", "legend",
    "option", "button", "summary", "figcaption", "figure", "div", "section", "article", "aside",
    "details", "blockquote", "header", "footer", "nav", "main", "title", "body",
)  # fmt: skip
# Where an element leads, what it is set to and what it is called; data-* of stages beside these.
ATTRIBUTES = (
    "id", "href", "src", "alt", "title", "aria-label", "value", "checked", "selected", "disabled",
    "hidden", "open",
)  # fmt: skip
UNSEEN = ("link", "meta", "script", "style")  # their addresses change with every style sheet
APART = "_static/data/*.js"  # data too heavy to stand in a page, see book/theme/apart.py


@dataclass
class Page:
    """What a reader meets on a page: in order, and by the id of a figure."""

    lines: list[str]
    attributes: list[str]
    data: dict[str, object]
    pictures: dict[str, list[str]]


def content(path: Path) -> Page:
    """What `path` holds, an HTML file."""
    soup = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
    data, pictures = {}, {}
    for i, script in enumerate(soup.select('script[type="application/json"]')):
        text = script.string  # none where the page's data stand apart, in a script of their own
        name = script.get("id") or _owner(script) or f"script {i}"
        data[name] = json.loads(text) if text else None
    # All of a figure's: the first is a legend's swatch, and the still picture comes later.
    for picture in soup("svg"):
        pictures.setdefault(_owner(picture) or "the page", []).append(str(picture))
    for element in soup(["svg", *UNSEEN]):
        element.decompose()
    return Page(_lines(soup), _attributes(soup), data, pictures)


def _owner(element: Tag) -> str | None:
    figure = element.find_parent("figure", id=True)
    return str(figure["id"]) if figure else None


def _lines(soup: BeautifulSoup) -> list[str]:
    found = []
    for _, strings in groupby(soup.strings, lambda string: id(string.find_parent(BLOCKS))):
        strings = list(strings)
        text = "".join(strings)
        whole = strings[0].find_parent(BLOCKS)
        if whole is not None and whole.name == "pre":
            found += text.splitlines()
        else:
            found.append(" ".join(text.split()))
    return [line for line in found if line.strip()]


def _attributes(soup: BeautifulSoup) -> list[str]:
    found = []
    for element in soup.find_all(True):
        kept = [
            f'{name}="{value}"'
            for name, value in element.attrs.items()
            if name in ATTRIBUTES or name.startswith("data-")
        ]
        if kept:
            found.append(f"<{element.name} {' '.join(kept)}>")
    return found


def differences(before: Path, after: Path) -> list[str]:
    """One line each; of one page."""
    old, new = content(before), content(after)
    found = []
    for a, b in ((old.lines, new.lines), (old.attributes, new.attributes)):
        changed = list(difflib.unified_diff(a, b, lineterm="", n=0))[2:]  # without the two names
        found += [line for line in changed if not line.startswith("@@")]
    for kind, a, b in (("data", old.data, new.data), ("picture", old.pictures, new.pictures)):
        found += [f"{kind} of {name}" for name in a | b if a.get(name) != b.get(name)]
    return found


def main(before: Path, after: Path) -> int:
    """Print the differences, page by page; 1 if there are any."""
    files = set()
    for root in (before, after):
        pages = {path.relative_to(root) for path in root.rglob("*.html")}
        if not pages:
            sys.exit(f"{root}: expected a folder with HTML, found none in it")
        files |= pages | {path.relative_to(root) for path in root.glob(APART)}
    status = 0
    for file in sorted(files):
        if not ((before / file).exists() and (after / file).exists()):
            found = [f"only {'before' if (before / file).exists() else 'after'}"]
        elif file.suffix == ".html":
            found = differences(before / file, after / file)
        else:
            same = (before / file).read_bytes() == (after / file).read_bytes()
            found = [] if same else ["data"]
        if found:
            status = 1
            print(file, *(f"  {line[:160]}" for line in found), sep="\n")
    return status


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:3])))
