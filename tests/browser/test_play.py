"""A reader plays the made-up tasks, and trained layers answer underneath as they did when asked."""

import json
import re

import pytest

from book.figures.relatives import play
from tests.browser.stages import line


def told():
    return json.loads(re.search(r">(.*)<", play.data().data, re.DOTALL)[1])["tasks"]


@pytest.mark.parametrize("task", play.TASKS)
def test_what_the_layers_answered_stands_under_the_readers_answer(set_stage, task):
    _, frame = set_stage("play", reduced_motion="reduce")
    frame.locator(f"input[value='{task}']").check(force=True)
    text, rows = told()[task][0], frame.locator(".play-table tr")
    assert frame.locator(".play-strip .play-square").count() == len(text["tokens"])
    assert "✓" not in rows.nth(1).inner_text() and "✗" not in rows.nth(1).inner_text()
    assert f"Question 1 of {len(text['asked'])}" in line(frame)
    for row, model in ((1, "softmax"), (2, "linear")):
        every = [
            said == wanted
            for one in told()[task]
            for said, wanted in zip(one["said"][model], one["wanted"], strict=True)
        ]
        score = f"{sum(every)} of {len(every)} right"
        assert score in rows.nth(row).inner_text()
    first = frame.locator(".play-choices button").first
    asked = frame.locator("[role=status]").bounding_box()
    assert asked["y"] < first.bounding_box()["y"] < asked["y"] + 80  # the question stands above
    first.focus()
    first.press("Enter")
    for row, model in ((1, "softmax"), (2, "linear")):
        right = text["said"][model][0] == text["wanted"][0]
        assert ("✓" if right else "✗") in rows.nth(row).inner_text()
    frame.get_by_role("button", name="Show the answers").click()
    scores = [
        sum(a == b for a, b in zip(text["said"][model], text["wanted"], strict=True))
        for model in ("softmax", "linear")
    ]
    assert "softmax {}, linear {}.".format(*scores) in line(frame)
    frame.get_by_role("button", name="Another text").click()
    assert line(frame).startswith("Question 1 of")


def test_a_key_that_comes_again_is_answered_by_its_value(open_stage):
    """Whoever plays by the rule is right everywhere."""
    _, frame = open_stage("play")
    squares = frame.locator(".play-strip .play-square").all_inner_texts()
    values = dict(zip(squares[0:16:2], squares[1:16:2], strict=True))
    assert list(values.values()) != sorted(values.values())  # an order would tell the answers
    asked = frame.locator(".play-strip .play-here")
    for done in range(8):
        value = values[asked.inner_text()]
        frame.get_by_role("group", name="Your answer").get_by_text(value, exact=True).click()
        assert asked.count() == (done < 7)
    assert "Right of 8: you 8" in line(frame)
