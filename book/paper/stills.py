"""Still pictures of the stages, for readers without JavaScript and for paper.

`python -m book.paper.stills` opens the built book in a browser and writes the first state of each
stage to book/stages/stills, as SVG. Charts need none: they are drawn while the book is built. A
picture has the digest of its sources, so that a test can detect an outdated one cheaply.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from bs4 import BeautifulSoup, Tag
from playwright.sync_api import Browser, Page

from book.paper.browser import launched
from book.theme.styles import needed

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
STILLS = ROOT / "book" / "stages" / "stills"
SCRIPT = Path(__file__).with_name("still.js")
SHEETS = ("palette.css", "explorable.css", "stages/stage.css")
WIDTH = 624 + 4 * 16  # px: the measure of the page and its gutters
DIGEST = re.compile(r"<!-- drawn from (\w{16}) -->")
WORD = re.compile(r"[A-Za-z_][\w-]*")
FRACTION = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
# Trained keys and other data are still loading when the page opens.
SETTLED = "(frame) => frame.dataset.mounted === '' && !/loading/i.test(frame.innerText)"
STATUS = "(frame) => frame.querySelector('[role=status]')?.textContent ?? ''"


def stages(site: Path) -> Iterator[tuple[Path, BeautifulSoup, Tag]]:
    """Each stage of a built book: its page, the page parsed, and its frame."""
    for page in sorted((site / "book").glob("*.html")):
        text = page.read_text(encoding="utf-8")
        if "data-stage=" in text:
            soup = BeautifulSoup(text, "html.parser")
            for frame in soup.select("[data-stage]"):
                yield page, soup, frame


def digest(site: Path, soup: BeautifulSoup, frame: Tag) -> str:
    """Digest of a stage's sources, in 16 letters: scripts, their data, and the styles of both.

    Numbers are rounded to six digits: processors differ in the last ones.
    """
    static = site / "_static"
    names = str(frame["data-scripts"]).split()
    places = (static / ("" if name.startswith("explorable-") else "stages") for name in names)
    scripts = [
        (place / f"{name}.js").read_text(encoding="utf-8")
        for place, name in zip(places, names, strict=True)
    ]
    words = set(WORD.findall("\n".join(scripts)))
    sheets = [needed((static / sheet).read_text(encoding="utf-8"), words) for sheet in SHEETS]
    data = [
        _data(static, element) for element in soup.select("script[id]") if element["id"] in words
    ]
    parts = [str(frame["id"]), SCRIPT.read_text(encoding="utf-8"), *scripts, *sheets]
    rounded = (FRACTION.sub(lambda number: f"{float(number[0]):.6g}", one) for one in data)
    return hashlib.sha256("\0".join([*parts, *rounded]).encode()).hexdigest()[:16]


def _data(static: Path, element: Tag) -> str:
    apart = static / "data" / f"{element['id']}.js"
    return element.string or (apart.read_text(encoding="utf-8") if apart.is_file() else "")


def kept_digest(name: str) -> str | None:
    """The digest in a stage's stored picture; None if there is none."""
    still = STILLS / f"{name}.svg"
    match = DIGEST.search(still.read_text(encoding="utf-8")) if still.is_file() else None
    return match[1] if match else None


def draw(browser: Browser, page: Path, names: list[str]) -> dict[str, str]:
    """SVG of a page's stages, by id, as printed."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": 1000}, device_scale_factor=2, reduced_motion="reduce"
    )
    tab = context.new_page()
    tab.goto(page.resolve().as_uri())
    tab.wait_for_selector("html[data-ready]", state="attached")
    tab.emulate_media(media="print")
    tab.evaluate("document.fonts.ready.then(() => true)")
    tab.evaluate(SCRIPT.read_text(encoding="utf-8"))
    drawn = {name: _draw_one(tab, name) for name in names}
    context.close()
    return drawn


def _draw_one(tab: Page, name: str) -> str:
    frame = tab.locator(f"#{name}")
    frame.scroll_into_view_if_needed()
    tab.wait_for_function(SETTLED, arg=frame.element_handle())
    stage = frame.locator(".stage")
    return stage.evaluate("(stage, said) => Still.of(stage, said)", frame.evaluate(STATUS))


def main(site: Path = SITE) -> None:
    STILLS.mkdir(exist_ok=True)
    pages: dict[Path, dict[str, str]] = {}
    for page, soup, frame in stages(site):
        pages.setdefault(page, {})[str(frame["id"])] = digest(site, soup, frame)
    for still in STILLS.glob("*.svg"):
        if not any(still.stem in digests for digests in pages.values()):
            still.unlink()
    with launched() as browser:
        for page, digests in pages.items():
            old = [name for name, now in digests.items() if kept_digest(name) != now]
            for name, svg in (draw(browser, page, old) if old else {}).items():
                text = f"{svg}\n<!-- drawn from {digests[name]} -->\n"
                (STILLS / f"{name}.svg").write_text(text, encoding="utf-8")
                print(f"{name}: {len(text) / 1000:.0f} kB")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
