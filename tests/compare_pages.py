"""What differs between two built books: text, pictures, tables and the data of charts and stages.

python tests/compare_pages.py BEFORE AFTER     two folders with HTML; exits 1 where they differ
"""

import difflib
import json
import sys
from pathlib import Path

from bs4 import BeautifulSoup

BLOCKS = "p, pre, li, td, th, dt, dd, h1, h2, h3, h4, label, legend, summary, figcaption"


def content(page: Path) -> tuple[list[str], dict[str, object], dict[str, str]]:
    """The lines a reader sees, embedded data by the id of its figure, and pictures by theirs."""
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    data = {}
    for i, script in enumerate(soup.select('script[type="application/json"]')):
        owner = script.find_parent("figure")
        data[script.get("id") or (owner["id"] if owner else f"script {i}")] = json.loads(
            script.string
        )
    pictures = {figure["id"]: str(figure.svg) for figure in soup.select("figure.explorable")}
    for script in soup("script"):
        script.decompose()
    lines = []
    for block in soup.select(BLOCKS):
        if block.name == "pre":
            lines += block.get_text().splitlines()
        elif not block.select_one(BLOCKS):
            lines.append(" ".join(block.get_text().split()))
    return [line for line in lines if line], data, pictures


def differences(before: Path, after: Path) -> list[str]:
    """One line each; of one page."""
    (text, data, pictures), (text_now, data_now, pictures_now) = map(content, (before, after))
    changed = difflib.unified_diff(text, text_now, lineterm="", n=0)
    found = [line for line in changed if not line.startswith(("---", "+++", "@@"))]
    for kind, old, new in (("data", data, data_now), ("picture", pictures, pictures_now)):
        names = [name for name in old | new if old.get(name) != new.get(name)]
        found += [f"{kind} of {name}" for name in names]
    return found


def main(before: Path, after: Path) -> int:
    """Print the differences of every page of both; their number of pages is the status."""
    pages = {path.relative_to(root) for root in (before, after) for path in root.rglob("*.html")}
    count = 0
    for page in sorted(pages):
        if not ((before / page).exists() and (after / page).exists()):
            found = [f"only {'before' if (before / page).exists() else 'after'}"]
        else:
            found = differences(before / page, after / page)
        if found:
            count += 1
            print(page, *(f"  {line[:160]}" for line in found), sep="\n")
    return min(count, 1)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:3])))
