"""A figure in a notebook: the module that anywidget loads, in a bare page with a made-up model."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from book.explorable import notebook, page, palette
from book.explorable.figure import Provenance, Series
from tests.browser.charts import axis_title, headline, plot, radio, traces
from tests.browser.conftest import watch

# As a front end does: import the module's text, and call render with a model and an element.
SHOW = """async ([module, css, html, code]) => {
    const style = document.createElement("style");
    style.textContent = css;
    document.head.append(style);
    const load = () => import(URL.createObjectURL(new Blob([module], { type: "text/javascript" })));
    window.views = [];
    window.asked = 0;
    for (const text of html) {
        const state = { html: text, library: "the library" }, heard = {};
        const library = { get: () => code };
        const model = {
            get: (name) => state[name],
            on: (name, act) => { heard[name] = act; },
            widget_manager: { get_model: async () => { window.asked++; return library; } },
        };
        const el = document.createElement("div");
        const { default: widget } = await load();
        const close = widget.render({ model, el });
        const set = (name, value) => { state[name] = value; heard[`change:${name}`](); };
        window.views.push({ el, close, set });
        document.body.append(el);
    }
}"""
HAS_TITLE = """([i, title]) =>
    window.views[i].el.querySelector(".js-plotly-plot").layout.xaxis.title.text === title"""


@pytest.fixture
def cells(browser: Browser) -> Iterator[Callable[..., Page]]:
    """A page with the figures in it, one view each; nothing in it may ask another host."""
    context = browser.new_context(viewport={"width": 1000, "height": 1400})
    troubles = []

    def open_one(*figures, color="black") -> Page:
        tab = context.new_page()
        watch(tab, troubles, local=("blob:", "about:", "data:"), silent=True)
        tab.set_content(f'<!doctype html><html lang="en"><body style="color: {color}">')
        html = [page.html(figure) for figure in figures]
        code = notebook.PLOTLY.read_text("utf-8")
        tab.evaluate(SHOW, [notebook.module(), notebook.style(), html, code])
        return tab

    yield open_one
    context.close()
    assert not troubles, "\n".join(troubles)


def test_a_figure_in_a_cell_answers_its_controls_and_takes_a_computer(cells):
    stored = Provenance("H100", "abc1234", "2025-11-20", "run", "../results/a.json")
    figure = headline(provenance=[stored])
    tab = cells(figure)
    address = tab.url
    assert axis_title(tab, "headline") == "Updates"
    tab.locator("label", has=radio(tab, "Time")).click()
    assert axis_title(tab, "headline") == "Time (h)"
    assert tab.url == address, "a notebook's address is not the figure's to write"
    tab.get_by_role("checkbox", name="Linear attention").uncheck()
    assert {one["name"] for one in traces(tab, "headline")} == {"Softmax attention"}
    # What lies beside the page lies elsewhere in a notebook.
    expect(tab.locator("figcaption a")).to_have_count(0)
    expect(tab.locator("figcaption")).to_contain_text("JSON")

    here = {"update": [0, 900], "hours": [0, 2], "loss": [9, 3.2], "perplexity": [8103, 24.5]}
    figure.add_computer(Series({"context": 1024}, here))
    tab.evaluate("html => window.views[0].set('html', html)", page.html(figure))
    names = {one["name"] for one in traces(tab, "headline")}
    assert names == {"Softmax attention", "This computer"}
    assert axis_title(tab, "headline") == "Time (h)", "what the reader had set is lost"
    tab.evaluate("window.views[0].close()")


def test_figures_of_a_notebook_share_the_library_but_no_buttons(cells):
    """One figure twice, as in a second view of a notebook."""
    tab = cells(headline(), headline())
    for i in range(2):
        drawn = tab.locator(".explorable-notebook").nth(i).locator(".js-plotly-plot .main-svg")
        expect(drawn.first).to_be_attached()
    assert tab.evaluate("window.asked") == 1
    assert tab.locator("script[src^=blob]").count() == 1
    first, second = (tab.locator(".explorable-notebook").nth(i) for i in range(2))
    first.get_by_role("radio", name="Time").check(force=True)
    expect(second.get_by_role("radio", name="Updates")).to_be_checked()
    tab.wait_for_function(HAS_TITLE, arg=[0, "Time (h)"])
    tab.wait_for_function(HAS_TITLE, arg=[1, "Updates"])


def test_a_figure_takes_the_theme_of_what_is_around_it(cells):
    tab = cells(headline(), color="#e0e0e0")
    plot(tab, "headline")
    root = tab.locator(".explorable-notebook")
    for color, theme in (("#e0e0e0", "dark"), ("rgb(20 20 20)", "light"), ("white", "dark")):
        tab.evaluate("color => { document.body.style.color = color }", color)
        expect(root).to_have_attribute("data-theme", theme)
        colours = {one["name"]: one["color"] for one in traces(tab, "headline")}
        assert colours["Softmax attention"] == palette.colour("softmax", theme)
