"""A figure's page: its controls, table and data, its still picture, and its face in a notebook."""

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest
from bs4 import BeautifulSoup

from book.explorable import page as explorable_page
from book.explorable import palette
from book.explorable.figure import (
    Axis,
    Choice,
    Filter,
    Provenance,
    Series,
    Toggle,
)
from book.explorable.still import still
from tests.book.example_figure import curve, figure, html_of


@pytest.mark.parametrize(("count", "element"), [(4, "fieldset"), (5, "select")])
def test_many_quantities_are_a_list_and_no_rows_of_buttons(count, element):
    columns = {f"c{i}": [1, 2] for i in range(count)}
    drawn = figure(
        series=[Series({"attention": "softmax"}, {"update": [0, 1], **columns})],
        x=Axis("update", "Updates"), y=Choice("Show", [Axis(c, c.upper()) for c in columns]),
        controls=[], crossing=None,
    )  # fmt: skip
    (control,) = html_of(drawn).select("[data-control=y]")
    assert (control if control.name == element else control.select_one(element)) is not None


def test_a_long_legend_names_what_is_drawn_and_folds_the_rest():
    layers = ["softmax", "linear", "taylor", "rnn", "aft-full", "rwkv", "s4", "s6", "delta"]
    default = ["linear", "s6", "delta"]
    drawn = figure(
        id="layers", controls=[Toggle("attention", "Layer", default=default)], crossing=None,
        series=[curve(layer) for layer in layers],
    )  # fmt: skip
    control = html_of(drawn).select_one("[data-control=attention]")
    rest = control.select_one("details")
    assert rest.summary.text == "More layers"
    folded = [one["value"] for one in rest.select("input")]
    names = [one["value"] for one in control.select("input")]
    assert sorted(names) == sorted(layers)
    assert len(names) - len(folded) == 7
    assert not {*folded} & {*default}
    for kept in (names[:7], folded):
        assert kept == sorted(kept, key=palette.names().index)
    assert control.select_one("input[value=s6]").find_parent("label").svg["color"] == "var(--s6)"


@pytest.mark.parametrize(
    ("mark", "shapes"),
    [("line", ["path"]), ("line+dot", ["path", "circle"]), ("dot", ["circle"]), ("bar", ["path"])],
)
def test_a_swatch_is_a_piece_of_what_it_names(mark, shapes):
    columns = {"n": [1, 2], "loss": [2, 1], "task": ["a", "b"]}
    limits = [] if mark == "bar" else [Series({}, columns, label="limit")]
    drawn = figure(
        mark=mark, x=Axis("n", "x"), y=Axis("task" if mark == "bar" else "loss", "y"),
        series=[Series({"who": one, "by": by}, columns) for one in "ab" for by in "cd"],
        color="who", dash="by", controls=[], crossing=None, ceilings=limits,
    )  # fmt: skip
    legend = html_of(drawn).select_one(".explorable-legend")
    found = {one.find_parent(["label", "li"]).get_text(): one for one in legend.select("svg")}
    parts = {name: [part.name for part in one.find_all(True)] for name, one in found.items()}
    expected = {"a": shapes, "b": shapes, "c": shapes, "d": shapes}
    assert parts == expected | ({"limit": ["path"]} if limits else {})
    square, line = "M1 1h8v8H1Z", "M0 5H22"
    outlines = {name: one.path and one.path["d"] for name, one in found.items()}
    assert outlines.pop("limit", line) == line
    assert {*outlines.values()} == {{"bar": square, "dot": None}.get(mark, line)}
    told_apart = {"bar": "fill", "dot": "d"}.get(mark, "stroke-dasharray")
    if mark != "dot":
        assert found["c"].path.get(told_apart) != found["d"].path.get(told_apart)


def test_settings_stand_above_a_plot_and_below_it_its_legend_caption_and_data():
    drawn = figure(
        caption="**It falls.** *Slowly*, at first.",
        controls=[
            Toggle("attention", "Attention"),
            Filter("context", "Context", [1024, 4096]),
        ],
    )
    soup = html_of(drawn)
    parts = [part.get("class", [part.name])[-1] for part in soup.figure.find_all(recursive=False)]
    assert [part for part in parts if part not in ("noscript", "script")] == [
        "explorable-message", "explorable-settings", "explorable-frame", "explorable-legend",
        "explorable-crossing", "figcaption",
    ]  # fmt: skip
    assert soup.figcaption.p.decode_contents() == "<em>Slowly</em>, at first."
    named = soup.find(id=soup.figure["aria-labelledby"])
    assert named.get_text() == "It falls."
    assert soup.figcaption.select_one(".explorable-tools")
    (control,) = soup.select(".explorable-legend [data-control]")
    assert control["data-control"] == "attention"


def test_a_caption_without_a_message_names_its_figure():
    soup = html_of(figure(caption="It **falls**."))
    assert not soup.select(".explorable-message")
    assert soup.find(id=soup.figure["aria-labelledby"]).get_text() == "It falls."


def test_page_has_picture_and_table_before_any_script():
    soup = html_of(figure())
    assert soup.select_one(".explorable-plot svg")
    assert soup.select_one(".explorable-plot")["aria-label"] == "Two falling curves."
    heads = [head.text for head in soup.select("thead th")]
    assert heads == ["Series", "Updates", "Loss (nats per token)"]
    assert soup.select_one("tbody td:last-child").text == "9"


def test_two_figures_of_one_name_are_refused():
    explorable_page._shown.clear()
    explorable_page.page(figure())
    with pytest.raises(ValueError, match="'headline' twice"):
        explorable_page.page(figure())


@pytest.mark.parametrize(
    ("caption", "marked"),
    [
        ("*a* `x<y` & **b**", "<em>a</em> <code>x&lt;y</code> &amp; <strong>b</strong>"),
        ("<b>[t](#u)</b>", '&lt;b&gt;<a href="#u">t</a>&lt;/b&gt;'),
        ("`a*b*c` 2 * 3 * 4", "<code>a*b*c</code> 2 * 3 * 4"),
        ("[x](a_(b)) *y*", '<a href="a_(b)">x</a> <em>y</em>'),
        ("*a **b** c*", "<em>a <strong>b</strong> c</em>"),
    ],
)
def test_captions_are_marked_up_and_escaped(caption, marked):
    assert explorable_page.inline(caption) == marked


@pytest.mark.parametrize("name", ["</script>", "<!--<script>"])
def test_data_cannot_close_its_script_nor_swallow_the_page(name):
    named = Series({"attention": name}, {"update": [1, 2], "hours": [1, 2], "loss": [1, 2]})
    drawn = figure(series=[named], controls=[], crossing=None)
    written = explorable_page.json_script(explorable_page.payload(drawn))
    inside = written.removeprefix('<script type="application/json">').removesuffix("</script>")
    assert "<" not in inside
    assert json.loads(inside)["curves"][0]["keys"] == {"attention": name}


def test_provenance_is_one_line_said_once():
    records = [
        Provenance("H100", "abc1234", day, "python -m experiments run", f"results/{day}.json")
        for day in ("2025-11-20", "2025-11-21")
    ]
    text = html_of(figure(provenance=records)).select_one(".figure-provenance").text
    assert text == (
        "H100 · abc1234 · 2025-11-20 to 2025-11-21 · python -m experiments run · "
        "2025-11-20, 2025-11-21"
    )


def test_the_files_of_many_runs_fold_below_their_number():
    def written(count):
        told = "H100", "abc1234", "2025-11-20", "python -m experiments run"
        records = [Provenance(*told, f"results/{i}.json") for i in range(count)]
        return html_of(figure(provenance=records)).select_one(".figure-provenance")

    assert written(3).name == "p"
    folded = written(43)
    assert (folded.name, folded.get("open")) == ("details", None)
    assert folded.summary.text == "From 43 stored runs · H100 · 2025-11-20"
    links = folded.select("summary ~ p a")
    assert [link["href"] for link in links] == [f"results/{i}.json" for i in range(43)]
    assert not folded.summary.select("a")


@pytest.mark.parametrize("mark", ["line", "line+dot", "dot", "bar"])
def test_still_is_well_formed_and_themed_by_the_page(mark):
    names = {"task": ["Copy", "Recall"], "score": [0.9, 0.4], "lo": [0.8, 0.3], "hi": [1, 0.5]}
    if mark == "bar":
        drawn = figure(mark=mark, series=[Series({"attention": "s4"}, names)], controls=[],
                       crossing=None, x=Axis("score", "Score", low="lo", high="hi"),
                       y=Axis("task", "Task"))  # fmt: skip
    else:
        drawn = figure(mark=mark)
    svg = still(drawn)
    ElementTree.fromstring(svg)
    color = "s4" if mark == "bar" else "softmax"
    assert f"var(--{color})" in svg
    assert not re.search(r"#[0-9a-f]{6}\b", svg, re.I), "a colour that no theme changes"
    assert "<style" not in svg
    assert len(svg) < 30_000


def test_still_prints_every_digit_of_a_tick():
    """Coordinates are rounded to a tenth; 0.01 beside an axis once became 0."""
    low = Series({"attention": "linear"}, {"update": [0, 1, 2], "loss": [0.01, 0.012, 0.015]})
    small = figure(
        series=[low], y=Axis("loss", "Loss"), x=Axis("update", "Updates"),
        controls=[], ceilings=[], crossing=None, color="attention", dash=None,
    )  # fmt: skip
    assert re.findall(r">(0\.01\d*)<", still(small))


def test_still_takes_the_colours_of_a_theme():
    assert palette.colour("linear", "dark") in still(figure(), theme="dark")


def test_a_notebook_shows_the_page_and_is_told_of_this_computer():
    drawn = figure()
    live, again = drawn.live(), figure().live()
    assert live.html == explorable_page.html(drawn)
    assert live.library == again.library, "a megabyte, once a kernel"
    drawn.add_computer(
        Series({"context": 1024}, {"update": [0, 900], "hours": [0, 2], "loss": [9, 3.2]})
    )
    assert "This computer" in live.html
    assert "This computer" not in again.html


def test_display_is_html_in_the_book_and_a_widget_in_a_notebook(monkeypatch):
    explorable_page._shown.clear()
    monkeypatch.setenv("BOOK_STATIC", "1")
    assert figure()._repr_mimebundle_()["text/html"].startswith("<figure")
    monkeypatch.delenv("BOOK_STATIC")
    data, _ = figure()._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data


def test_payload_holds_each_column_once():
    document = explorable_page.payload(figure())
    updates = {one["columns"]["update"] for one in document["curves"]}
    assert len(updates) == 1


def test_lines_of_nearly_one_colour_differ_in_their_dashes():
    names = ("linear", "softmax", "gated")
    made = figure(id="alike", series=[curve(name) for name in names], crossing=None)
    dashes = {one.keys["attention"]: one.dash for one in made.curves}
    assert palette.alike("linear", "gated")
    assert dashes["linear"] == dashes["softmax"] == ()
    assert dashes["gated"]
    legend = BeautifulSoup(explorable_page.page(made), "html.parser").select(
        '[data-control="attention"] path'
    )
    assert [path.has_attr("stroke-dasharray") for path in legend] == [False, False, True]
