"""What a chart shows: curves, bars, names, tables and readings."""

import csv
import io
import json
from itertools import combinations
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import expect

from book.explorable import palette
from book.explorable.figure import (
    MARKS,
    Axis,
    Choice,
    Explorable,
    Filter,
    Series,
    Toggle,
)
from book.explorable.model import resolve
from book.explorable.page import html
from tests.browser.charts import headline, plot, radio, speed, tasks, traces
from tests.browser.pages import CHAPTER_PAGES, soup_of


def test_theme_switch_recolours_what_is_drawn(show):
    page = show(headline(), theme="light")
    plot(page, "headline")
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        stroke = page.locator("#headline .scatterlayer .js-line").first
        expect(stroke).to_have_css("stroke", css_rgb(palette.colour("softmax", theme)))
        colours = {one["name"]: one["color"] for one in traces(page, "headline")}
        assert colours["Softmax attention"] == palette.colour("softmax", theme)


def confusable(spec):
    """Names of two curves that some setting shows together in one style and nearly one colour."""
    filters = [one["name"] for one in spec["controls"] if one["kind"] != "check"]
    for one, other in combinations(spec["curves"], 2):
        together = all(
            one["keys"].get(name) == other["keys"].get(name)
            for name in filters
            if name in one["keys"] and name in other["keys"]
        )
        near = one["color"] != other["color"] and palette.alike(one["color"], other["color"])
        if together and near and one["dash"] == other["dash"]:
            yield one["name"], other["name"]


@pytest.mark.parametrize("page", CHAPTER_PAGES)
def test_no_two_curves_shown_together_differ_in_nearly_nothing(built_book, page):
    for figure in soup_of(built_book, page).select("figure.explorable"):
        spec = json.loads(figure.select_one('script[type="application/json"]').string)
        assert set(confusable(spec)) == set(), figure["id"]


SWATCHES = """(list, place) => [...list.querySelectorAll(place)].map((one) =>
    [one.textContent, one.querySelector("svg").outerHTML])"""


@pytest.mark.parametrize("mark", MARKS)
def test_names_beside_a_figure_have_the_swatches_of_its_legend(show, mark):
    columns = {"n": [1, 2, 3], "loss": [3, 2, 1], "task": ["i", "j", "k"]}
    of = {
        "mark": mark, "x": Axis("n", "x"), "y": Axis("task" if mark == "bar" else "loss", "y"),
        "series": [Series({"layer": one}, columns) for one in ("s4", "s6")],
    }  # fmt: skip
    page = show(Explorable(id="of", caption="c", alt="a", color="layer", **of), width=375)
    plot(page, "of")
    figure = page.locator("#of")
    named = figure.evaluate(SWATCHES, ".explorable-names li")
    assert len(named) == 2
    assert named == figure.evaluate(SWATCHES, ".explorable-legend .figure-choice")


def css_rgb(color):
    return "rgb({}, {}, {})".format(*(int(color[i : i + 2], 16) for i in (1, 3, 5)))


def test_csv_holds_every_number(show):
    figure = headline()
    page = show(figure)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    assert download.value.suggested_filename == "headline.csv"
    rows = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text("utf-8"))))
    expected = [
        (one.name, one.keys["context"], *(one.columns[name][i] for name in one.columns))
        for one in figure.curves
        for i in range(len(one.columns["loss"]))
    ]
    found = [
        (row["series"], row["context"],
         *(float(row[name]) for name in ("update", "hours", "loss", "perplexity")))
        for row in rows
    ]  # fmt: skip
    assert found == expected


def test_table_follows_the_controls(show):
    figure = headline()
    page = show(figure)
    page.get_by_text("Table", exact=True).click()
    lines = page.locator("#headline tr")
    cells = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    first = resolve(figure)
    expect(lines).to_have_count(1 + len(first.rows))  # the table is filled after the press
    assert lines.evaluate_all(cells) == [first.head, *first.rows]
    radio(page, "Time").check(force=True)
    expect(page.get_by_role("columnheader", name="Time (h)")).to_be_visible()
    page.get_by_role("checkbox", name="Softmax attention").uncheck()
    expect(page.get_by_role("rowheader", name="Softmax attention")).to_have_count(0)


def test_what_was_not_measured_is_said_and_never_drawn(show):
    page = show(headline())
    plot(page, "headline")
    expect(radio(page, "65,536 (not measured yet)")).to_be_disabled()
    radio(page, "16,384").check(force=True)
    expect(page.get_by_role("checkbox", name="Linear attention (not measured yet)")).to_be_visible()
    page.get_by_role("checkbox", name="Softmax attention").uncheck()
    expect(page.get_by_text("Nothing is selected")).to_be_visible()
    expect(page.locator("#headline .explorable-crossing")).to_be_hidden()


def test_an_empty_combination_names_itself(show):
    figure = headline(
        series=[
            Series({"attention": "softmax", "scale": scale, "context": context},
                   {"update": [0, 1], "loss": [9, 3]})
            for scale, context in (("nano", 1024), ("nano", 4096), ("124M", 1024))
        ],
        x=Axis("update", "Updates"), y=Axis("loss", "Loss"), ceilings=[], crossing=None,
        controls=[Filter("scale", "Model"), Filter("context", "Context", kind="select")],
    )  # fmt: skip
    page = show(figure)
    plot(page, "headline")
    radio(page, "124M").check(force=True)
    page.get_by_label("Context").select_option("4096")
    expect(page.get_by_text("Not measured yet: Model 124M, Context 4,096")).to_be_visible()
    page.get_by_label("Context").select_option("1024")
    expect(page.get_by_text("Not measured yet: Model")).to_be_hidden()


def test_crossing_is_read_off_live(show):
    figure = headline()
    page = show(figure)
    plot(page, "headline")
    answer = page.locator("#headline .explorable-answer")
    built = BeautifulSoup(html(figure), "html.parser").select_one(".explorable-answer")
    assert answer.text_content() == built.get_text()
    page.get_by_label("Loss to reach, typed").fill("4.5")
    page.keyboard.press("Enter")
    expect(answer).to_have_attribute("aria-live", "polite")
    read = resolve(figure, {"level": 4.5}).crossings
    for curve, _, reached in read.rows:
        expect(answer).to_contain_text(f"{curve.name} {reached}")
    expect(answer).to_contain_text(read.sentence)
    expect(page.locator("#headline .explorable-level")).to_be_visible()
    page.get_by_role("slider", name="Loss to reach").press("Home")
    expect(answer).to_contain_text("Linear attention not reached")


def test_points_are_read_where_they_were_measured(show):
    page = show(speed(), tasks())
    plot(page, "speed")
    page.locator("#speed .explorable-cursor").hover(position={"x": 30, "y": 40})
    box = page.locator("#speed .explorable-values")
    expect(box).to_contain_text("1,024 tokens")
    expect(box).to_contain_text("Softmax attention1.016 ms")
    plot(page, "tasks")
    page.locator("#tasks .explorable-cursor").hover(position={"x": 30, "y": 5})
    expect(page.locator("#tasks .explorable-values")).to_contain_text("S60.9000 accuracy")


def test_bars_on_a_log_axis_stand_on_its_lower_end(show):
    """They once stood on 0, where a log axis has no place: its ticks had no end."""
    series = [
        Series({"layer": who}, {"task": ["Copy", "Recall"], "count": [n, 100 * n], "share": [1, 2]})
        for who, n in (("s4", 3), ("s6", 70))
    ]  # fmt: skip
    figure = Explorable(
        id="bars", caption="Counts.", alt="Bars.", mark="bar", series=series,
        x=Choice("Show", [Axis("share", "Share"), Axis("count", "Count", log=10)]),
        y=Axis("task", "Task"), color="layer",
    )  # fmt: skip
    page = show(figure)
    plot(page, "bars")
    radio(page, "Count").check(force=True)
    drawn = plot(page, "bars")
    assert drawn.evaluate("one => one.layout.xaxis.range[0]") == 0
    lengths = drawn.evaluate(
        "one => [...one.querySelectorAll('.bars .point path')].map(p => p.getBBox().width)"
    )
    assert len(lengths) == 4
    assert min(lengths) > 5


def test_bars_of_a_second_kind_are_hollow(show):
    columns = {"task": ["Copy", "Recall"], "share": [40, 70]}
    figure = Explorable(
        id="bars", caption="Shares.", alt="Bars.", mark="bar",
        series=[Series({"layer": "s6", "from": one}, columns) for one in ("measured", "predicted")],
        x=Axis("share", "Share"), y=Axis("task", "Task"), color="layer", dash="from",
        controls=[Toggle("from", "From")],
    )  # fmt: skip
    drawn = plot(show(figure), "bars")
    filled = "one => [...one.querySelectorAll('.bars .point path')].map(p => p.style.fillOpacity)"
    assert drawn.evaluate(filled) == ["1", "1", "0", "0"]


def test_lines_carry_their_names_where_there_is_room(show):
    wide = plot(show(headline()), "headline")
    names = "one => one.layout.annotations.map(a => a.text)"
    assert wide.evaluate(names) == [
        "Loss (nats per token)",
        "Softmax attention",
        "Linear attention",
    ]
    narrow = plot(show(headline(), width=375), "headline")
    assert narrow.evaluate(names) == ["Loss (nats per token)"]


def test_names_that_would_leave_the_lines_no_room_stand_in_the_legend(show):
    level = {"update": [0, 1180], "hours": [0, 0.6], "loss": [2, 2], "perplexity": [8, 8]}
    limit = Series({}, level, label="the loss of a model that counts letters, " * 2)
    page = show(headline(ceilings=[limit]))
    drawn = plot(page, "headline")
    assert drawn.evaluate("one => one.layout.annotations.length") == 1
    expect(page.locator("#headline .explorable-limits")).to_be_visible()


def test_a_limit_is_named_only_where_it_is_drawn(show):
    limit = Series({}, {"update": [0, 1180], "hours": [0, 0.6], "loss": [2, 2]}, label="Entropy")
    for column, named in (("loss", 1), ("perplexity", 0)):
        page = show(headline(ceilings=[limit]), width=375, fragment=f"#headline:y={column}")
        plot(page, "headline")
        assert page.locator("#headline .explorable-limits:visible").count() == named


def test_a_name_steps_aside_for_a_line_and_for_no_name_elsewhere(show):
    """The first line ends where the second goes on; their names stand far from each other."""
    ends = {"s4": ([0, 30], [3, 1]), "s6": ([0, 100], [1, 1]), "rnn": ([0, 30], [2, 2])}
    figure = Explorable(
        id="ends", caption="Lines end.", alt="Three lines.", color="layer",
        x=Axis("update", "Updates"), y=Axis("loss", "Loss"),
        series=[Series({"layer": one}, {"update": x, "loss": y}) for one, (x, y) in ends.items()],
    )  # fmt: skip
    away = """one => {
        const { height, margin, yaxis, annotations } = one.layout, [low, high] = yaxis.range;
        const inner = height - margin.t - margin.b, at = (y) => (y - low) / (high - low);
        const ends = { S4: 1, S6: 1, RNN: 2 };
        return Object.fromEntries(annotations.filter(({ text }) => text in ends)
            .map(({ text, y }) => [text, Math.round(Math.abs(y - at(ends[text])) * inner)]));
    }"""
    found = plot(show(figure), "ends").evaluate(away)
    assert found.pop("S4") in range(8, 17)
    assert found == {"S6": 0, "RNN": 0}
