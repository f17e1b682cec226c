"""A figure's declaration: what it refuses, and the curves that it makes."""

import pytest

from book.explorable.curves import round_column
from book.explorable.figure import (
    Axis,
    Choice,
    Crossing,
    Filter,
    Series,
    Toggle,
)
from tests.book.example_figure import curve, figure

BARS = Series({"attention": "s4"}, {"update": [1], "hours": [1], "task": ["Copy"]}, label="S4")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": "Head line"}, "^id: expected lower case"),
        ({"series": []}, "at least one Series"),
        ({"alt": ""}, "a caption and an alt text"),
        ({"mark": "pie"}, "^mark: expected one of"),
        ({"color": "layer"}, r"^series\[0\]\.keys: expected a key 'layer'"),
        ({"x": Axis("tokens", "Tokens")}, r"^series\[0\]\.columns: expected a column 'tokens'"),
        ({"x": Axis("update", "Updates", log=10)}, "positive values"),
        ({"controls": [Filter("scale", "Model")]}, "a key 'scale'"),
        ({"controls": [Filter("context", "Context", [1024])]}, r"Filter\('context'\)\.options"),
        ({"controls": [Filter("context", "Context", default=512)]}, "measured values"),
        ({"controls": [Filter("context", "C"), Toggle("context", "C")]}, "one control for each"),
        ({"ceilings": [curve()]}, r"^ceilings\[0\]\.label"),
        (
            {"mark": "bar", "y": Axis("task", "Task"), "series": [BARS], "ceilings": [BARS]},
            "^ceilings: expected none beside bars",
        ),
        ({"ceilings": [Series({}, {"update": [0]}, "x")]}, r"^ceilings\[0\]\.columns"),
        ({"crossing": Crossing("seconds", "L", ("softmax", "linear"))}, r"^Crossing\.column"),
        ({"crossing": Crossing("loss", "L", ("softmax", "s4"))}, r"^Crossing\.compare"),
        ({"mark": "bar"}, r"^series\[0\]\.columns\['loss'\]: expected strings along y of bars"),
        ({"x": Choice("X", [Axis("update", "U")], default="hours")}, r"^x\.default"),
    ],
)
def test_errors_name_the_argument_and_what_was_expected(changes, message):
    with pytest.raises(ValueError, match=message):
        figure(**changes)


def test_the_title_of_an_axis_fits_a_phone():
    with pytest.raises(ValueError, match=r"^Axis\('ms'\)\.title: expected at most 46 letters"):
        Axis("ms", "Length of the sequence, 256 channels", "tokens", log=2)


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
               x=Axis("update", "Updates"), controls=[], crossing=None)  # fmt: skip


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
                   color="library", controls=[], crossing=None)  # fmt: skip
    assert [one.color for one in drawn.curves] == ["other-1", "other-2"]


def test_columns_are_rounded_but_whole_numbers_are_exact():
    assert round_column([131072, 3.20714, 0.000123456, 65537.0], 4) == [
        131072,
        3.207,
        0.0001235,
        65537,
    ]
