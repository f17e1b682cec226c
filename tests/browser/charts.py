"""Charts as a test declares them, and what it reads of one that is drawn."""

from pathlib import Path

import numpy as np
from playwright.sync_api import Page, expect

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
from book.theme import head

BOOK = Path(__file__).resolve().parents[2] / "book"
SCRIPTS = [Path(name).stem for name in head.SCRIPTS_WITH['<figure class="explorable figure-frame"']]
DARK_PAGE = "html[data-theme=dark] { color: #ced6dd; background: #14181e }"


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
            Toggle("attention", "Attention"),
        ],
        "ceilings": [
            Series({"context": 4096}, {"update": [0, 1180], "hours": [0, 0.6], "loss": [2, 2],
                                       "perplexity": [8, 8]}, label="Entropy")
        ],
        "crossing": Crossing("loss", "Loss to reach", compare=("softmax", "linear")),
        "provenance": [Provenance("H100", "abc1234", "2025-11-21", "python -m experiments run",
                                  "results/headline.json")],
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
        controls=[Toggle("attention", "Attention")],
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


# A press is drawn by a timer set in the next frame; this one is set after it, so fires after it.
AFTER_DRAWING = """() => new Promise((done) =>
    requestAnimationFrame(() => setTimeout(done)))"""


def move_pointer(page: Page, x: float, y: float) -> None:
    """A reader's move, in two steps: a Chromium may report a page's first as one of no distance."""
    page.mouse.move(x, y, steps=2)


def plot(page: Page, name: str):
    """The plotly element of a figure, once it is drawn."""
    page.locator(f"#{name}").scroll_into_view_if_needed()
    move_pointer(page, 3, 3)  # until then the still picture stands
    drawn = page.locator(f"#{name} .js-plotly-plot")
    expect(drawn.locator(".main-svg").first).to_be_attached()
    page.evaluate(AFTER_DRAWING)
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
