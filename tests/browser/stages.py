"""Where the stages stand in the book, how a test reads and sets one, and what all do."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

PLACES = {
    "race": "book/index.html",
    "opener": "book/index.html",
    "ratios": "book/index.html",
    "shares": "book/sequences.html",
    "tree": "book/sequences.html",
    "signature": "book/sequence-transformations.html",
    "causality": "book/causal-transformations.html",
    "diagram-causal": "book/causal-transformations.html",
    "diagram-machines": "book/state-machines.html",
    "machines": "book/state-machines.html",
    "memory": "book/linear-self-attention.html",
    "ribbon": "book/long-context.html",
    "modes": "book/three-modes.html",
    "roofline": "book/three-modes.html",
    "browser-speed": "book/three-modes.html",
    "chip": "book/kernels.html",
    "bet": "book/without-a-gpu.html",
    "sampler": "book/sampling.html",
    "surgery": "book/sampling.html",
    "ranks": "book/many-devices.html",
    "film": "book/training.html",
    "look-inside": "book/trained-model.html",
    "recurrence": "book/relatives.html",
    "play": "book/relatives.html",
    "convolution": "book/state-spaces.html",
}
BY_PAGE = {
    page: [name for name, place in PLACES.items() if place == page]
    for page in dict.fromkeys(PLACES.values())
}
# Those with Back and Step; the others' own tests press what they have.
STEPPED = (
    "shares", "signature", "tree", "machines", "memory", "opener", "chip", "film", "recurrence",
    "convolution", "ranks",
)  # fmt: skip

# A bet that was placed stays in the reader's browser.
NOT_IN_THE_ADDRESS = ("opener", "sampler", "surgery", "look-inside", "browser-speed", "bet")

FEW_BUTTONS = {"roofline": 0, "ribbon": 0, "race": 1, "ratios": 2, "bet": 2}

ROOM = """(frame) => {
    const wide = frame.clientWidth >= 34 * 16;
    const stage = frame.querySelector(".stage");
    const kept = getComputedStyle(stage).getPropertyValue(wide ? "--wide" : "--narrow");
    return [Number(kept), stage.offsetHeight];
}"""
STICKING_OUT = """(frame) => Math.max(...[...frame.querySelectorAll(".stage *")]
    .map((part) => part.getBoundingClientRect().right)) - frame.getBoundingClientRect().right"""
TABS_OUT = """(frame) => [...frame.querySelectorAll(".figure-choices span")].filter((tab) =>
    tab.checkVisibility() &&
    tab.getBoundingClientRect().left < frame.getBoundingClientRect().left - 0.5).length"""
TOO_LOW = """(buttons) =>
    buttons.filter((button) => button.getBoundingClientRect().height < 32).length"""
# What a reader could set: every choice its last, every scale its least, one step back.
SET = """(frame) => {
    const tell = (node, ...types) => {
        for (const type of types) node.dispatchEvent(new Event(type, { bubbles: true }));
    };
    frame.querySelectorAll("input[type=range]").forEach((input) => {
        input.value = input.min;
        tell(input, "input");
    });
    frame.querySelectorAll("select").forEach((list) => {
        list.value = [...list.options].at(-1).value;
        tell(list, "input", "change");
    });
    for (const set of frame.querySelectorAll("fieldset")) {
        [...set.querySelectorAll("input")].at(-1).click();
    }
    frame.querySelector(".stage-buttons button, .diagram-arrow, .causality button")?.click();
}"""
# Shapes that no rule of the style sheets has coloured.
UNCOLOURED = """(frame) => [...frame.querySelectorAll(".stage svg :is(rect, circle)")]
    .filter((node) => getComputedStyle(node).fill === "rgb(0, 0, 0)"
        && getComputedStyle(node).visibility === "visible" && node.getBoundingClientRect().width)
    .map((node) => node.outerHTML.slice(0, 120)).slice(0, 3)"""
# As a page is that was opened with this hash.
SET_BACK = """async (wanted) => {
    document.activeElement?.blur();
    scrollTo({ top: 0, behavior: "instant" });
    history.replaceState(null, "", location.pathname);
    await new Promise((done) => {
        addEventListener("hashchange", done, { once: true });
        location.hash = wanted;
    });
    for (const fold of document.querySelectorAll(".stage details")) fold.open = false;
}"""
NEXT_FRAME = """() => new Promise((done) =>
    requestAnimationFrame(() => requestAnimationFrame(done)))"""


def line(frame):
    return frame.locator("[role=status]").inner_text()


def slide(frame, name, values, value):
    frame.get_by_role("slider", name=name).fill(str(list(values).index(value)))


def assert_stages_stand_in_their_room(tab: Page, page: str) -> None:
    """Every stage of a page mounts in the room kept for it, at a desk's width or most phones'.

    Within a tenth: the page's sans serif is the reader's own, and fonts differ.
    """
    for name in BY_PAGE.get(page, ()):
        frame = tab.locator(f"#{name}")
        frame.scroll_into_view_if_needed()
        expect(frame).to_have_attribute("data-mounted", "")
        assert frame.locator("button").count() >= FEW_BUTTONS.get(name, 3)
        assert line(frame)
    tab.evaluate("document.fonts.ready.then(() => true)")
    for name in BY_PAGE.get(page, ()):
        kept, taken = tab.locator(f"#{name}").evaluate(ROOM)
        assert kept == pytest.approx(taken, rel=0.1), f"{name}: {kept} px kept, {taken} taken"


def assert_stages_hold_their_parts(tab: Page, page: str) -> None:
    """Nothing sticks out of a stage of a page, and a thumb hits its buttons."""
    for name in BY_PAGE.get(page, ()):
        frame = tab.locator(f"#{name}")
        assert frame.evaluate(STICKING_OUT) <= 1, f"{name}: something sticks out of the frame"
        assert not frame.evaluate(TABS_OUT), f"{name}: tabs stick out on the left"
        low = frame.locator("button:visible").evaluate_all(TOO_LOW)
        assert not low, f"{name}: a button is too low for a thumb"


def assert_stages_step(tab: Page, page: str) -> None:
    """Every stage of a page that has steps goes by keyboard and by button, and ends."""
    for name in BY_PAGE.get(page, ()):
        if name not in STEPPED:
            continue
        frame = tab.locator(f"#{name}")
        frame.get_by_role("button", name="Start over").click()
        first = line(frame)
        tab.keyboard.press("ArrowRight")
        second = line(frame)
        assert second != first, name
        frame.get_by_role("button", name="Step").click()
        assert line(frame) not in (first, second), name
        tab.keyboard.press("ArrowLeft")
        assert line(frame) == second, name
        tab.keyboard.press("End")
        end = line(frame)
        tab.keyboard.press("ArrowRight")
        assert line(frame) == end, name
        tab.keyboard.press("Home")
        assert line(frame) == first, name


def assert_the_address_keeps_stages(tab: Page, page: str, load: Callable[[str], None]) -> None:
    """What a reader sets in any stage of a page is in its address, and comes back with that.

    load: loads the page with a fragment.
    """
    names = [name for name in BY_PAGE.get(page, ()) if name not in NOT_IN_THE_ADDRESS]
    if not names:
        return
    tab.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = false")

    def texts() -> list[str]:
        frames = [tab.locator(f"#{name}") for name in names]
        for frame in frames:  # trained keys are loaded
            expect(frame.locator("[aria-busy=true]")).to_have_count(0)
        return [frame.inner_text() for frame in frames]

    for name in names:
        frame = tab.locator(f"#{name}")
        frame.scroll_into_view_if_needed()
        assert not frame.evaluate(UNCOLOURED), name
        frame.evaluate(SET)
    for name in names:
        expect(tab).to_have_url(re.compile(f"[#;]{name}:"))
    # A stage that another one moved is there already, and what was set in it since comes later.
    tab.evaluate("FigureView.write()")
    before, said = texts(), tab.url.partition("#")[2]
    load(said)
    for name, first, again in zip(names, before, texts(), strict=True):
        assert first == again, name
