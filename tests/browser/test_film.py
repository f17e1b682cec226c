"""The training film, told of two short runs that are made up."""

import json
import re

import pytest

from tests.browser.stages import PLACES

LETTERS = "abcd"
EVEN, SHARP = "z" + "p" * 2 + "k" * 3 + "i" * 4, "z" + "0z" + "00z" + "000z"


def model(name, seconds):
    """Stops after 0, 10 and 30 updates; the second of two heads turns sharp."""
    texts = [f"{name} writes {word}" for word in ("\x00\x1b<b>noise</b>", "the the", "a\nsentence")]
    return {
        "name": name, "updates": [0, 10, 30], "seconds": seconds,
        "loss": [[0, 5.5], [8, 2.51], [16, 2.2], [30, 1.75]],
        "samples": {"greedy": texts, "sampled": texts[::-1]},
        "maps": [[EVEN] * 3, [EVEN, EVEN, SHARP]], "peaks": [[52.0] * 3, [52.0, 52.0, 100.0]],
    }  # fmt: skip


FILM = {
    "prompt": "It was ", "looked": LETTERS, "context": 4096, "shown": 1,
    "heads": [[0, 0, True], [0, 1, False]],
    "models": [model("softmax", 60.0), model("linear", 20.0)],
    "sources": [
        {"device": "a cpu", "commit": "0", "date": "2026-01-01", "command": "run", "href": "#"}
    ],
}  # fmt: skip


@pytest.fixture
def film(reader):
    """Open the film in its chapter, told these data instead of the stored ones: film(hash)."""

    def open_one(said="", data=FILM):
        tab = reader.open("search.html")
        stored = "document.getElementById('film-data')"
        told = f"{stored}.textContent = {json.dumps(json.dumps(data))}"
        tab.route(
            "**/film-data.js", lambda one: one.fulfill(body=told if data else f"{stored}.remove()")
        )
        reader.load(tab, PLACES["film"] + said)
        return tab.locator("#film")

    return open_one


def writing(frame):
    return [" ".join(text.split()) for text in frame.locator(".film-writing").all_inner_texts()]


def opacities(frame, side):
    """Of each square of a side's map, row by row."""
    shades = frame.locator(".film-look").nth(side).locator("path")
    drawn = shades.evaluate_all(
        "all => all.map((one) => [one.getAttribute('d'), one.getAttribute('fill-opacity')])"
    )
    found = {
        (int(y), int(x)): float(opacity)
        for squares, opacity in drawn
        for x, y in re.findall(r"M(\d+) (\d+)", squares)
    }
    return [found[place] for place in sorted(found)]


def test_it_opens_on_minutes_where_linear_is_done_and_softmax_still_learns(film):
    frame = film()
    softmax, linear = writing(frame)
    assert "10 updates, 10 min: 2.51" in softmax and "30 updates, 10 min: 1.75" in linear
    assert frame.get_by_role("radio", name="minutes").is_checked()
    frame.get_by_role("button", name="Start over").click()
    softmax, linear = writing(frame)
    assert "0 updates, 0 min" in softmax and "0 updates, 0 min" in linear


def test_at_the_last_stop_both_are_done_and_the_keys_go_back(film):
    frame = film("#film:by=update&stop=last")
    softmax, linear = writing(frame)
    assert "30 updates, 30 min: 1.75 nats a byte" in softmax and "a ↵ sentence" in softmax
    assert "30 updates, 10 min: 1.75 nats a byte" in linear
    assert opacities(frame, 1) == [1, 0.03, 1, 0.03, 0.03, 1, 0.03, 0.03, 0.03, 1]
    frame.get_by_role("button", name="Back").press("ArrowLeft")
    assert "10 updates, 3.3 min: 2.51 nats a byte, measured at 8" in writing(frame)[1]
    assert opacities(frame, 1)[-1] < 0.6
    frame.get_by_role("button", name="Back").press("Home")
    noise = writing(frame)[0]
    assert "<b>noise</b>" in noise and not re.search(r"[\x00-\x08\x1b]", noise)
    frame.get_by_role("combobox").select_option("Layer 1, head 1, fades")
    assert "on average: 52%" in frame.locator(".film-look").nth(0).inner_text()


def test_after_the_same_minutes_each_model_shows_its_own_last_stop(film):
    frame = film("#film:by=minute&stop=12")
    softmax, linear = writing(frame)
    assert "10 updates, 10 min" in softmax and "30 updates, 10 min" in linear
    slider = frame.get_by_role("slider", name="Minutes of training")
    assert slider.get_attribute("aria-valuetext") == "10"
    frame.locator("label:has(input[value=update])").click()
    assert "30 updates" in writing(frame)[0]


def test_without_speeds_or_data_there_is_less_to_choose_and_no_error(film):
    models = [model("softmax", None), model("linear", 20.0)]
    frame = film(data={**FILM, "models": models})
    assert frame.get_by_role("radio").count() == 0
    assert "30 updates: 1.75" in writing(frame)[0]
    assert film(data=None).get_by_text("Nothing is stored for this yet.").is_visible()
