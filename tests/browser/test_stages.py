"""The explorables that a reader steps through, by keyboard, and what they claim."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import expect

from experiments.harness.record import load
from lsa.cost import PEAKS, STATE_BYTES, design_cost, least_bytes, machine_cost, mode_cost

pytestmark = pytest.mark.browser

PLACES = {
    "opener": "book/index.html",
    "shares": "book/sequences.html",
    "tree": "book/sequences.html",
    "signature": "book/sequence-transformations.html",
    "causality": "book/causal-transformations.html",
    "diagram-causal": "book/causal-transformations.html",
    "diagram-machines": "book/state-machines.html",
    "machines": "book/state-machines.html",
    "memory": "book/linear-self-attention.html",
    "modes": "book/three-modes.html",
    "roofline": "book/three-modes.html",
    "chip": "book/kernels.html",
    "film": "book/training.html",
    "recurrence": "book/relatives.html",
    "convolution": "book/state-spaces.html",
}
COUNTED = ("flops", "bytes", "steps", "seconds")
STEPPED = [name for name in PLACES if name != "roofline"]


@pytest.fixture
def open_stage(open_page):
    """Open the page of an explorable and return (tab, its frame)."""

    def open_one(name, **options):
        tab = open_page(PLACES[name], **options)
        frame = tab.locator(f"#{name}")
        frame.scroll_into_view_if_needed()
        return tab, frame

    return open_one


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


def line(frame):
    return frame.locator("[role=status]").inner_text()


def slide(frame, name, values, value):
    frame.get_by_role("slider", name=name).fill(str(list(values).index(value)))


@pytest.mark.parametrize("name", [name for name in PLACES if name != "opener"])
def test_what_a_reader_sets_is_in_the_address_and_comes_back(open_page, open_stage, name):
    tab, frame = open_stage(name, reduced_motion="reduce")
    assert not frame.evaluate(UNCOLOURED)
    frame.evaluate(SET)
    expect(tab).to_have_url(re.compile(f"[#;]{name}:"))
    there = tab.url.partition("#")[2]
    again = open_page(f"{PLACES[name]}#{there}", reduced_motion="reduce")
    assert again.locator(f"#{name}").inner_text() == frame.inner_text()


def test_the_address_keeps_figures_and_stages_side_by_side(open_page):
    tab = open_page("book/three-modes.html", reduced_motion="reduce")
    tab.locator("#modes").get_by_role("button", name="Back").click()
    expect(tab).to_have_url(re.compile("#modes:step="))
    figure = tab.locator("figure.explorable").first
    figure.locator(".explorable-choice:has(input:not(:checked):not(:disabled))").first.click()
    expect(tab).to_have_url(re.compile(f"[#;]{figure.get_attribute('id')}:"))
    assert re.search("[#;]modes:step=", tab.url)


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 375)])
def test_mounts_inside_the_page(open_stage, name, theme, width):
    tab, frame = open_stage(name, theme=theme, width=width)
    assert frame.locator("button").count() >= (3 if name in STEPPED else 0)
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


@pytest.mark.parametrize(
    "name",
    [
        "shares",
        "signature",
        "tree",
        "machines",
        "memory",
        "opener",
        "chip",
        "film",
        "recurrence",
        "convolution",
    ],
)
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
    tab, frame = open_stage("machines", stopped=True)
    frame.get_by_role("button", name="Start over").click()
    start = line(frame)
    frame.get_by_role("button", name="Play").click()
    tab.clock.run_for(1800)
    frame.get_by_role("button", name="Pause").click()
    paused = line(frame)
    assert paused != start
    tab.clock.run_for(5000)
    assert line(frame) == paused
    _, calm = open_stage("machines", reduced_motion="reduce")
    assert calm.get_by_role("button", name="Play").count() == 0


def test_chip_moves_what_the_account_says(open_stage):
    tab, frame = open_stage("chip")
    T, d = 6 * 64, 64
    designs = {"Keep it on the chip": "three passes", "Store it every chunk": "chunk states"}
    for state, design in designs.items():
        frame.get_by_role("radio", name=state).check()
        frame.get_by_role("button", name="Step").focus()
        tab.keyboard.press("End")
        expected = design_cost(design, T, 1, d, cut=(1, T)).bytes
        so_far, in_the_end = frame.locator(".stage-counts b").all_inner_texts()
        assert in_the_end == f"{expected:.0f} B"
        assert so_far == f"{expected * T / 1024:.0f} KiB"


def test_a_draw_falls_into_narrower_and_narrower_shares(open_stage):
    tab, frame = open_stage("shares")
    for _ in range(3):
        frame.get_by_role("button", name="New draw").click()
        frame.get_by_role("button", name="Step").focus()
        pieces = []
        for _ in range(3):
            pieces.append(re.search(r"in ([abc]+), which has probability (\d\.\d+)", line(frame)))
            tab.keyboard.press("ArrowLeft")
        texts, masses = zip(*((one[1], float(one[2])) for one in pieces), strict=True)
        assert texts[0][:2] == texts[1] and texts[1][:1] == texts[2]
        assert masses[0] <= masses[1] <= masses[2]


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
@pytest.mark.parametrize(("t", "d", "c"), [(24, 4, 6), (23, 16, 5), (7, 64, 24)])
def test_modes_cost_what_the_package_says(open_stage, mode, t, d, c):
    _, frame = open_stage("modes")
    frame.get_by_role("radio", name=mode.capitalize()).check()
    slide(frame, "Tokens", range(2, 25), t)
    slide(frame, "Head width", [2, 4, 8, 16, 32, 64], d)
    slide(frame, "Chunk", range(1, 25), c)
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


def test_the_triangle_tells_at_first_what_the_chapter_says(open_stage):
    """Attention mode forms the most, recurrent mode waits the most, chunked mode does neither."""
    _, frame = open_stage("modes")
    flops, steps = {}, {}
    for mode in ("attention", "recurrent", "chunked"):
        frame.get_by_role("radio", name=mode.capitalize()).check()
        found = counts(frame)
        flops[mode], steps[mode] = found["FLOPs"], found["Steps in a row"]
        row = frame.locator(".modes-real tr.modes-chosen")
        assert row.locator("th").inner_text() == mode.capitalize()
        cost = mode_cost(mode, 8192, 64, 64, chunk_size=64)
        said = float(row.locator("td").first.inner_text().split()[0])
        unit = {"G": 1e9, "M": 1e6}[row.locator("td").first.inner_text().split()[1]]
        assert said * unit == pytest.approx(cost.flops, rel=5e-3)
        assert row.locator("td").last.inner_text() == f"{cost.steps:,}"
    assert flops["recurrent"] < flops["chunked"] < flops["attention"]
    assert steps["attention"] < steps["chunked"] < steps["recurrent"]


@pytest.mark.parametrize("device", PEAKS)
@pytest.mark.parametrize(
    ("t", "d", "c", "heads"), [(64, 64, 64, 1), (16384, 64, 128, 12), (131072, 256, 16, 25)]
)
def test_least_times_are_what_the_package_says(open_stage, device, t, d, c, heads):
    _, frame = open_stage("roofline")
    frame.get_by_label("Machine").select_option(f"NVIDIA {device}")
    frame.get_by_role("radio", name=str(heads), exact=True).check()
    slide(frame, "Tokens", [64 * 2**i for i in range(12)], t)
    slide(frame, "Head width", [2**i for i in range(4, 9)], d)
    slide(frame, "Chunk", [2**i for i in range(4, 11)], c)
    peak, least = PEAKS[device], []
    for mode in ("attention", "recurrent", "chunked"):
        card = frame.locator(f"[data-mode={mode}]")
        found = {key: float(card.get_attribute(f"data-{key}")) for key in COUNTED}
        one = mode_cost(mode, t, d, d, chunk_size=c)
        assert (found["flops"], found["bytes"]) == (heads * one.flops, heads * one.bytes)
        assert found["steps"] == one.steps
        ends = replace(one, flops=heads * one.flops, bytes=heads * least_bytes(t, d, d))
        wait = 0 if mode == "attention" else peak.step
        expected = ends.seconds(peak.flops, peak.bytes, wait)
        assert found["seconds"] == pytest.approx(expected, rel=1e-9)
        least.append((expected, mode))
    assert min(least)[1] in line(frame).split("lowest limit")[0]


def test_a_step_that_waits_longer_holds_recurrent_mode_back(open_stage):
    _, frame = open_stage("roofline")
    slide(frame, "Tokens", [64 * 2**i for i in range(12)], 1024)
    frame.get_by_label("A step waits").select_option("5 µs, a kernel launch")
    card = frame.locator("[data-mode=recurrent]")
    assert float(card.get_attribute("data-seconds")) == pytest.approx(1024 * 5e-6)
    assert "set by waiting" in card.inner_text()


def test_measured_points_are_the_stored_ones(open_stage):
    """The machine of the CPU's record: a dot a point, its time said, none at another width."""
    one = next(r for r in load("mode_speed") if r["provenance"]["device"]["kind"] == "cpu")
    rows = one["tables"]["rows"]
    points = {
        (mode, length): seconds
        for mode, name, length, seconds in zip(
            rows["mode"], rows["pass"], rows["length"], rows["seconds"], strict=True
        )
        if name == "forward"
    }
    _, frame = open_stage("roofline")
    machine = frame.get_by_label("Machine")
    machine.select_option(label=machine.locator("option", has_text="measured here").inner_text())
    assert frame.locator(".roofline-point").count() == len(points)
    slide(frame, "Tokens", [64 * 2**i for i in range(12)], 4096)
    said = frame.locator("[data-mode=chunked]").inner_text()
    assert f"{points['chunked', 4096] * 1e3:.3g} ms" in said
    slide(frame, "Head width", [2**i for i in range(4, 9)], 128)
    assert frame.locator(".roofline-point").count() == 0
    assert "no stored run of this shape" in frame.locator("[data-mode=chunked]").inner_text()


def test_opener_reads_what_the_machines_hold(open_stage):
    tab, frame = open_stage("opener", reduced_motion="reduce")
    frame.locator(".opener-picture").focus()
    tab.keyboard.press("Home")
    totals = dict.fromkeys(("kv cache", "linear state"), 0)
    for t in range(1, 16):
        tab.keyboard.press("ArrowRight")
        for i, machine in enumerate(totals):
            reads = machine_cost(machine, t, 4).state // STATE_BYTES
            totals[machine] += reads
            side = frame.locator(".opener-side").nth(i).inner_text()
            assert f"reads {reads} numbers now" in side
            assert f"{totals[machine]} in all" in side


def test_opener_plays_once_by_itself_and_says_nothing_meanwhile(open_stage):
    tab, frame = open_stage("opener", stopped=True)
    frame.get_by_role("button", name="Pause").wait_for()
    tab.clock.run_for(2000)
    assert frame.locator("[role=status]").get_attribute("aria-live") == "off"
    frame.locator(".opener-picture").focus()
    tab.keyboard.press(" ")
    paused = line(frame)
    tab.clock.run_for(20_000)
    assert line(frame) == paused and not paused.startswith("Letter 15")
    assert frame.locator("[role=status]").get_attribute("aria-live") == "polite"
    frame.locator(".opener-picture").click()
    frame.get_by_role("button", name="Pause").wait_for()
    tab.clock.run_for(20_000)
    assert line(frame).startswith("Letter 15 of 15.")


def test_opener_is_still_where_motion_is_unwelcome(open_stage):
    tab, frame = open_stage("opener", reduced_motion="reduce", stopped=True)
    tab.clock.run_for(20_000)
    assert line(frame).startswith("Letter 15 of 15.")
    assert frame.get_by_role("button", name="Play").count() == 0
    frame.locator(".opener-picture").click()
    assert line(frame) == "No letter read yet."


def test_opener_leaves_the_first_screen_to_the_result(open_stage):
    tab, frame = open_stage("opener")
    assert frame.bounding_box()["height"] <= 275
    top = tab.locator("#headline").evaluate("e => e.getBoundingClientRect().top + scrollY")
    assert top < 900


def kept(frame):
    """How much of each letter read so far is in the state."""
    texts = frame.locator(".recurrence-letter").evaluate_all(
        "all => all.map((e) => e.dataset.kept)"
    )
    return [float(text) for text in texts]


def test_a_fixed_decay_leaves_its_power_and_is_a_convolution(open_stage):
    tab, frame = open_stage("recurrence")
    frame.get_by_label("Layer").select_option("RetNet")
    frame.get_by_label("Your text").fill("abcabcab")
    assert kept(frame) == pytest.approx([0.9 ** (7 - j) for j in range(8)], abs=1e-4)
    for layer in ("RetNet", "RWKV", "S4D", "Linear attention"):
        frame.get_by_label("Layer").select_option(layer)
        by_state = kept(frame)
        frame.get_by_role("radio", name="Convolution").check()
        assert kept(frame) == pytest.approx(by_state, abs=1e-4)
        frame.get_by_role("radio", name="Recurrence").check()


def test_what_never_fades_is_whole_however_strongly_it_was_written(open_stage):
    tab, frame = open_stage("recurrence")
    frame.get_by_label("Your text").fill("aeiou b")
    for layer in ("AFT-simple", "Linear attention"):
        frame.get_by_label("Layer").select_option(layer)
        assert kept(frame) == pytest.approx([1.0] * 7, abs=1e-4)
    # One step decides how much S6 forgets and writes: 1 at a space, 0.03 at a vowel, else 0.1.
    frame.get_by_label("Layer").select_option("S6 (Mamba)")
    later = [0.03 * (4 - j) + 1 + 0.1 for j in range(5)] + [0.1, 0]
    assert kept(frame) == pytest.approx([math.exp(-steps) for steps in later], abs=1e-4)


def test_what_depends_on_the_text_is_no_convolution(open_stage):
    tab, frame = open_stage("recurrence")
    convolution = frame.get_by_role("radio", name="Convolution")
    formulas = set()
    for layer in ("Gated linear attention", "DeltaNet", "Gated delta rule", "S6 (Mamba)"):
        frame.get_by_label("Layer").select_option(layer)
        assert convolution.is_disabled()
        formulas.add(frame.locator(".recurrence-formula").inner_text())
        valves = frame.locator(".recurrence-valve text:first-of-type").all_text_contents()
        named = frame.locator(".recurrence-term small").all_inner_texts()
        assert sorted(named) == sorted(valves) == ["decay", "read", "write"]
    assert len(formulas) == 4
    frame.get_by_label("Layer").select_option("RetNet")
    convolution.check()
    # One valve is enough: the run goes back to the recurrence, and the layer is the reader's own.
    frame.get_by_label("Write").select_option("what is new (delta rule)")
    assert convolution.is_disabled()
    assert frame.get_by_role("radio", name="Recurrence").is_checked()
    assert frame.get_by_label("Layer").evaluate("e => e.selectedOptions[0].text") == "(of your own)"


def test_the_delta_rule_overwrites_a_key_that_comes_again(open_stage):
    tab, frame = open_stage("recurrence")
    frame.get_by_label("Layer").select_option("DeltaNet")
    frame.get_by_label("Your text").fill("aab")
    first, second, last = kept(frame)
    assert first == pytest.approx(0, abs=1e-3)
    assert 0 < second < 1  # b, whose key is not orthogonal to that of a, takes a part
    assert last == pytest.approx(1)
    frame.get_by_label("Your text").fill("")
    assert line(frame) == "The state is empty."


@pytest.mark.parametrize("step", ["fixed", "from the input"])
def test_state_and_sum_give_one_output(open_stage, step):
    tab, frame = open_stage("convolution")
    frame.get_by_role("radio", name=step).check()
    frame.get_by_role("button", name="Start over").click()
    weights = []
    for tick in range(1, 8):
        tab.keyboard.press("ArrowRight")
        by_state, by_sum = frame.locator(".stage-counts b").all_inner_texts()
        assert by_state == by_sum
        bars = frame.locator(".convolution-kernel, .convolution-weights")
        weights.append(bars.evaluate_all("all => all.map((e) => Number(e.dataset.value))"))
        assert len(weights[-1]) == tick
    # A kernel is the same for every output, read from the newest input backwards.
    shifted = all(a == b[-len(a) :] for a, b in pairwise(weights))
    assert shifted == (step == "fixed")


def test_a_title_sorts_its_column_and_numbers_are_numbers(open_page):
    tab = open_page("book/state-spaces.html")
    table = tab.locator("table", has_text="LAMBADA")
    title = table.get_by_role("button", name="Pile")
    column = "rows => rows.map((row) => row.cells[2].textContent.trim())"
    for turn, falling in ((title, False), (title, True)):
        turn.click()
        found = table.locator("tbody tr").evaluate_all(column)
        numbers = [float(text) for text in found if text != "–"]
        assert numbers == sorted(numbers, reverse=falling)
        assert set(found[len(numbers) :]) == {"–"}
    assert title.locator("..").get_attribute("aria-sort") == "descending"
