"""The one model of a chart, as the build asks it: what is shown, where curves cross, ticks."""

import itertools
import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from book.explorable.figure import Axis, Crossing, Filter, Series
from book.explorable.model import SCRIPT, format_number, linear_ticks, log_ticks, resolve
from book.explorable.still import still
from book.javascript import call
from tests.book.example_figure import figure

RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
THOUSANDS = {"k": 1, "M": 2, "G": 3}


def number(text, thousand=1000):
    """The value of a printed number or tick."""
    text = text.replace(",", "").replace("−", "-")
    if found := re.fullmatch(r"(?:(-?[\d.]+)×)?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", text):
        return float(f"{found[1] or 1}e{found[2].translate(RAISED)}")
    power = THOUSANDS.get(text[-1], 0)
    return float(text[: len(text) - bool(power)]) * thousand**power


def limited():
    """Two attentions at two contexts, and a limit that only one context has."""
    limit = Series({"context": 4096}, {"update": [0, 9], "loss": [2, 2]}, label="Limit")
    return figure(
        x=Axis("update", "Updates"),
        ceilings=[limit],
        controls=[Filter("context", "Context", [1024, 4096, 16384])],
    )


CONTEXTS = ("1024", "4096", "16384")
SHOWN = [list(one) for n in range(3) for one in itertools.combinations(("softmax", "linear"), n)]


@pytest.mark.parametrize(("context", "attention"), list(itertools.product(CONTEXTS, SHOWN)))
def test_controls_choose_among_the_curves_and_absence_is_said(context, attention):
    drawn = limited()
    view = resolve(drawn, {"context": context, "attention": attention})
    measured = {one.keys["attention"] for one in drawn.curves[:3] if one.keys["context"] == context}
    expected = [one for one in drawn.curves[:3] if one.keys["attention"] in measured & {*attention}
                and one.keys["context"] == context]  # fmt: skip
    limits = drawn.curves[3:] if context == "4096" else []
    assert [one.curve for one in view.traces] == expected + limits
    for one in view.traces:
        assert (one.x, one.y) == (one.curve.columns["update"], one.curve.columns["loss"])
    assert view.empty == ("" if expected else "unselected" if measured else "unmeasured")
    absent = [name for name in ("softmax", "linear") if name not in measured]
    assert view.unmeasured == {"attention": absent}


def test_axes_and_spreads_are_those_chosen():
    spread = {"low": [0.9, 0.8], "high": [1.2, 1.1], "ms": [1, 1], "t": [1, 2], "bytes": [3, 4]}
    one = figure(
        series=[Series({"attention": "linear"}, spread)], controls=[], crossing=None,
        x=Axis("t", "Length"), y=Axis("ms", "Time", "ms", low="low", high="high"),
    )  # fmt: skip
    view = resolve(one)
    assert (view.y, view.head) == (one.axes["y"]["ms"], ["Series", "Length", "Time (ms)",
                                                        "from", "to"])  # fmt: skip
    (trace,) = view.traces
    assert (trace.low, trace.high) == (spread["low"], spread["high"])
    assert view.rows == [
        ["Linear attention", "1", "1", "0.9000", "1.200"],
        ["Linear attention", "2", "1", "0.8000", "1.100"],
    ]
    hours = resolve(figure(), {"x": "hours"})
    assert hours.x.column == "hours"
    assert hours.traces[0].x == hours.traces[0].curve.columns["hours"]


@given(st.lists(st.integers(1, 400), min_size=1, max_size=5))
def test_a_table_is_thinned_evenly_and_begins_with_the_first_point(lengths):
    series = [
        Series({"attention": f"a{i}"}, {"update": list(range(n)), "loss": [7] * n})
        for i, n in enumerate(lengths)
    ]
    view = resolve(figure(series=series, x=Axis("update", "U"), controls=[], crossing=None))
    most = max(4, 160 // len(lengths))
    for trace in view.traces:
        rows = [row for row in view.rows if row[0] == trace.curve.name]
        every = math.ceil(len(trace.x) / most)
        assert [int(update) for _, update, _ in rows] == trace.x[::every]
        assert 1 <= len(rows) <= most


@pytest.mark.parametrize("level", [3.4, 3.5, 7.77])
def test_crossings_agree_with_numpy(level):
    read = resolve(figure(), {"level": level}).crossings
    assert read.level == level
    expected = {}
    for one, at, text in read.rows:
        loss, update, hours = (one.columns[name] for name in ("loss", "update", "hours"))
        expected[one.name] = np.interp(-level, -np.array(loss), update)
        assert at["hours"] == pytest.approx(np.interp(-level, -np.array(loss), hours), rel=1e-9)
        assert at["update"] == np.ceil(expected[one.name]), "a level is reached at an update"
        updates, time = format_number(at["update"]), format_number(at["hours"])
        assert text == f"{updates} updates · {time} h"
    ratio = format_number(
        np.ceil(expected["Softmax attention"]) / np.ceil(expected["Linear attention"]), 2
    )
    assert read.sentence.startswith(f"Softmax attention needs {ratio}× the updates and ")
    assert read.sentence.endswith("× the time of linear attention.")


def test_a_level_below_every_curve_is_not_reached():
    read = resolve(figure(), {"level": 0.5}).crossings
    assert all(value is None for _, at, _ in read.rows for value in at.values())
    assert {text for *_, text in read.rows} == {"not reached"}
    assert read.sentence == ""


def test_nothing_is_asked_for_where_nothing_crosses_or_nothing_is_shown():
    assert resolve(figure(crossing=None)).crossings.level is None
    hidden = resolve(figure(), {"attention": []}).crossings
    assert (hidden.level, hidden.rows, hidden.sentence) == (None, [], "")


@given(st.lists(st.floats(0.01, 1e4), min_size=2, max_size=4), st.integers(2, 5))
def test_the_level_at_first_is_the_best_that_all_reach_a_little_eased(best, digits):
    series = [
        Series({"attention": f"a{i}"}, {"update": [0, 1], "loss": [1e5, end]})
        for i, end in enumerate(best)
    ]
    drawn = figure(
        series=series, x=Axis("update", "Updates"), y=Axis("loss", "Loss", digits=digits),
        controls=[], crossing=Crossing("loss", "Loss to reach", ("a0", "a1")),
    )  # fmt: skip
    read = resolve(drawn).crossings
    stored = [one.columns["loss"][1] for one in drawn.curves]
    hardest = max(stored)
    step = 10.0 ** (math.floor(math.log10(hardest)) - digits + 2)
    assert -1e-5 * step <= read.level - hardest <= step * 1.0001
    assert read.level / step == pytest.approx(round(read.level / step), abs=1e-5)
    assert len(read.rows) == len(best)


@given(st.data())
def test_values_between_points_are_those_of_numpy(data):
    xs = sorted(data.draw(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20, unique=True)))
    ys = data.draw(st.lists(st.floats(-1e3, 1e3), min_size=len(xs), max_size=len(xs)))
    x = data.draw(st.floats(-1.1e3, 1.1e3) | st.sampled_from(xs))
    found = call(SCRIPT, "ExplorableModel.interpolate", xs, ys, x)
    if xs[0] <= x <= xs[-1]:
        assert found == pytest.approx(np.interp(x, xs, ys), rel=1e-6, abs=1e-6)
    else:
        assert found is None


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (131072, 4, "131,072"), (3.20714, 4, "3.207"), (12345.6, 4, "12,346"), (-0.5, 2, "−0.50"),
        (0.0000123456, 3, "1.23×10⁻⁵"), (None, 4, "–"), (3.0, 4, "3"), (999.96, 4, "1000"),
        (1e-4, 2, "0.00010"), (-65537.25, 4, "−65,537"), (0, 3, "0"),
        (1e15, 4, "1,000,000,000,000,000"),
    ],
)  # fmt: skip
def test_numbers_read_well(value, digits, text):
    assert format_number(value, digits) == text


@given(st.floats(1e-30, 1e14) | st.integers(1, 10**14), st.integers(2, 6), st.sampled_from([1, -1]))
def test_a_printed_number_is_the_nearest_of_its_digits(value, digits, sign):
    text = format_number(sign * value, digits)
    assert text.startswith("−") == (sign < 0)
    exact = Decimal(value)
    if float(value).is_integer():
        assert text.removeprefix("−") == f"{int(value):,}"
    elif exact >= 10 ** (digits - 1):
        assert text.removeprefix("−") == f"{exact.quantize(Decimal(1), ROUND_HALF_UP):,}"
    else:
        nearest = Context(prec=digits, rounding=ROUND_HALF_UP).plus(exact)
        assert abs(number(text)) == float(nearest)
        assert len(re.sub(r"×.*|^0\.0*|\D", "", text.removeprefix("−"))) == digits


def test_ticks_are_round():
    assert [text for _, text in log_ticks(1024, 131072, 2, 8)] == [
        "1k", "2k", "4k", "8k", "16k", "32k", "64k", "128k",
    ]  # fmt: skip
    assert [text for _, text in log_ticks(0.02, 20000, 10, 8)][:3] == ["0.1", "1", "10"]
    assert [text for _, text in log_ticks(3, 40, 10, 8)] == ["5", "10", "20"]
    assert [text for _, text in linear_ticks(3, 5, 5)] == ["3.0", "3.5", "4.0", "4.5", "5.0"]


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 8))
def test_linear_ticks_are_even_inside_their_span_and_say_their_values(low, span, most):
    high = low + span
    assume(high > low and span > abs(low) * 1e-6)  # else the ticks differ in the sixteenth digit
    ticks = linear_ticks(low, high, most)
    values = [value for value, _ in ticks]
    assert 1 <= len(ticks) <= most + 1
    assert all(low - 1e-6 * span <= value <= high + 1e-6 * span for value in values)
    steps = np.diff(values)
    assert np.allclose(steps, steps[:1], rtol=1e-4)
    for value, text in ticks:
        assert number(text) == pytest.approx(value, abs=1e-9 * span, rel=1e-12)
    assert len({len(text.partition(".")[2]) for _, text in ticks}) == 1, "all with equal decimals"


@given(st.floats(-1e4, 1e4), st.floats(1, 1e6), st.integers(2, 8))
def test_ticks_of_a_count_are_whole(low, span, most):
    ticks = linear_ticks(low, low + span, most, whole=True)
    assert 1 <= len(ticks) <= most + 1
    assert all(value.is_integer() and text == f"{value:,.0f}".replace("-", "−")
               for value, text in ((float(value), text) for value, text in ticks))  # fmt: skip


def test_an_axis_counts_where_its_numbers_are_whole_and_have_no_unit():
    columns = {"head": [0, 8], "loss": [1, 2], "share": [0.5, 1]}
    counts = {}
    for axis in (Axis("head", "Head"), Axis("loss", "Loss", "nats"), Axis("share", "Share")):
        drawn = figure(
            series=[Series({"attention": "softmax"}, {"n": [0.25, 0.5], **columns})],
            x=Axis("n", "n"), y=axis, controls=[], crossing=None,
        )  # fmt: skip
        counts[axis.column] = resolve(drawn).counts["y"]
        assert resolve(drawn).counts["x"] is False
        texts = re.findall(r"<text[^>]*>([^<]*)</text>", still(drawn))
        assert counts[axis.column] == ("2" in texts and "2.0" not in texts), texts
    assert counts == {"head": True, "loss": False, "share": False}


@given(st.floats(1e-6, 1e6), st.floats(1.5, 1e9), st.sampled_from([2, 10]), st.integers(2, 8))
def test_log_ticks_are_powers_inside_their_span_and_say_their_values(low, ratio, base, most):
    high = low * ratio
    ticks = log_ticks(low, high, base, most)
    assert len(ticks) <= most
    for value, text in ticks:
        assert low * 0.99999 <= value <= high * 1.00001
        if value >= 1e-3:  # below, digits of powers of two are cut
            assert number(text, 1024 if base == 2 else 1000) == pytest.approx(value, rel=0.1)
        leading = value / base ** math.floor(math.log(value, base) + 1e-9)
        steps = (1, 2, 5) if base == 10 and high / low < 100 else (1,)
        assert any(leading == pytest.approx(step) for step in steps)


@pytest.mark.parametrize("ends", [(5, 5), (5, 4)])
def test_ticks_refuse_a_span_without_length(ends):
    with pytest.raises(Exception, match=f"linearTicks: expected low < high, got {ends[0]}, "):
        linear_ticks(*ends, 5)
    with pytest.raises(Exception, match="logTicks: expected 0 < low <= high, got 0, 1"):
        log_ticks(0, 1, 10, 5)
