"""A figure's declaration: what it refuses, what it shows, how it prints numbers."""

from __future__ import annotations

import numpy as np
import pytest

from book.explorable.figure import (
    Axis,
    Choice,
    Crossing,
    Filter,
    Series,
    Toggle,
)
from book.explorable.numbers import (
    eased,
    format_number,
    linear_ticks,
    log_ticks,
    progression,
    round_column,
)
from book.explorable.view import crossings, resolve
from tests.book.example_figure import curve, figure


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": "Head line"}, "^id: expected lower case"),
        ({"series": []}, "at least one Series"),
        ({"alt": ""}, "a caption and an alt text"),
        ({"mark": "pie"}, "^mark: expected one of"),
        ({"color": "layer"}, r"^series\[0\]\.keys: expected a key 'layer'"),
        ({"x": Axis("tokens", "Tokens")}, r"^series\[0\]\.columns: expected a column 'tokens'"),
        ({"x": Axis("update", "Updates", log=True)}, "positive values"),
        ({"controls": [Filter("scale", "Model")]}, "a key 'scale'"),
        ({"controls": [Filter("context", "Context", [1024])]}, r"Filter\('context'\)\.options"),
        ({"controls": [Filter("context", "Context", default=512)]}, "measured values"),
        ({"controls": [Filter("context", "C"), Toggle("context", "C")]}, "one control for each"),
        ({"ceilings": [curve()]}, r"^ceilings\[0\]\.label"),
        ({"readouts": [Crossing("seconds", "Level")]}, r"^Crossing\.column"),
        ({"readouts": [Crossing("loss", "L", compare=("softmax", "s4"))]}, r"^Crossing\.compare"),
        ({"x": Choice("X", [Axis("update", "U")], default="hours")}, r"^x\.default"),
    ],
)
def test_errors_name_the_argument_and_what_was_expected(changes, message):
    with pytest.raises(ValueError, match=message):
        figure(**changes)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1, 2], "b": [1]}, r"columns of one length, got \{'a': 2, 'b': 1\}"),
        ({"a": [1, float("nan")]}, r"\['a'\]\[1\]: expected a finite number"),
        ({"a": []}, "at least one point"),
        ({}, "at least one column"),
        ({"a": [1, "two"]}, "a finite number"),
    ],
)
def test_series_refuses_what_cannot_be_drawn(columns, message):
    with pytest.raises(ValueError, match=message):
        Series({"attention": "softmax"}, columns)


def test_lines_refuse_an_x_that_falls():
    with pytest.raises(ValueError, match="never fall"):
        figure(series=[Series({"attention": "rnn"}, {"update": [2, 1], "loss": [1, 1]})],
               x=Axis("update", "Updates"), controls=[], readouts=[])  # fmt: skip


def test_curves_are_named_coloured_and_sorted_by_the_palette():
    found = [(one.name, one.color) for one in figure().curves]
    assert found == [
        ("Softmax attention", "softmax"),
        ("Softmax attention", "softmax"),
        ("Linear attention", "linear"),
    ]


def test_what_has_no_name_in_the_palette_gets_a_colour_of_its_own():
    series = [Series({"library": name}, {"t": [1, 2], "ms": [1, 2]}) for name in ("fla", "helion")]
    drawn = figure(series=series, x=Axis("t", "Length"), y=Axis("ms", "Time", "ms"),
                   color="library", controls=[], readouts=[])  # fmt: skip
    assert [one.color for one in drawn.curves] == ["other-1", "other-2"]


def test_filters_choose_and_absence_is_said():
    drawn = figure()
    state = drawn.default_state()
    assert [one.curve.name for one in resolve(drawn, state).traces] == [
        "Softmax attention",
        "Linear attention",
    ]
    longer = resolve(drawn, state | {"context": "4096"})
    assert longer.unmeasured == {"attention": ["linear"]}
    assert resolve(drawn, state | {"context": "16384"}).empty == "unmeasured"
    assert resolve(drawn, state | {"attention": ()}).empty == "unselected"


@pytest.mark.parametrize("level", [3.4, 3.5, 7.77])
def test_crossings_agree_with_numpy(level):
    drawn = figure()
    state = drawn.default_state() | {"level": level}
    _, rows, sentence = crossings(drawn, resolve(drawn, state), state)
    expected = {}
    for one, at in rows:
        loss, update, hours = (one.columns[name] for name in ("loss", "update", "hours"))
        expected[one.name] = np.interp(-level, -np.array(loss), update)
        assert at["hours"] == pytest.approx(np.interp(-level, -np.array(loss), hours), rel=1e-9)
        assert at["update"] == np.ceil(expected[one.name]), "a level is reached at an update"
    ratio = format_number(
        np.ceil(expected["Softmax attention"]) / np.ceil(expected["Linear attention"]), 2
    )
    assert f"Softmax attention needs {ratio}× the updates" in sentence


def test_a_level_below_every_curve_is_not_reached():
    drawn = figure()
    state = drawn.default_state() | {"level": 0.5}
    _, rows, sentence = crossings(drawn, resolve(drawn, state), state)
    assert all(value is None for _, at in rows for value in at.values())
    assert sentence == ""


def test_columns_are_rounded_but_whole_numbers_are_exact():
    assert round_column([131072, 3.20714, 0.000123456, 65537.0], 4) == [
        131072,
        3.207,
        0.0001235,
        65537,
    ]


def test_even_steps_are_stored_as_a_progression():
    values = list(range(0, 10000, 20))
    assert progression(values) == {"from": 0, "step": 20, "count": 500}
    assert progression([0, 1, 2, 4]) is None


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (131072, 4, "131,072"), (3.20714, 4, "3.207"), (12345.6, 4, "12,346"), (-0.5, 2, "−0.50"),
        (0.0000123456, 3, "1.23×10⁻⁵"), (None, 4, "–"), (3.0, 4, "3"),
    ],
)  # fmt: skip
def test_numbers_read_well(value, digits, text):
    assert format_number(value, digits) == text


def test_ticks_are_round():
    assert [text for _, text in log_ticks(1024, 131072, 2, 8)] == [
        "1k", "2k", "4k", "8k", "16k", "32k", "64k", "128k",
    ]  # fmt: skip
    assert [text for _, text in log_ticks(0.02, 20000, 10, 8)][:3] == ["0.1", "1", "10"]
    assert [text for _, text in linear_ticks(3, 5, 5)] == ["3.0", "3.5", "4.0", "4.5", "5.0"]
    assert eased(3.2749, 3, upwards=True) == 3.28
