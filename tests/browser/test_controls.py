"""Every control of every figure and stage can be pressed, and no page stops."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.charts import move_pointer
from tests.browser.pages import CHAPTER_PAGES, soup_of
from tests.browser.stages import assert_the_address_keeps_stages

SECONDS = 40  # for all the controls of a page; they take two on a computer with nothing else to do
MOST = 6  # positions of a slider, and names of a list: first and last, and what lies evenly between

# One press after the other, as a reader would have it: the page draws in between.
PRESS_ALL = """(most) => {
    const setValue = (input, value, type) => {
        input.value = value;
        input.dispatchEvent(new Event(type, { bubbles: true }));
    };
    const some = (all) => all.length <= most ? all : Array.from({ length: most }, (_, i) =>
        all[Math.round(i * (all.length - 1) / (most - 1))]);
    const presses = [];
    for (const frame of document.querySelectorAll("figure.explorable, [data-stage]")) {
        const boxes = [];
        for (const input of frame.querySelectorAll("input:not(:disabled), select, .stage button")) {
            const name = `${frame.id} ${input.value || input.textContent}`;
            const add = (act) => presses.push([name, act]);
            const put = (value, type) => add(() => setValue(input, value, type));
            if (input.type === "range") {
                const low = Number(input.min), high = Number(input.max);
                const every = Math.max(Number(input.step) || 0, (high - low) / (most - 1));
                for (let at = low; at <= high; at += every) put(at, "input");
            } else if (input.type === "number") {
                put(input.value, "change");
            } else if (input.tagName === "SELECT") {
                const type = input.closest(".stage") ? "change" : "input";
                const options = [...input.options].filter(({ disabled }) => !disabled);
                for (const { value } of some(options)) put(value, type);
            } else if (input.type === "checkbox") {
                boxes.push(input);
            } else {
                add(() => input.click());
            }
        }
        // Last, since all together leave nothing to show; then the first comes back.
        const turn = (some) => presses.push([`${frame.id} ${some.map((box) => box.value)}`,
            () => some.forEach((box) => box.click())]);
        const first = boxes.slice(0, 1);
        for (const some of [first, boxes.slice(1), first]) if (some.length) turn(some);
    }
    window.pressed = { done: 0, of: presses.length, last: "" };
    const next = () => {
        const [name, press] = presses[window.pressed.done] ?? [];
        if (!press) {
            document.documentElement.dataset.pressed = "";
            return;
        }
        window.pressed.last = name;
        press();
        window.pressed.done++;
        requestAnimationFrame(() => setTimeout(next));
    };
    setTimeout(next);
}"""
# What could not be drawn: a number that is none in a picture's attributes.
NOWHERE = """() => [...document.querySelectorAll("figure.explorable svg *, .stage svg *")]
    .filter((node) => [...node.attributes].some(({ value }) => /NaN|Infinity/.test(value)))
    .map((node) => node.outerHTML.slice(0, 120))"""

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("page", CHAPTER_PAGES)
def test_every_control_can_be_pressed_and_the_address_keeps_it(built_book, reader, page):
    soup = soup_of(built_book, page)
    figures = len(soup.select(".explorable"))
    assert not soup.select(".explorable[data-stage]")
    if not soup.select("figure.explorable, [data-stage]"):
        pytest.skip("a page without controls")
    tab = reader.open(page, reduced_motion="reduce")
    assert_the_address_keeps_stages(tab, page, lambda said: reader.load(tab, f"{page}#{said}"))
    move_pointer(tab, 5, 5)
    tab.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
    for i in range(figures):
        tab.locator("figure.explorable").nth(i).scroll_into_view_if_needed()
    expect(tab.locator(".js-plotly-plot")).to_have_count(figures)
    tab.evaluate(PRESS_ALL, MOST)
    try:
        tab.wait_for_selector("html[data-pressed]", state="attached", timeout=SECONDS * 1000)
    except Exception as error:
        last = tab.evaluate("pressed.last") if "closed" in str(error) else "a control"
        raise AssertionError(f"{page}: the page stood still at {last}") from error
    assert tab.evaluate("pressed.of") > 0
    assert not tab.evaluate(NOWHERE)
