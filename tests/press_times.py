"""Milliseconds from a press to the first frame after it, of every control of a built book.

python -m tests.press_times BOOK [SLOWER]     a folder with HTML, and how many times slower the
                                              processor is made (1)

A page is as a reader has it: what is far from the screen is not laid out. The browser counts
them, in steps of 8 ms. They mean something on a computer with nothing else to do, so no test asks
for them: tests/browser/test_press.py counts layouts and nodes instead.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, Locator, Page

from book.paper.browser import launched

MOST_MS = 100
SHOWN = 20  # the slowest
# Of buttons in a row that exclude each other one is pressed: the arrow chooses the next.
CONTROLS = ", ".join(
    f":is(figure.explorable, .stage) {one}:not(:disabled)"
    for one in ("select", "button", "input:not([type=radio])", "input:checked[type=radio]")
)
KEYS = {"checkbox": "Space", "radio": "ArrowRight", "range": "ArrowLeft", "select": "ArrowDown"}
WATCH = """() => {
    window.longest = 0;
    new PerformanceObserver((list) => {
        for (const { duration } of list.getEntries())
            window.longest = Math.max(window.longest, duration);
    }).observe({ type: "event", durationThreshold: 16 });
}"""
TAKE = "() => { const found = window.longest; window.longest = 0; return found; }"
ABOUT = """(one) => [(one.closest("figure, [data-stage]") ?? one).id,
    one.type?.startsWith("select") ? "select" : one.type,
    one.closest("[data-control]")?.dataset.control ?? one.name ?? "", one.textContent.slice(0, 20)]
"""


class Press(NamedTuple):
    ms: float
    page: str
    what: str


def presses(tab: Page, page: str) -> Iterator[Press]:
    """Each control of an open page, pressed once."""
    for control in tab.locator(CONTROLS).all():
        if control.is_visible():
            yield Press(_press(tab, control), page, " ".join(filter(None, control.evaluate(ABOUT))))


def _press(tab: Page, control: Locator) -> float:
    control.scroll_into_view_if_needed()
    control.focus()
    tab.wait_for_timeout(300)  # a chart is drawn once it is near
    tab.evaluate(TAKE)
    control.press(KEYS.get(control.evaluate(ABOUT)[1], "Enter"))
    tab.wait_for_timeout(400)
    return tab.evaluate(TAKE)


def measured(browser: Browser, book: Path, slower: float) -> Iterator[Press]:
    """Every control of every page. SLOWER times slower than the processor is."""
    for path in sorted((book / "book").glob("*.html")):
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(path.resolve().as_uri())
        tab.wait_for_selector("html[data-ready]", state="attached")
        tab.evaluate(WATCH)
        session = tab.context.new_cdp_session(tab)
        session.send("Emulation.setCPUThrottlingRate", {"rate": slower})
        yield from presses(tab, path.stem)
        tab.close()


def main(book: str, slower: str = "1") -> None:
    with launched() as browser:
        found = sorted(measured(browser, Path(book), float(slower)), reverse=True)
    for press in found[:SHOWN]:
        print(f"{press.ms:5.0f} ms  {press.page}: {press.what}")
    over = sum(press.ms > MOST_MS for press in found)
    print(f"{over} of {len(found)} presses took more than {MOST_MS} ms")


if __name__ == "__main__":
    main(*sys.argv[1:])
