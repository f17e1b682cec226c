"""The reader's browser is measured in the page: kept, drawn beside stored times, told truly."""

import csv
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from book.figures.index.mode_speed import narrowest, seconds

LENGTHS = [256 * 2**i for i in range(7)]
HOLLOW = ".lines-hollow:not(.lines-names *)"
STORE = Path(__file__).resolve().parents[2] / "book" / "stages" / "browser-times.js"
# A worker that tells at once what a browser would take a minute for.
STANDS_IN = """window.BrowserKernels = { source: () => `
    for (const said of ${JSON.stringify(%s)}) postMessage(said);` };"""
# The theme's own scripts need storage, so it fails for the times alone.
NO_STORAGE = """for (const name of ["getItem", "setItem", "removeItem"]) {
    const act = Storage.prototype[name];
    Storage.prototype[name] = function (key, ...rest) {
        if (key.endsWith("browser-times")) throw new DOMException("denied", "SecurityError");
        return act.call(this, key, ...rest);
    };
}"""


def row(mode, length, seconds, kind="forward"):
    return {
        "mode": mode, "pass": kind, "length": length,
        "seconds": seconds, "low": seconds, "high": seconds,
    }  # fmt: skip


def browser_where(chunked, recurrent, stopped_at=10**9):
    """What a worker tells where softmax takes a microsecond a token, at each length squared."""
    said = [{"difference": 1e-6}]
    for n in LENGTHS:
        softmax = n * n / 256 * 1e-6 if n < stopped_at else None
        rows = [row("softmax", n, softmax), row("attention", n, softmax)]
        rows += [row("chunked", n, chunked * n), row("recurrent", n, recurrent * n)]
        rows += [row("softmax", n, n * 1e-6, "token"), row("linear", n, 1e-5, "token")]
        said += [{"length": n}, {"rows": rows}]
    return [*said, {"done": True}]


@pytest.fixture
def measured(open_page):
    """Open the chapter in a browser that measures what it is told; returns (tab, its stage)."""

    def open_one(said, before=""):
        script = STANDS_IN % json.dumps(said) + before
        tab = open_page("book/three-modes.html", prose=False, script=script)
        frame = tab.locator("#browser-speed")
        frame.scroll_into_view_if_needed()
        frame.get_by_role("button", name="Measure this browser").click()
        expect(frame.get_by_role("button", name="Stop")).to_have_count(0)
        return tab, frame

    return open_one


@pytest.fixture
def measured_again(set_stage):
    """The same on a page that tests share, where each measurement replaces the last."""

    def measure(said):
        tab, frame = set_stage("browser-speed")
        tab.evaluate(STANDS_IN % json.dumps(said))
        frame.get_by_role("button", name=re.compile("Measure (this browser|again)")).click()
        expect(frame.get_by_role("button", name="Stop")).to_have_count(0)
        return frame.locator("[role=status]").inner_text()

    return measure


def test_the_kernels_run_in_a_worker_and_their_times_are_kept(open_stage):
    """For real, until the first length is done."""
    tab, frame = open_stage("browser-speed")
    assert frame.locator(HOLLOW).count() == 0
    frame.get_by_role("button", name="Measure this browser").press("Enter")
    expect(frame.locator(HOLLOW)).to_have_count(4, timeout=60_000)
    tab.keyboard.press("Enter")  # the same button, which stops
    expect(frame.get_by_role("button", name="Measure again")).to_be_focused()
    assert "At 256 tokens" in frame.locator("[role=status]").inner_text()
    assert tab.locator("#roofline .lines-hollow").count() >= 4
    tab.reload()
    expect(frame.locator(HOLLOW)).to_have_count(4)
    frame.get_by_role("button", name="Forget").click()
    expect(frame.locator(HOLLOW)).to_have_count(0)
    expect(tab.locator("#roofline .lines-hollow")).to_have_count(0)


@pytest.mark.parametrize(
    ("chunked", "recurrent", "stopped_at", "said"),
    [
        (2e-6, 1e-7, 10**9, [
            "At 16,384 tokens this browser is fastest in recurrent mode: 640 times",
            "the mode with the least arithmetic wins", "slower than softmax at 256 tokens",
            "One token after 16,384 others: softmax takes 1,600 times as long.",
        ]),
        (1e-6, 1e-5, 8192, [
            "At 4,096 tokens this browser is fastest in chunked mode: 16 times",
            "Stopped after 5 s: softmax from 8,192, attention mode from 8,192 tokens on.",
        ]),
        (1e-3, 1e-3, 10**9, [
            "Linear attention is no faster than softmax in this browser, up to 16,384 tokens.",
        ]),
        (1e-3, 1e-3, 1, ["Softmax was stopped at every length."]),
    ],
)  # fmt: skip
def test_the_words_fit_what_was_measured(measured_again, chunked, recurrent, stopped_at, said):
    line = measured_again(browser_where(chunked, recurrent, stopped_at))
    for words in said:
        assert words in line
    if recurrent >= chunked:
        assert "least arithmetic" not in line


def test_marks_join_the_stored_ones_and_go_into_a_file(measured, tmp_path):
    tab, frame = measured(browser_where(1e-6, 1e-6))
    expect(tab.locator("#roofline .lines-hollow")).to_have_count(4 * len(LENGTHS))
    frame.get_by_role("link", name="the figure above").click()
    tab.locator("#mode-speed .js-plotly-plot").wait_for()
    expect(tab.locator("#mode-speed .explorable-names")).to_contain_text("This browser")
    tab.keyboard.press("Escape")  # it stood beside the words, without its buttons
    for button, figure in (("Download CSV", frame), ("Download CSV", tab.locator("#mode-speed"))):
        with tab.expect_download() as started:
            figure.get_by_role("button", name=button).click()
        started.value.save_as(tmp_path / "times.csv")
        lines = list(csv.DictReader((tmp_path / "times.csv").read_text("utf-8").splitlines()))
        own = [one for one in lines if one.get("source", "this browser") == "this browser"]
        chunked = [one for one in own if one["mode"] == "chunked"]
        assert [int(one["length"]) for one in chunked] == LENGTHS
        assert all(one["pass"] == "forward" for one in chunked)


def test_wrong_kernels_are_not_measured(measured_again):
    line = measured_again([{"difference": 0.01}, {"rows": [row("softmax", 256, 1.0)]}])
    assert "differ from the book’s by 0.010" in line


def test_a_browser_that_keeps_nothing_shows_its_times_all_the_same(measured):
    tab, frame = measured(browser_where(1e-6, 1e-6), before=NO_STORAGE)
    assert frame.locator(HOLLOW).count() == 4 * len(LENGTHS)
    tab.reload()
    expect(frame.locator(HOLLOW)).to_have_count(0)


def test_what_another_page_kept_is_not_drawn(open_page):
    tab = open_page("book/three-modes.html", prose=False)
    key = re.search(r'KEY = "([^"]+)"', STORE.read_text("utf-8"))[1]
    frame = tab.locator("#browser-speed")
    for kept in ("{", "7", '[{"mode": "chunked"}]', '[{"mode": "<b>"}]'):
        tab.evaluate("([key, kept]) => localStorage.setItem(key, kept)", [key, kept])
        tab.reload()
        expect(frame.get_by_role("button", name="Measure this browser")).to_be_visible()
        assert frame.locator(HOLLOW).count() == 0


def test_it_says_at_first_which_modes_are_faster_than_softmax(open_stage):
    _, frame = open_stage("browser-speed")
    said, run = frame.locator("[role=status]").inner_text(), narrowest()
    softmax = seconds(run, "softmax", LENGTHS[-1], "forward")
    for mode in ("chunked", "recurrent", "attention"):
        took = seconds(run, mode, LENGTHS[-1], "forward")
        assert (f"{mode} mode is slower at 16,384" in said) == (took >= softmax)
        assert took >= softmax or f"{float(f'{softmax / took:.2g}'):g} times at 16,384" in said
    assert "softmax = 1×" in frame.locator(".lines svg").text_content()
    ticks = frame.locator(".lines-tick").all_text_contents()
    assert {"0.1", "1", "10", "100"} <= set(ticks)
