"""Figures as a reader meets them: a page from file:// in a real browser, no network."""

# The book's modules are imported as a chapter imports them, from its own folder.
# ruff: noqa: E402

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

BOOK = Path(__file__).resolve().parents[2] / "book"
sys.path.insert(0, str(BOOK))

from book.explorable import page as explorable_page
from book.explorable import palette
from book.explorable.figure import (
    Axis,
    Choice,
    Crossing,
    Explorable,
    Filter,
    Provenance,
    Series,
    Toggle,
)
from book.explorable.numbers import format_number, linear_ticks, log_ticks
from book.explorable.view import crossings, resolve

PLOTLY = BOOK / "theme" / "vendor" / "plotly-basic-4.1.1" / "plotly-basic.min.js"
SCRIPTS = (
    "explorable-model",
    "explorable-draw",
    "explorable-cursor",
    "explorable-pin",
    "explorable-view",
    "explorable",
)
DARK_PAGE = "html[data-theme=dark] { color: #ced6dd; background: #14181e }"

pytestmark = pytest.mark.browser


def loss_curve(attention, context, points=60):
    update = np.arange(points) * 20
    slow = 2.0 if attention == "softmax" and context > 1024 else 0.5
    loss = 3 + 0.1 * (attention == "linear") + 6 * np.exp(-update / 200)
    columns = {
        "update": update,
        "hours": update * slow / 3600,
        "loss": loss,
        "perplexity": np.exp(loss),
    }
    return Series({"attention": attention, "context": context}, columns, source=f"{attention}.json")


def headline(name="headline", **changes):
    given = {
        "caption": "Linear attention learns *less* per update.",
        "alt": "Loss falls for both.",
        "series": [
            loss_curve("linear", 1024),
            loss_curve("softmax", 1024),
            loss_curve("linear", 4096),
            loss_curve("softmax", 4096),
            loss_curve("softmax", 16384),
        ],
        "x": Choice("Horizontal axis", [Axis("update", "Updates"), Axis("hours", "Time", "h")]),
        "y": Choice(
            "Vertical axis",
            [
                Axis("loss", "Loss", "nats per token"),
                Axis("perplexity", "Perplexity", log=10),
            ],
        ),
        "color": "attention",
        "controls": [
            Filter("context", "Context", [1024, 4096, 16384, 65536]),
            Toggle("attention", "Attention", link="attention"),
        ],
        "ceilings": [
            Series({"context": 4096}, {"update": [0, 1180], "hours": [0, 0.6], "loss": [2, 2],
                                       "perplexity": [8, 8]}, label="Entropy")
        ],
        "readouts": [Crossing("loss", "Loss to reach", compare=("softmax", "linear"))],
        "provenance": [Provenance("H100", "abc1234", "2025-11-21", "python -m experiments run")],
    }  # fmt: skip
    return Explorable(id=name, **given | changes)


def speed(name="speed"):
    lengths = [1024 * 2**i for i in range(8)]
    cost = {
        "softmax": [1 + (t / 8192) ** 2 for t in lengths],
        "linear": [t / 1024 for t in lengths],
    }
    series = [
        Series({"attention": who}, {"context": lengths, "ms": ms, "lo": [0.9 * m for m in ms],
                                    "hi": [1.1 * m for m in ms]})
        for who, ms in cost.items()
    ]  # fmt: skip
    return Explorable(
        id=name, caption="Time grows.", alt="Two curves cross.", mark="line+dot", series=series,
        x=Axis("context", "Context", "tokens", log=2),
        y=Axis("ms", "Step", "ms", log=10, low="lo", high="hi"), color="attention",
        controls=[Toggle("attention", "Attention", link="attention")],
    )  # fmt: skip


def tasks(name="tasks"):
    series = [
        Series({"layer": who}, {"task": ["Copying", "Recall"], "accuracy": [a, a / 2]})
        for who, a in (("s4", 0.5), ("s6", 0.9), ("rnn", 0.4))
    ]
    return Explorable(
        id=name, caption="S6 recalls.", alt="Bars.", mark="bar", series=series,
        x=Axis("accuracy", "Accuracy"), y=Axis("task", "Task"), color="layer",
    )  # fmt: skip


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Open a page of the given figures; the test fails if it asks for anything not local."""
    troubles, contexts = [], []
    engine = [f"explorable/{name}" for name in ("explorable.css", *(f"{s}.js" for s in SCRIPTS))]
    for path in (*(BOOK / name for name in engine), BOOK / "theme/static/palette.css", PLOTLY):
        shutil.copy(path, tmp_path)

    def open_one(*figures, fragment="", theme="light", width=1280, before="", **options):
        explorable_page._shown.clear()
        body = "".join(explorable_page.page(one) for one in figures)
        scripts = "".join(f'<script defer src="{name}.js"></script>' for name in SCRIPTS)
        (tmp_path / "page.html").write_text(
            f'<!doctype html><html lang="en" data-theme="{theme}"><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width"><title>Figures</title>'
            '<link rel="stylesheet" href="palette.css"><link rel="stylesheet" '
            f'href="explorable.css"><style>body {{ max-width: 760px; margin: 0 auto; padding: 16px;'
            f"font-family: sans-serif }} {DARK_PAGE}</style>"
            f'<main><h1 id="top">Figures</h1>{before}{body}</main>{scripts}</html>',
            encoding="utf-8",
        )
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on(
            "request",
            lambda request: (
                request.url.startswith(("file:", "data:", "blob:"))
                or troubles.append(f"request to {request.url}")
            ),
        )
        page.on("requestfailed", lambda request: troubles.append(f"failed: {request.url}"))
        page.on("pageerror", lambda error: troubles.append(error.message))
        page.on("console", lambda message: troubles.append(message.text))
        page.goto(f"file://{tmp_path}/page.html{fragment}")
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert not troubles, "\n".join(troubles)


def plot(page: Page, name: str):
    """The plotly element of a figure, once it is drawn."""
    page.locator(f"#{name}").scroll_into_view_if_needed()
    page.mouse.move(3, 3)  # a reader who moves: until then the still picture stands
    drawn = page.locator(f"#{name} .js-plotly-plot")
    expect(drawn.locator(".main-svg").first).to_be_attached(timeout=30_000)
    return drawn


def traces(page: Page, name: str):
    drawn = plot(page, name)
    return drawn.evaluate(
        "one => one.data.map(t => ({name: t.name, color: (t.line || t.marker).color, x: t.x}))"
    )


def axis_title(page: Page, name: str) -> str:
    return plot(page, name).evaluate("one => one.layout.xaxis.title.text")


def radio(page: Page, label: str):
    return page.get_by_role("radio", name=label, exact=True)


def reachable(figure):
    """Every state of the controls, each toggle's subsets included, at three levels."""
    choices = []
    for control in figure.controls:
        values = list(control.options)
        if control.kind == "check":
            values = [
                subset
                for size in range(len(values) + 1)
                for subset in itertools.combinations(values, size)
            ]
        choices.append([(control.name, value) for value in values])
    for state in itertools.product(*choices):
        for level in (None, 3.3, 0.1):
            yield dict(state) | {"level": level}


def test_both_languages_show_the_same_in_every_state(show):
    figure = headline()
    states = list(reachable(figure))
    page = show(figure)
    said = page.evaluate(
        """states => {
          const model = ExplorableModel;
          const text = document.querySelector('#headline script').textContent;
          const spec = model.decode(JSON.parse(text));
          return states.map((state) => {
            const view = model.resolve(spec, state);
            const { level, rows, sentence } = model.crossings(spec, view, state);
            return {
              x: view.x.caption, y: view.y.caption, empty: view.empty, unmeasured: view.unmeasured,
              traces: view.traces.map((t) => [t.curve.name, t.curve.color, t.x, t.y]),
              level, sentence, rows: rows.map(({ curve, at }) => [curve.name, at]),
            };
          });
        }""",
        states,
    )
    assert len(states) == 2 * 2 * 4 * 4 * 3
    for state, found in zip(states, said, strict=True):
        view = resolve(figure, state)
        level, rows, sentence = crossings(figure, view, state)
        expected = {
            "x": view.x.caption,
            "y": view.y.caption,
            "empty": view.empty,
            "unmeasured": view.unmeasured,
            "traces": [[t.curve.name, t.curve.color, t.x, t.y] for t in view.traces],
            "level": level,
            "sentence": sentence,
            "rows": [[one.name, at] for one, at in rows],
        }
        assert found == expected, state


def test_both_languages_print_the_same_numbers(show):
    numbers = [0, 3, -3, 131072, 3.20714, 12345.6, -0.5, 1.5e-7, 0.00012345, 999.96, 1e-4, 65537.25]
    pairs = [(value, digits) for value in numbers for digits in (2, 3, 4)]
    spans = [(0.02, 20000, 10), (1000, 140000, 2), (3, 40, 10), (1e-6, 1e3, 10), (20, 3e9, 2)]
    lines = [(3, 5, 5), (-2, 9, 6), (0, 0.0123, 4), (0, 10000, 6), (-0.3, 0.3, 3)]
    said = show(headline()).evaluate(
        """([pairs, spans, lines]) => [
          pairs.map(([value, digits]) => ExplorableModel.formatNumber(value, digits)),
          spans.map(([low, high, base]) => ExplorableModel.logTicks(low, high, base, 6)),
          lines.map(([low, high, most]) => ExplorableModel.linearTicks(low, high, most)),
        ]""",
        [pairs, spans, lines],
    )
    assert said[0] == [format_number(value, digits) for value, digits in pairs]
    for found, span in zip(said[1] + said[2], spans + lines, strict=True):
        expected = log_ticks(*span, 6) if span in spans else linear_ticks(*span)
        assert [text for _, text in found] == [text for _, text in expected]
        assert [value for value, _ in found] == pytest.approx([value for value, _ in expected])


@pytest.mark.parametrize("hand", ["mouse", "keyboard"])
def test_updates_become_time(show, hand):
    page = show(headline())
    before = traces(page, "headline")
    assert axis_title(page, "headline") == "Updates"
    if hand == "mouse":
        page.locator("label", has=radio(page, "Time")).click()
    else:
        radio(page, "Updates").focus()
        page.keyboard.press("ArrowRight")
    assert axis_title(page, "headline") == "Time (h)"
    after = traces(page, "headline")
    assert [one["name"] for one in after] == [one["name"] for one in before]
    assert after[0]["x"] != before[0]["x"]
    assert page.url.endswith("#headline:x=hours")


def test_state_is_restored_from_the_hash_and_returns_to_none(show):
    page = show(headline(), fragment="#headline:x=hours&context=4096&attention=softmax&level=4")
    expect(radio(page, "Time")).to_be_checked()
    expect(radio(page, "4,096")).to_be_checked()
    assert {one["name"] for one in traces(page, "headline")} == {"Softmax attention", "Entropy"}
    expect(page.get_by_label("Loss to reach, typed")).to_have_value("4")
    page.evaluate("location.hash = '#headline:'")
    expect(radio(page, "Updates")).to_be_checked()
    radio(page, "Time").check(force=True)
    radio(page, "Updates").check(force=True)
    assert "#" not in page.url


def test_plain_anchors_and_nonsense_leave_figures_alone(show):
    page = show(headline(), fragment="#top")
    plot(page, "headline")
    page.get_by_role("checkbox", name="Linear attention").uncheck()
    assert page.url.endswith("#headline:attention=softmax")
    page.get_by_role("checkbox", name="Linear attention").check()
    page.evaluate("location.hash = '#headline:x=nowhere&context=7&level=%&bogus;:;other:x=1'")
    expect(radio(page, "Updates")).to_be_checked()
    expect(radio(page, "1,024")).to_be_checked()


def test_theme_switch_recolours_what_is_drawn(show):
    page = show(headline(), theme="light")
    plot(page, "headline")
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        stroke = page.locator("#headline .scatterlayer .js-line").first
        expect(stroke).to_have_css("stroke", css_rgb(palette.colour("softmax", theme)))
        colours = {one["name"]: one["color"] for one in traces(page, "headline")}
        assert colours["Softmax attention"] == palette.colour("softmax", theme)


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


def test_without_javascript_there_is_a_picture_and_a_table(show):
    page = show(headline(), java_script_enabled=False)
    expect(page.locator("#headline .explorable-plot svg")).to_be_visible()
    expect(page.locator("noscript p")).to_be_visible()
    expect(page.get_by_role("button", name="Download CSV")).to_be_hidden()
    page.get_by_text("Table", exact=True).click()
    expect(page.get_by_role("cell", name="9", exact=True).first).to_be_visible()


def test_table_follows_the_controls(show):
    page = show(headline())
    page.get_by_text("Table", exact=True).click()
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
        x=Axis("update", "Updates"), y=Axis("loss", "Loss"), ceilings=[], readouts=[],
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
    page.get_by_label("Loss to reach, typed").fill("4.5")
    page.keyboard.press("Enter")
    answer = page.locator("#headline .explorable-answer")
    expect(answer).to_have_attribute("aria-live", "polite")
    reached = {}
    for trace in resolve(figure, figure.default_state()).traces:
        columns = trace.curve.columns
        loss = -np.array(columns["loss"])
        reached[trace.curve.name] = [np.interp(-4.5, loss, columns[x]) for x in ("update", "hours")]
        reached[trace.curve.name][0] = np.ceil(reached[trace.curve.name][0])
        updates, hours = map(format_number, reached[trace.curve.name])
        expect(answer).to_contain_text(f"{trace.curve.name} {updates} updates · {hours} h")
    ratios = np.divide(*reached.values())
    times = " and ".join(
        f"{format_number(ratio, 2)}× the {noun}"
        for ratio, noun in zip(ratios, ("updates", "time"), strict=True)
    )
    expect(answer).to_contain_text(f"Softmax attention needs {times} of linear attention.")
    expect(page.locator("#headline .explorable-level")).to_be_visible()
    page.get_by_role("slider", name="Loss to reach").press("Home")
    expect(answer).to_contain_text("Linear attention not reached")


def test_values_can_be_read_by_keyboard(show):
    page = show(headline())
    plot(page, "headline")
    page.get_by_role("radio", name="Updates").focus()
    cursor = page.get_by_role("slider", name="Read values along updates")
    cursor.focus()
    page.keyboard.press("End")
    last = resolve(headline(), headline().default_state()).traces[0].y[-1]
    said = f"Softmax attention {format_number(last)} nats per token"
    expect(cursor).to_have_attribute("aria-valuetext", re.compile(f"^1,180 updates: .*{said}"))
    box = page.locator("#headline .explorable-values")
    expect(box).to_contain_text(f"{format_number(last)} nats per token")
    page.keyboard.press("ArrowLeft")
    expect(box).to_contain_text("1,168 updates")
    page.keyboard.press("Escape")
    expect(box).to_be_hidden()


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


@pytest.mark.parametrize(("block", "below"), [("start", True), ("end", False)])
def test_a_tap_leaves_the_values_standing_beside_the_plot(show, block, below):
    """On a phone they once covered the upper third of the curves that they were read off."""
    far = '<div style="height: 900px"></div>'
    page = show(headline(), before=far, width=375, has_touch=True, is_mobile=True)
    plot(page, "headline")
    cursor = page.locator("#headline .explorable-cursor")
    values = page.locator("#headline .explorable-values")
    frame = page.locator("#headline .explorable-frame")
    frame.evaluate("(one, block) => one.scrollIntoView({ block })", block)
    height = page.evaluate("document.documentElement.scrollHeight")
    for share in (0.1, 0.45, 0.55, 0.9):
        cursor.tap(position={"x": share * cursor.bounding_box()["width"], "y": 60})
        box, plotted = values.bounding_box(), frame.bounding_box()
        assert 0 <= box["x"] <= 375 - box["width"]
        assert 0 <= box["y"] <= 900 - box["height"]
        top, end = box["y"], box["y"] + box["height"]
        assert top >= plotted["y"] + plotted["height"] - 1 if below else end <= plotted["y"] + 1
    expect(values).to_contain_text(re.compile(r"updates: loss \(nats per token\)Linear attention3"))
    assert page.evaluate("document.documentElement.scrollHeight") == height, "the page moved"
    values.tap()  # it covers what lies under it, and takes no tap through to that
    expect(values).to_be_hidden()


def test_linked_legends_move_together(show):
    page = show(headline(), speed())
    plot(page, "speed")
    page.locator("#headline").get_by_role("checkbox", name="Linear attention").uncheck()
    expect(page.locator("#speed").get_by_role("checkbox", name="Linear")).not_to_be_checked()
    assert {one["name"] for one in traces(page, "speed")} == {"Softmax attention"}
    assert page.url.endswith("#headline:attention=softmax;speed:attention=softmax")


def test_plotly_waits_until_a_reader_comes_near(show):
    page = show(headline(), speed(), before='<div style="height: 4000px"></div>')
    loaded = page.locator("script[src*=plotly]")
    page.mouse.move(3, 3)
    assert loaded.count() == 0, "no figure is near"
    frame = page.locator("#headline .explorable-frame")
    height = frame.bounding_box()["height"]
    plot(page, "headline")
    assert loaded.count() == 1
    assert frame.bounding_box()["height"] == height, "the page moved when the plot came"


@pytest.mark.parametrize("touch", ["pointer", "keyboard", "address"])
def test_a_figure_in_sight_stays_still_until_it_is_touched(show, touch):
    page = show(headline(), fragment="#headline:x=hours" if touch == "address" else "")
    still, drawn = page.locator(".explorable-plot > svg"), page.locator(".js-plotly-plot")
    if touch != "address":
        expect(still).to_be_visible()
        # As a page is told that appears under a resting mouse.
        page.evaluate("dispatchEvent(new PointerEvent('pointermove'))")
        assert page.locator("script[src*=plotly]").count() == 0
    if touch == "pointer":
        page.mouse.move(30, 30)
    if touch == "keyboard":
        radio(page, "Updates").focus()
    expect(drawn).to_be_visible()
    expect(still).to_have_count(0)


def test_bars_on_a_log_axis_stand_on_its_lower_end(show):
    """They once stood on 0, where a log axis has no place: its ticks had no end."""
    series = [
        Series({"layer": who}, {"task": ["Copy", "Recall"], "count": [n, 100 * n], "share": [1, 2]})
        for who, n in (("s4", 3), ("s6", 70))
    ]  # fmt: skip
    figure = Explorable(
        id="bars", caption="Counts.", alt="Bars.", mark="bar", series=series,
        x=Axis("task", "Task"), color="layer",
        y=Choice("Show", [Axis("share", "Share"), Axis("count", "Count", log=10)]),
    )  # fmt: skip
    page = show(figure)
    plot(page, "bars")
    radio(page, "Count").check(force=True)
    drawn = plot(page, "bars")
    assert drawn.evaluate("one => one.layout.yaxis.range[0]") == 0
    heights = drawn.evaluate(
        "one => [...one.querySelectorAll('.bars .point path')].map(p => p.getBBox().height)"
    )
    assert len(heights) == 4
    assert min(heights) > 5


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


@pytest.mark.parametrize("width", [375, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessible_and_never_wider_than_the_screen(show, theme, width):
    figures = [headline(), speed(), tasks()]
    page = show(*figures, theme=theme, width=width)
    for one in figures:
        plot(page, one.id)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page, options={"preload": False}).response["violations"]
    serious = [one["id"] for one in found if one["impact"] in ("serious", "critical")]
    assert not serious, json.dumps(found, indent=1)


def test_targets_are_large_enough_for_a_finger_and_leave_the_plot_the_screen(show):
    page = show(headline(), width=375, has_touch=True, is_mobile=True)
    fold = page.locator("#headline .explorable-more")
    controls = page.locator("#headline .explorable-controls").bounding_box()
    assert (
        controls["height"] <= page.locator("#headline .explorable-frame").bounding_box()["height"]
    )
    chosen = fold.locator(".explorable-chosen")
    expect(chosen).to_contain_text("Vertical axis Loss · Context 1")
    expect(fold.locator("summary")).to_have_css("height", "36px")  # one line, cut where it ends
    fold.locator("summary").press("Enter")
    expect(fold.locator(".explorable-control").last).to_be_visible()
    expect(chosen).to_be_hidden()
    targets = "#headline :is(.explorable-choice, input[type=range], summary, .explorable-csv)"
    for box in (one.bounding_box() for one in page.locator(targets).all()):
        assert box["height"] >= 36


def test_what_folds_on_a_phone_stands_in_the_row_elsewhere(show):
    page = show(headline(), width=1280)
    fold = page.locator("#headline .explorable-more")
    expect(fold.locator("summary")).to_be_hidden()
    fold.locator("input").first.focus()
    for control in fold.locator(".explorable-control").all():
        expect(control).to_be_visible()


def test_a_legend_of_many_names_is_no_taller_than_its_plot(show):
    layers = [name for name in palette.names() if not name.startswith(("other", "this"))][:16]
    figure = Explorable(
        id="many", caption="Layers.", alt="Lines.", color="layer", x=Axis("t", "Length"),
        y=Axis("loss", "Loss"),
        series=[Series({"layer": one}, {"t": [1, 2], "loss": [1, 2]}) for one in layers],
    )  # fmt: skip
    page = show(figure, width=375, has_touch=True, is_mobile=True)
    controls, frame = (
        page.locator(f"#many .explorable-{part}").bounding_box() for part in ("controls", "frame")
    )
    assert controls["height"] <= frame["height"]


def test_plot_follows_its_container(show):
    page = show(headline())
    drawn = plot(page, "headline")
    page.set_viewport_size({"width": 500, "height": 900})
    expect(drawn.locator(".main-svg").first).to_have_attribute("width", "468")
