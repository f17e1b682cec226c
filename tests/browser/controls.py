"""Every control of every figure and stage of a page is pressed, and the page goes on."""

from playwright.sync_api import Page, expect

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


def assert_every_control_can_be_pressed(tab: Page, page: str) -> None:
    """Of every figure and stage of a page that was opened and is wholly unfolded by this."""
    tab.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
    figures = tab.locator("figure.explorable")
    for figure in figures.all():
        figure.scroll_into_view_if_needed()
    expect(tab.locator(".js-plotly-plot")).to_have_count(figures.count())
    tab.evaluate(PRESS_ALL, MOST)
    try:
        tab.wait_for_selector("html[data-pressed]", state="attached", timeout=SECONDS * 1000)
    except Exception as error:
        last = tab.evaluate("pressed.last") if "closed" in str(error) else "a control"
        raise AssertionError(f"{page}: the page stood still at {last}") from error
    assert tab.evaluate("pressed.of") > 0
    assert not tab.evaluate(NOWHERE)
