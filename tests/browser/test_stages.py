"""The explorables that a reader steps through, by keyboard, and what they claim."""

from __future__ import annotations

import math
import re

import pytest
from bs4 import BeautifulSoup

from lsa.cost import STATE_BYTES, machine_cost, mode_cost

pytestmark = pytest.mark.browser

PLACES = {
    "tree": "book/sequences.html",
    "causality": "book/causal-transformations.html",
    "diagram-causal": "book/causal-transformations.html",
    "diagram-machines": "book/state-machines.html",
    "machines": "book/state-machines.html",
    "modes": "book/three-modes.html",
}


@pytest.fixture
def open_stage(open_page):
    """Open the page of an explorable and return (tab, its frame)."""

    def open_one(name, **options):
        tab = open_page(PLACES[name], **options)
        frame = tab.locator(f"#{name}")
        frame.scroll_into_view_if_needed()
        return tab, frame

    return open_one


def line(frame):
    return frame.locator("[role=status]").inner_text()


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 375)])
def test_mounts_inside_the_page(open_stage, name, theme, width):
    tab, frame = open_stage(name, theme=theme, width=width)
    assert frame.locator("button").count() >= 3
    assert line(frame)
    right = frame.evaluate(
        "e => Math.max(...[...e.querySelectorAll('.stage *')]"
        ".map((c) => c.getBoundingClientRect().right)) - e.getBoundingClientRect().right"
    )
    assert right <= 1, "something sticks out of the frame"
    small = frame.locator("button").evaluate_all(
        "buttons => buttons.filter((b) => b.getBoundingClientRect().height < 32).length"
    )
    assert not small, "a button is too low for a thumb"


@pytest.mark.parametrize("name", PLACES)
def test_without_javascript_the_caption_says_it(built_book, name):
    page = BeautifulSoup((built_book / PLACES[name]).read_text(encoding="utf-8"), "html.parser")
    frame = page.find(id=name)
    assert "JavaScript" in frame.noscript.get_text()
    assert len(frame.select_one(".stage-caption").get_text()) > 80
    assert not frame.select_one(".stage").get_text(strip=True)


@pytest.mark.parametrize("name", ["tree", "machines"])
def test_steps_by_keyboard_and_by_button(open_stage, name):
    tab, frame = open_stage(name)
    frame.get_by_role("button", name="Start over").click()
    first = line(frame)
    tab.keyboard.press("ArrowRight")
    second = line(frame)
    assert second != first
    frame.get_by_role("button", name="Step").click()
    assert line(frame) not in (first, second)
    tab.keyboard.press("ArrowLeft")
    assert line(frame) == second
    tab.keyboard.press("End")
    end = line(frame)
    tab.keyboard.press("ArrowRight")
    assert line(frame) == end
    tab.keyboard.press("Home")
    assert line(frame) == first


def test_play_runs_and_pauses_and_is_absent_where_motion_is_unwelcome(open_stage):
    tab, frame = open_stage("machines")
    frame.get_by_role("button", name="Start over").click()
    start = line(frame)
    frame.get_by_role("button", name="Play").click()
    tab.wait_for_timeout(1800)
    frame.get_by_role("button", name="Pause").click()
    paused = line(frame)
    assert paused != start
    tab.wait_for_timeout(900)
    assert line(frame) == paused
    _, calm = open_stage("machines", reduced_motion="reduce")
    assert calm.get_by_role("button", name="Play").count() == 0


def test_tree_counts_evaluations(open_stage):
    tab, frame = open_stage("tree")
    for _ in range(3):
        frame.get_by_role("button", name="New draw").click()
        frame.get_by_role("button", name="Step").focus()
        tab.keyboard.press("End")
        leaf = int(re.match(r"Leaf (\d+)", line(frame)).group(1))
        dumb, quick = frame.locator(".stage-counts b").all_inner_texts()
        assert (int(dumb), int(quick)) == (3 * leaf, 3)
    frame.get_by_role("radio", name="Autoregressive").check()
    frame.get_by_role("button", name="Step").focus()
    tab.keyboard.press("End")
    assert frame.locator(".stage-counts b").first.inner_text() == "3"
    assert re.search(r"The text is [abc]{3}\.", line(frame))


@pytest.mark.parametrize("chosen", range(7))
def test_only_the_non_causal_layer_tells_the_past(open_stage, chosen):
    tab, frame = open_stage("causality")
    buttons = frame.locator("thead button")
    buttons.nth(chosen).click()
    rows = frame.locator("tbody tr")
    moved = {
        row.locator("th").inner_text(): [
            "moved" in (cell.get_attribute("class") or "") for cell in row.locator("td").all()
        ]
        for row in rows.all()
    }
    for name, cells in moved.items():
        if name == "Softmax, non-causal":
            assert all(cells)
        elif name == "3-gram":
            assert cells == [chosen <= i < chosen + 3 for i in range(7)]
        else:
            assert cells == [i >= chosen for i in range(7)]


def test_a_token_is_chosen_and_changed_by_keyboard(open_stage):
    tab, frame = open_stage("causality")
    frame.locator("thead button[aria-pressed=true]").focus()
    tab.keyboard.press("Home")
    assert line(frame).startswith("Token 1 changed from p to ")
    before = line(frame)
    tab.keyboard.press("ArrowUp")
    assert line(frame) != before
    tab.keyboard.press("ArrowRight")
    assert line(frame).startswith("Token 2 changed from e to ")


def run_arrow(frame, word):
    frame.locator("button", has_text=word).click()
    return line(frame)


@pytest.mark.parametrize("text", ["ab", "abba", "abababababab"])
def test_arrows_cost_what_they_say(open_stage, text):
    tab, frame = open_stage("diagram-machines")
    frame.get_by_role("radio", name=text, exact=True).check()
    t = len(text) + 1  # with the start token
    assert f"ticks of the machine {t}." in run_arrow(frame, "unroll")
    assert "Counted: calls of h 1." in run_arrow(frame, "take last")
    assert f"Counted: calls of g {t}." in run_arrow(frame, "all prefixes")
    assert f"Counted: calls of g {t}." in run_arrow(frame, "tape")
    assert f"ticks of the machine {t * (t + 1) // 2}." in run_arrow(frame, "once around")
    product = run_arrow(frame, "multiply")
    assert "Counted: calls of h 1." in product
    a, b = text.count("a"), text.count("b")
    exact = math.factorial(a) * math.factorial(b) / math.factorial(a + b + 1)
    assert product.splitlines()[1].endswith(f"{exact:.4f}")


def test_arrow_keys_move_among_the_arrows(open_stage):
    tab, frame = open_stage("diagram-causal")
    frame.locator("button", has_text="take last").focus()
    frame.locator("button", has_text="take last").click()
    tab.keyboard.press("ArrowRight")
    pressed = frame.locator("button[aria-pressed=true]")
    assert "all prefixes" in pressed.inner_text()
    assert pressed.evaluate("b => b === document.activeElement")


def test_machines_do_the_work_that_the_library_says(open_stage):
    tab, frame = open_stage("machines")
    names = {
        "Attention tape": "attention tape",
        "KV cache": "kv cache",
        "RNN": "rnn state",
        "Linear attention": "linear state",
    }
    frame.get_by_role("button", name="Start over").click()
    for t in range(1, 16):
        tab.keyboard.press("ArrowRight")
        for shown, machine in names.items():
            numbers, work = re.search(
                rf"{shown} (\d+) numbers, (\d+) operations", line(frame)
            ).groups()
            cost = machine_cost(machine, t, 4)
            assert int(numbers) * STATE_BYTES == cost.state
            assert int(work) == cost.flops


def counts(frame):
    names, values = (
        frame.locator(f".stage-counts {tag}").all_inner_texts() for tag in ("span", "b")
    )
    numbers = (int(value.replace(",", "")) for value in values)
    return dict(zip(names, numbers, strict=True))


@pytest.mark.parametrize("mode", ["attention", "recurrent", "chunked"])
@pytest.mark.parametrize(("t", "d", "c"), [(16, 64, 4), (23, 16, 5), (7, 128, 24)])
def test_modes_cost_what_the_package_says(open_stage, mode, t, d, c):
    _, frame = open_stage("modes")
    frame.get_by_role("radio", name=mode.capitalize()).check()
    for name, list_, value in (
        ("Tokens", list(range(2, 25)), t),
        ("Head width", [8, 16, 32, 64, 128, 256], d),
        ("Chunk", list(range(1, 25)), c),
    ):
        frame.get_by_role("slider", name=name).fill(str(list_.index(value)))
    frame.get_by_role("button", name="Start over").click()
    assert counts(frame)["Products formed so far"] == 0
    expected = mode_cost(mode, t, d, d, chunk_size=c)
    for _ in range(expected.steps):
        frame.get_by_role("button", name="Step").click()
    found = counts(frame)
    assert found["FLOPs"] == expected.flops
    assert found["Bytes moved, at least"] == expected.bytes
    assert found["Steps in a row"] == expected.steps
    inside = sum(min(c, t - n) * (min(c, t - n) + 1) // 2 for n in range(0, t, c))
    formed = {"attention": t * (t + 1) // 2, "recurrent": 0, "chunked": inside}
    assert found["Products formed so far"] == formed[mode]
    assert frame.get_by_role("button", name="Step").get_attribute("aria-disabled") == "true"
