"""The stages of the theory: shares, tree, causality, diagrams and machines."""

import math
import re

from lsa.cost import STATE_BYTES, machine_cost
from tests.browser.stages import line

# The layer of each row, and which of its outputs have changed.
MOVED = """(rows) => rows.map((row) => [row.querySelector("th").innerText,
    ...[...row.querySelectorAll("td")].map((cell) => cell.classList.contains("moved"))])"""


def test_a_draw_falls_into_narrower_and_narrower_shares(set_stage):
    tab, frame = set_stage("shares")
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


def test_tree_counts_evaluations(set_stage):
    tab, frame = set_stage("tree", "way=dumb")
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


def test_only_the_non_causal_layer_tells_the_past(set_stage):
    _, frame = set_stage("causality")
    buttons = frame.locator("thead button")
    for chosen in range(7):
        buttons.nth(chosen).click()
        moved = frame.locator("tbody tr").evaluate_all(MOVED)
        assert len(moved) > 3
        for name, *cells in moved:
            if name == "Non-causal softmax":
                assert all(cells), chosen
            elif name == "3-gram":
                assert cells == [chosen <= i < chosen + 3 for i in range(7)], chosen
            else:
                assert cells == [i >= chosen for i in range(7)], (name, chosen)


def test_a_token_is_chosen_and_changed_by_keyboard(set_stage):
    tab, frame = set_stage("causality")
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


def test_arrows_cost_what_they_say(set_stage):
    _, frame = set_stage("diagram-machines")
    for text in ("ab", "abba", "abababababab"):
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
        assert product.splitlines()[2].endswith(f"{exact:.4f}")


def test_arrow_keys_move_among_the_arrows(set_stage):
    tab, frame = set_stage("diagram-causal")
    frame.locator("button", has_text="take last").focus()
    frame.locator("button", has_text="take last").click()
    tab.keyboard.press("ArrowRight")
    pressed = frame.locator("button[aria-pressed=true]")
    assert "all prefixes" in pressed.inner_text()
    assert pressed.evaluate("b => b === document.activeElement")


def test_machines_do_the_work_that_the_library_says(set_stage):
    tab, frame = set_stage("machines")
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
