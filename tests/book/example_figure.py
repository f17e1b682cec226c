"""A small figure that a test changes as it likes, and the page that it makes."""

import numpy as np
from bs4 import BeautifulSoup

from book.explorable import page as explorable_page
from book.explorable.figure import (
    Axis,
    Choice,
    Crossing,
    Explorable,
    Filter,
    Series,
)


def curve(attention="softmax", context=1024, points=50, **more):
    update = np.arange(points) * 20
    loss = 3 + (attention == "linear") * 0.1 + 6 * np.exp(-update / 300)
    return Series(
        {"attention": attention, "context": context},
        {"update": update, "hours": update * 0.37 / 3600, "loss": loss, **more},
        source=f"{attention}-{context}.json",
    )


def figure(**changes):
    given = {
        "id": "headline",
        "caption": "A finding.",
        "alt": "Two falling curves.",
        "series": [curve("linear"), curve("softmax"), curve("softmax", 4096)],
        "x": Choice("Horizontal axis", [Axis("update", "Updates"), Axis("hours", "Time", "h")]),
        "y": Axis("loss", "Loss", "nats per token"),
        "color": "attention",
        "controls": [Filter("context", "Context", [1024, 4096, 16384])],
        "crossing": Crossing("loss", "Loss to reach", compare=("softmax", "linear")),
    }
    return Explorable(**given | changes)


def html_of(drawn):
    explorable_page._shown.clear()
    return BeautifulSoup(explorable_page.page(drawn), "html.parser")
