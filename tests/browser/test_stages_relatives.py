"""The opener, and the stages and sorted tables of the relatives."""

import math
from itertools import pairwise

import pytest

from lsa.cost import STATE_BYTES, machine_cost
from tests.browser.stages import line


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


def kept(frame):
    """How much of each letter read so far is in the state."""
    texts = frame.locator(".recurrence-letter").evaluate_all(
        "all => all.map((e) => e.dataset.kept)"
    )
    return [float(text) for text in texts]


def test_a_fixed_decay_leaves_its_power_and_is_a_convolution(set_stage):
    _, frame = set_stage("recurrence")
    frame.get_by_label("Layer").select_option("RetNet")
    frame.get_by_label("Your text").fill("abcabcab")
    assert kept(frame) == pytest.approx([0.9 ** (7 - j) for j in range(8)], abs=1e-4)
    for layer in ("RetNet", "RWKV", "S4D", "Linear attention"):
        frame.get_by_label("Layer").select_option(layer)
        by_state = kept(frame)
        frame.get_by_role("radio", name="Convolution").check()
        assert kept(frame) == pytest.approx(by_state, abs=1e-4)
        frame.get_by_role("radio", name="Recurrence").check()


def test_what_never_fades_is_whole_however_strongly_it_was_written(set_stage):
    _, frame = set_stage("recurrence")
    frame.get_by_label("Your text").fill("aeiou b")
    for layer in ("AFT-simple", "Linear attention"):
        frame.get_by_label("Layer").select_option(layer)
        assert kept(frame) == pytest.approx([1.0] * 7, abs=1e-4)
    # One step decides how much S6 forgets and writes: 1 at a space, 0.03 at a vowel, else 0.1.
    frame.get_by_label("Layer").select_option("S6 (Mamba)")
    later = [0.03 * (4 - j) + 1 + 0.1 for j in range(5)] + [0.1, 0]
    assert kept(frame) == pytest.approx([math.exp(-steps) for steps in later], abs=1e-4)


def test_what_depends_on_the_text_is_no_convolution(set_stage):
    _, frame = set_stage("recurrence")
    convolution = frame.get_by_role("radio", name="Convolution")
    formulas = set()
    for layer in ("Mamba-2's decay", "GLA", "DeltaNet", "Gated delta rule", "S6 (Mamba)"):
        frame.get_by_label("Layer").select_option(layer)
        assert convolution.is_disabled()
        formulas.add(frame.locator(".recurrence-formula").inner_text())
        valves = frame.locator(".recurrence-valve text:first-of-type").all_text_contents()
        named = frame.locator(".recurrence-term small").all_inner_texts()
        assert sorted(named) == sorted(valves) == ["decay", "read", "write"]
    assert len(formulas) == 5
    frame.get_by_label("Layer").select_option("RetNet")
    convolution.check()
    # One valve is enough: the run goes back to the recurrence, and the layer is the reader's own.
    frame.get_by_label("Write").select_option("what is new (delta rule)")
    assert convolution.is_disabled()
    assert frame.get_by_role("radio", name="Recurrence").is_checked()
    assert frame.get_by_label("Layer").evaluate("e => e.selectedOptions[0].text") == "(of your own)"


def test_the_delta_rule_overwrites_a_key_that_comes_again(set_stage):
    _, frame = set_stage("recurrence")
    frame.get_by_label("Layer").select_option("DeltaNet")
    frame.get_by_label("Your text").fill("aab")
    first, second, last = kept(frame)
    assert first == pytest.approx(0, abs=1e-3)
    assert 0 < second < 1  # b, whose key is not orthogonal to that of a, takes a part
    assert last == pytest.approx(1)
    frame.get_by_label("Your text").fill("")
    assert line(frame) == "The state is empty."


@pytest.mark.parametrize("step", ["fixed", "chosen by the input"])
def test_state_and_sum_give_one_output(set_stage, step):
    tab, frame = set_stage("convolution")
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


def test_a_title_sorts_its_column_and_numbers_are_numbers(set_stage):
    tab, _ = set_stage("recurrence", prose=True)  # of the same page
    table = tab.locator("table", has_text="selective copying")
    title = table.get_by_role("button", name="overwriting")
    column = "rows => rows.map((row) => row.cells[9].textContent.trim())"
    for turn, falling in ((title, False), (title, True)):
        turn.click()
        found = table.locator("tbody tr").evaluate_all(column)
        numbers = [float(text.partition("%")[0]) for text in found if text != "–"]
        assert numbers == sorted(numbers, reverse=falling)
        assert set(found[len(numbers) :]) == {"–"}
    assert title.locator("..").get_attribute("aria-sort") == "descending"
