"""The Chromium that draws still pictures, prints, and runs the browser tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

# The shell is the same browser without its windows, which take half of the time.
SYSTEM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
OWN = "playwright"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def chosen_browser() -> str | None:
    """The path of BOOK_BROWSER, or of a browser of the system; None for playwright's own.

    Raises ValueError if BOOK_BROWSER names none that exists.
    """
    given = os.environ.get("BOOK_BROWSER")
    if given == OWN:
        return None
    path = next(filter(None, map(shutil.which, [given] if given else SYSTEM)), None)
    if given and not path:
        raise ValueError(
            f"BOOK_BROWSER: expected a Chromium's command or path, or {OWN}, got {given!r}"
        )
    return path


@contextmanager
def launched() -> Iterator[Browser]:
    """A running browser. Raises playwright's Error if there is none."""
    path = chosen_browser()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()
