"""The stages of computation: the modes' costs, the roofline, the chip and the ranks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiments.harness.core.record import load
from lsa.cost import PEAKS, design_cost, key_exchange, least_bytes, mode_cost, state_exchange
from tests.browser.stages import line, slide

pytestmark = pytest.mark.browser

COUNTED = ("flops", "bytes", "steps", "seconds")


def test_chip_moves_what_the_account_says(open_stage):
    tab, frame = open_stage("chip")
    T, d = 6 * 64, 64
    designs = {"Keep it on the chip": "three passes", "Store it after every chunk": "chunk states"}
    for state, design in designs.items():
        frame.get_by_role("radio", name=state).check()
        frame.get_by_role("button", name="Step").focus()
        tab.keyboard.press("End")
        expected = design_cost(design, T, 1, d, cut=(1, T)).bytes
        so_far, in_the_end = frame.locator(".stage-counts b").all_inner_texts()
        assert in_the_end == f"{expected:.0f} B"
        assert so_far == f"{expected * T / 1024:.0f} KiB"


def test_ranks_receive_what_the_account_says(open_stage):
    tab, frame = open_stage("ranks")
    heads = {"H": 1, "K": 64, "V": 64}
    states = [state_exchange(4, way=way, **heads) for way in ("gather", "scan")]
    for tokens in (16, 65, 1024, 16384):
        slide(frame, "Tokens a rank", [16, 65, 1024, 16384], tokens)
        keys = key_exchange(4, 4 * tokens, **heads)
        for way, expected in zip(
            ("States, at once", "States, scanned", "Keys and values"), (*states, keys), strict=True
        ):
            frame.get_by_role("radio", name=way).check()
            frame.get_by_role("button", name="Step").focus()
            tab.keyboard.press("End")
            for said in frame.locator(".stage-counts b").all_inner_texts():
                assert float(said.removesuffix(" kB").replace(",", "")) * 1e3 == expected


def counts(frame):
    names, values = (
        frame.locator(f".stage-counts {tag}").all_inner_texts() for tag in ("span", "b")
    )
    numbers = (int(value.replace(",", "")) for value in values)
    return dict(zip(names, numbers, strict=True))


@pytest.mark.parametrize(("t", "d", "c"), [(24, 4, 6), (23, 16, 5), (7, 64, 24)])
def test_modes_cost_what_the_package_says(open_stage, t, d, c):
    tab, frame = open_stage("modes")
    slide(frame, "Tokens", range(2, 25), t)
    slide(frame, "Head width", [2, 4, 8, 16, 32, 64], d)
    slide(frame, "Chunk", range(1, 25), c)
    inside = sum(min(c, t - n) * (min(c, t - n) + 1) // 2 for n in range(0, t, c))
    formed = {"attention": t * (t + 1) // 2, "recurrent": 0, "chunked": inside}
    for mode, products in formed.items():
        frame.get_by_role("radio", name=mode.capitalize()).check()
        frame.get_by_role("button", name="Start over").click()
        assert counts(frame)["Products formed so far"] == 0, mode
        expected = mode_cost(mode, t, d, d, chunk_size=c)
        step = frame.get_by_role("button", name="Step")
        step.click()
        tab.keyboard.press("End")
        last = "One step:" if mode == "attention" else f"Step {expected.steps} of {expected.steps}:"
        assert last in line(frame)
        assert step.get_attribute("aria-disabled") == "true"
        found = counts(frame)
        assert found["FLOPs"] == expected.flops, mode
        assert found["Bytes moved, at least"] == expected.bytes, mode
        assert found["Steps in a row"] == expected.steps, mode
        assert found["Products formed so far"] == products, mode


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


@pytest.mark.parametrize(
    ("t", "d", "c", "heads"), [(64, 64, 64, 1), (16384, 64, 128, 12), (131072, 256, 16, 25)]
)
def test_least_times_are_what_the_package_says(open_stage, t, d, c, heads):
    _, frame = open_stage("roofline")
    frame.get_by_role("radio", name=str(heads), exact=True).check()
    slide(frame, "Tokens", [64 * 2**i for i in range(12)], t)
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
        assert min(least)[1] in line(frame).split("lowest limit")[0]


def test_a_step_that_waits_longer_holds_recurrent_mode_back(open_stage):
    _, frame = open_stage("roofline")
    slide(frame, "Tokens", [64 * 2**i for i in range(12)], 1024)
    frame.get_by_label("A step waits").select_option("5 µs, a kernel launch")
    card = frame.locator("[data-mode=recurrent]")
    assert float(card.get_attribute("data-seconds")) == pytest.approx(1024 * 5e-6)
    assert "set by waiting" in card.inner_text()


def test_measured_points_are_the_stored_ones(open_stage):
    """The device of the CPU's record: a dot a point, its time said, none at another width."""
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
    device = frame.get_by_label("Device")
    device.select_option(label=device.locator("option", has_text="measured here").inner_text())
    assert frame.locator(".roofline-point").count() == len(points)
    slide(frame, "Tokens", [64 * 2**i for i in range(12)], 4096)
    said = frame.locator("[data-mode=chunked]").inner_text()
    assert f"{points['chunked', 4096] * 1e3:.3g} ms" in said
    slide(frame, "Head width", [2**i for i in range(4, 9)], 128)
    assert frame.locator(".roofline-point").count() == 0
    assert "no stored run of this shape" in frame.locator("[data-mode=chunked]").inner_text()
