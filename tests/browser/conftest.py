"""The built book and a real browser, for every test under tests/browser."""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page, Request, expect

from book.explorable import notebook
from book.explorable import page as explorable_page
from book.paper.browser import launched
from tests.browser.charts import BOOK, DARK_PAGE, SCRIPTS
from tests.browser.pages import LEAVE_OUT_PROSE
from tests.browser.stages import PLACES, SET_BACK

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
JUPYTER_BOOK = str(Path(sys.executable).with_name("jupyter-book"))
BUILD = [JUPYTER_BOOK, "build", ".", "-W", "-n", "--keep-going"]
SOURCES = ("_config.yml", "_toc.yml", "book", "lsa", "experiments", "results")
# What a page's policy stops is an error in its console, and so fails its test.
NOTE_VIOLATIONS = """addEventListener("securitypolicyviolation", (event) =>
    console.error(`policy: ${event.violatedDirective} stopped ${event.blockedURI}`));"""

# What a reader sees at once takes seconds where other work has the cores.
expect.set_options(timeout=30_000)

# A page leaves out what is far from the screen, and guesses its height. For a reader who jumps
# there, lines settle within a frame; a test's press would go to where its target has been.
LAY_OUT = """() => {
    const style = document.createElement("style"); // one pass, where a style each takes many
    style.textContent = ".bd-article section > * { content-visibility: visible !important }";
    document.head.append(style);
}"""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Every test of this folder needs the built book or a browser."""
    item.add_marker(pytest.mark.browser)


def newest_source() -> float:
    paths = [ROOT / name for name in SOURCES]
    files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*"))]
    return max(
        file.stat().st_mtime for file in files if file.is_file() and "__pycache__" not in file.parts
    )


def stale() -> bool:
    done = HTML / "index.html"
    return not done.is_file() or done.stat().st_mtime < newest_source()


@pytest.fixture(scope="session")
def built_book() -> Path:
    """The folder of the built book: BOOK_HTML, or _build/html built when stale."""
    if given := os.environ.get("BOOK_HTML"):
        folder = Path(given).resolve()
        assert (folder / "index.html").is_file(), f"BOOK_HTML={folder} holds no book"
        return folder
    (ROOT / "_build").mkdir(exist_ok=True)
    # Under pytest-xdist every worker comes here; one builds, the others wait.
    with (ROOT / "_build" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stale():
            built = subprocess.run(
                BUILD, cwd=ROOT, capture_output=True, text=True, check=False, timeout=1500
            )
            if built.returncode:
                # What comes after the cause is how Jupyter Book was called.
                cause = built.stderr.partition("\nThe above exception was the direct cause")[0]
                pytest.fail(f"{built.stdout[-1000:]}\n{cause[-3000:]}", pytrace=False)
            (HTML / "index.html").touch()
    return HTML


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with ExitStack() as stack:
        try:
            running = stack.enter_context(launched())
        except Error as error:
            message = f"no Chromium: {error.message.splitlines()[0]}"
            if os.environ.get("CI") == "true":
                pytest.fail(message)
            pytest.skip(message)
        yield running


def watch(page: Page, troubles: list[str], *, local=("file:", "data:", "blob:"), silent=False):
    """Note what goes wrong on a page: a request beyond what is local, an error in its scripts.

    silent: anything at all in its console.
    """

    def note_failure(request: Request) -> None:
        # A reload gives up what is still on its way: the drawing library of a figure just woken.
        if request.failure != "net::ERR_ABORTED":
            troubles.append(f"failed: {request.url}")

    page.on(
        "request",
        lambda one: one.url.startswith(local) or troubles.append(f"request to {one.url}"),
    )
    page.on("requestfailed", note_failure)
    page.on("pageerror", lambda error: troubles.append(f"{page.url}: {error.message}"))
    page.on(
        "console",
        lambda said: (
            (silent or said.type == "error") and troubles.append(f"{page.url}: {said.text}")
        ),
    )


class Reader:
    """Opens pages of the book from file://, and notes what goes wrong in them."""

    def __init__(self, book: Path, browser: Browser):
        self.book, self.browser = book, browser
        self.contexts, self.troubles = [], []

    def open(
        self,
        name: str,
        *,
        theme: str = "light",
        width: int = 1280,
        height: int = 900,
        stopped: bool = False,
        prose: bool = True,
        script: str = "",
        **options,
    ) -> Page:
        """Open a path inside the book, with or without a #fragment, in a browser of its own.

        Where the clock is `stopped`, the page's timers wait for `clock.run_for`. Without `prose`,
        figures and stages are all that is laid out. `script` runs before all others.
        """
        context = self.browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme, **options
        )
        self.contexts.append(context)
        page = context.new_page()
        if stopped:
            page.clock.install(time=0)
            page.clock.pause_at(1)
        watch(page, self.troubles)
        page.add_init_script(NOTE_VIOLATIONS + script)
        if not prose:
            page.add_init_script(LEAVE_OUT_PROSE)
        self.load(page, name, stopped=stopped)
        return page

    def load(self, page: Page, name: str, *, stopped: bool = False) -> None:
        """All of it is laid out, as for a reader who has scrolled through it once."""
        page.goto("about:blank")  # or a new fragment would load nothing
        page.goto(f"file://{self.book}/{name}")
        if not stopped:  # what waits for an idle moment waits for the clock
            page.wait_for_selector("html[data-ready]", state="attached")
        page.evaluate(LAY_OUT)
        page.evaluate("document.fonts.ready.then(() => true)")

    def assert_no_troubles(self) -> None:
        troubles, self.troubles[:] = self.troubles[:], []
        assert not troubles, "\n".join(troubles)

    def close(self) -> None:
        for context in self.contexts:
            context.close()


@pytest.fixture
def reader(built_book: Path, browser: Browser) -> Iterator[Reader]:
    """The test fails at its end if anything went wrong."""
    reader = Reader(built_book, browser)
    yield reader
    reader.close()
    reader.assert_no_troubles()


@pytest.fixture
def open_page(reader: Reader) -> Callable[..., Page]:
    """Open a page as `Reader.open` does."""
    return reader.open


@pytest.fixture
def open_stage(open_page):
    """Open the page of a stage and return (tab, its frame)."""

    def open_one(name, *, prose=False, **options):
        tab = open_page(PLACES[name], prose=prose, **options)
        frame = tab.locator(f"#{name}")
        frame.scroll_into_view_if_needed()
        return tab, frame

    return open_one


@pytest.fixture(scope="module")
def _kept(built_book: Path, browser: Browser) -> Iterator[tuple[Reader, dict[tuple, Page]]]:
    reader = Reader(built_book, browser)
    yield reader, {}
    reader.close()


@pytest.fixture
def set_stage(_kept):
    """Set a stage as a link does, on a page that the tests of a module share; (tab, its frame).

    For tests that begin with a stage's settings and not with what a reader first sees: a load takes
    a second. What a link does not name is set back, and what was unfolded is folded.
    """
    reader, pages = _kept

    def set_one(name, said="", *, prose=False, **options):
        key = (PLACES[name], prose, *options.items())
        if key not in pages:
            pages[key] = reader.open(PLACES[name], prose=prose, **options)
        tab, frame = pages[key], pages[key].locator(f"#{name}")
        tab.evaluate(SET_BACK, f"#{name}:{said}")
        frame.scroll_into_view_if_needed()
        return tab, frame

    yield set_one
    reader.assert_no_troubles()


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Open a page of the given figures; the test fails if it asks for anything not local."""
    troubles, contexts = [], []
    engine = [f"explorable/{name}" for name in ("explorable.css", *(f"{s}.js" for s in SCRIPTS))]
    engine += ["theme/static/palette.css"]
    for path in (*(BOOK / name for name in engine), notebook.PLOTLY):
        shutil.copy(path, tmp_path)

    def open_one(*figures, fragment="", theme="light", width=1280, before="", **options):
        explorable_page._shown.clear()
        body = "".join(explorable_page.page(one) for one in figures)
        scripts = "".join(f'<script defer src="{name}.js"></script>' for name in SCRIPTS)
        (tmp_path / "page.html").write_text(
            f'<!doctype html><html lang="en" data-theme="{theme}"><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width"><title>Figures</title>'
            '<link rel="stylesheet" href="palette.css"><link rel="stylesheet" '
            f'href="explorable.css"><style>body {{ max-width: 760px; margin: 0 auto; padding: 16px;'
            f"font-family: sans-serif }} {DARK_PAGE}</style>"
            f'<main><h1 id="top">Figures</h1>{before}{body}</main>{scripts}</html>',
            encoding="utf-8",
        )
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        watch(page, troubles, silent=True)
        page.goto(f"file://{tmp_path}/page.html{fragment}")
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert not troubles, "\n".join(troubles)
