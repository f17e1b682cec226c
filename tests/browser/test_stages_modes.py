"""The stages of computation: the modes' costs, the roofline, the chip and the ranks."""

import re
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from book.figures.lib.format import duration
from experiments.harness.core.record import load
from lsa.cost import PEAKS, design_cost, key_exchange, least_bytes, mode_cost, state_exchange
from tests.browser.stages import line, slide

COUNTED = ("flops", "bytes", "steps", "seconds")


def test_chip_moves_what_the_account_says(open_stage):
    tab, frame = open_stage("chip")
    T, d = 6 * 64, 64
    designs = {"Keep it on the chip": "three passes", "Store it after every chunk": "chunk states"}
    for place, (state, design) in enumerate(designs.items()):
        frame.get_by_role("radio", name=state).check()
        frame.get_by_role("button", name="Step").focus()
        tab.keyboard.press("End")
        expected = design_cost(design, T, 1, d, cut=(1, T)).bytes
        so_far, *in_the_end = frame.locator(".stage-counts b").all_inner_texts()
        assert in_the_end[place] == f"{expected:,.0f} B"
        assert so_far == f"{expected * T / 1024:.0f} KiB"


def test_ranks_receive_what_the_account_says(open_stage):
    tab, frame = open_stage("ranks")
    heads = {"H": 1, "K": 64, "V": 64}
    states = [state_exchange(4, way=way, **heads) for way in ("gather", "scan")]
    for tokens in (16, 65, 1024, 16384):
        slide(frame, "Tokens a rank", [16, 65, 1024, 16384], tokens)
        keys = key_exchange(4, 4 * tokens, **heads)
        ways = ("States, at once", "States, scanned", "Keys and values")
        for way, expected in zip(ways, (*states, keys), strict=True):
            frame.get_by_role("radio", name=way).check()
            frame.get_by_role("button", name="Step").focus()
            tab.keyboard.press("End")
            said = frame.locator(".stage-counts b").all_inner_texts()
            found = [float(one.removesuffix(" kB").replace(",", "")) * 1e3 for one in said]
            assert found == [expected, states[0], keys]


MODES = ("attention", "recurrent", "chunked")
LENGTHS = [64 * 2**i for i in range(12)]


def stored_times():
    """The CPU's forward passes: {(mode, length): seconds}."""
    one = next(r for r in load("mode_speed") if r["provenance"]["device"]["kind"] == "cpu")
    rows = one["tables"]["rows"]
    columns = (rows[name] for name in ("mode", "length", "seconds", "pass"))
    return {
        (mode, length): seconds
        for mode, length, seconds, name in zip(*columns, strict=True)
        if name == "forward"
    }


@pytest.mark.parametrize("t", [64, 1024, 16384])
def test_modes_cost_what_the_package_says_and_take_what_was_stored(set_stage, t):
    _, frame = set_stage("modes")
    slide(frame, "Tokens", LENGTHS, t)
    for mode in MODES:
        panel = frame.locator(f"[data-mode={mode}]")
        found = {key: float(panel.get_attribute(f"data-{key}")) for key in COUNTED}
        one = mode_cost(mode, t, 64, 64, chunk_size=64, itemsize=4)
        assert (found["flops"], found["bytes"], found["steps"]) == (one.flops, one.bytes, one.steps)
        assert found["seconds"] == stored_times()[mode, t]


def test_what_the_triangles_tell_at_first_is_what_the_chapter_says(open_stage):
    """Chunked mode is done, the others are not; each stops when its time is over."""
    tab, frame = open_stage("modes")
    measured = tab.locator("#roofline .lines-frame .lines-dot")
    assert measured.count() > 0, "no device that was measured"

    def done():
        said = frame.locator("[data-mode]").all_inner_texts()
        return [re.search(r"[\d.]+(?=% done)|done", one)[0] for one in said]

    attention, recurrent, chunked = done()
    assert chunked == "done"
    assert float(attention) < 20
    assert float(recurrent) < 50
    assert "only chunked mode is done" in line(frame)
    clock = frame.locator(".modes-clock").inner_text().removeprefix("Clock: ")
    assert f"done\nin {clock}" in frame.locator("[data-mode=chunked]").inner_text()
    assert line(frame).startswith(f"After {clock} ")
    slowest = max(stored_times()[mode, 16384] for mode in MODES)
    pace = f"{float(f'{6 / slowest:.1g}'):g} times slower than they ran on AMD EPYC"
    assert f"Play shows all three {pace}" in line(frame)
    frame.get_by_role("button", name="Step").focus()
    tab.keyboard.press("End")
    assert done() == ["done"] * 3
    assert "all three modes are done" in line(frame)
    filled, striped = (
        [one.get_attribute("d") for one in frame.locator(f"[data-mode] path.{css}").all()]
        for css in ("modes-product", "modes-state")
    )
    assert filled[0] == striped[1] == "M0 0V16H16Z"
    assert filled[1] == striped[0] == ""
    assert filled[2].count("Z") == striped[2].count("Z") == 16
    tab.keyboard.press("Home")
    assert "Nothing is computed yet" in line(frame)


def test_one_length_moves_triangles_and_limits(set_stage):
    tab, modes = set_stage("modes")
    roofline = tab.locator("#roofline")
    slide(modes, "Tokens", LENGTHS, 1024)
    assert roofline.get_by_role("slider", name="Tokens").get_attribute("aria-valuetext") == "1,024"
    assert roofline.locator("[data-mode=recurrent]").get_attribute("data-steps") == "1024"
    slide(roofline, "Tokens", LENGTHS, 4096)
    assert modes.locator("[data-mode=recurrent]").get_attribute("data-steps") == "4096"
    slide(roofline, "Tokens", LENGTHS, 131072)  # where attention mode was not measured
    assert modes.locator("[data-mode=recurrent]").get_attribute("data-steps") == "4096"


def test_a_link_to_a_length_shows_the_moment_at_which_the_first_is_done(set_stage):
    _, frame = set_stage("modes", "t=1024")
    assert "chunked mode is done" in line(frame)


@pytest.mark.parametrize(
    ("t", "d", "c", "heads"), [(64, 64, 64, 1), (16384, 64, 128, 12), (131072, 256, 16, 25)]
)
def test_least_times_are_what_the_package_says(set_stage, t, d, c, heads):
    _, frame = set_stage("roofline")
    frame.get_by_text("More: heads").click()
    frame.get_by_role("radio", name=str(heads), exact=True).check()
    slide(frame, "Tokens", LENGTHS, t)
    slide(frame, "Head width", [2**i for i in range(4, 9)], d)
    slide(frame, "Chunk", [2**i for i in range(4, 11)], c)
    for device, peak in PEAKS.items():
        frame.get_by_label("Device").select_option(f"NVIDIA {device}")
        least = []
        for mode in ("attention", "recurrent", "chunked"):
            card = frame.locator(f"[data-mode={mode}]")
            found = {key: float(card.get_attribute(f"data-{key}")) for key in COUNTED}
            one = mode_cost(mode, t, d, d, chunk_size=c)
            assert (found["flops"], found["bytes"]) == (heads * one.flops, heads * one.bytes)
            assert found["steps"] == one.steps
            ends = replace(one, flops=heads * one.flops, bytes=heads * least_bytes(t, d, d))
            wait = 0 if mode == "attention" else peak.step
            expected = ends.seconds(peak.flops, peak.bytes, wait)
            assert found["seconds"] == pytest.approx(expected, rel=1e-9), (device, mode)
            least.append((expected, mode))
        assert min(least)[1] in line(frame).split("lowest bound")[0]


def test_the_limits_say_how_far_the_measured_times_are_from_them(set_stage):
    _, frame = set_stage("roofline")
    points, said = stored_times(), line(frame).split("over their bounds: ")[1]
    for mode in ("recurrent", "chunked"):
        limit = frame.locator(f"[data-mode={mode}]").get_attribute("data-seconds")
        behind = float(re.search(rf"{mode} ([\d.]+\d)", said)[1])
        assert behind == pytest.approx(points[mode, 16384] / float(limit), rel=0.01)
    assert frame.get_by_label("A step waits").count() == 1  # of a GPU alone
    expect(frame.get_by_label("A step waits")).to_be_hidden()


def test_a_step_that_waits_longer_holds_recurrent_mode_back(set_stage):
    _, frame = set_stage("roofline")
    frame.get_by_label("Device").select_option("NVIDIA H100 SXM")
    slide(frame, "Tokens", LENGTHS, 1024)
    frame.get_by_text("More: heads").click()
    frame.get_by_label("A step waits").select_option("5 µs, a kernel launch")
    card = frame.locator("[data-mode=recurrent]")
    assert float(card.get_attribute("data-seconds")) == pytest.approx(1024 * 5e-6)
    assert "set by waiting" in card.inner_text()


def test_measured_points_are_the_stored_ones(set_stage):
    """The device of the CPU's record: a dot a point, its time said, none at another width."""
    points = stored_times()
    _, frame = set_stage("roofline")
    device = frame.get_by_label("Device")
    device.select_option(label=device.locator("option", has_text="measured here").inner_text())
    assert frame.locator(".lines-frame .lines-dot").count() == len(points)
    slide(frame, "Tokens", LENGTHS, 4096)
    said = frame.locator("[data-mode=chunked]").inner_text()
    assert f"measured: {duration(points['chunked', 4096])}" in said
    frame.get_by_text("More: heads").click()
    slide(frame, "Head width", [2**i for i in range(4, 9)], 128)
    assert frame.locator(".lines-frame .lines-dot").count() == 0
    assert "no stored run of this shape" in frame.locator("[data-mode=chunked]").inner_text()
