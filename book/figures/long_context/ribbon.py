"""Data of the ribbon in `long-context`: the effect of something planted, by distance."""

from __future__ import annotations

from dataclasses import asdict

from IPython.display import HTML

from ...explorable.markup import json_script
from ..lib.records import NotMeasuredError, Record, provenance
from ..lib.tables import Missing
from . import distant_recall
from .long_context import MAIN, MODELS, gains, runs_of

# The lines of the ribbon, and their colours, by their names in the two experiments.
PARTS = {
    "softmax": "softmax (its cache)",
    "linear": "linear (its state)",
    "gated": "gated linear",
    "delta": "delta rule",
}

Point = list[float]  # distance, value, low, high


def data() -> HTML | Missing:
    """JSON in a script element for the stage, or a note on what to run if nothing is stored.

    between: for each kind of text between, lines of {color, name, points}; a point is distance,
        value, low and high. `novel` is in thousandths of a nat a byte with the 95% interval;
        `noise` and `pairs` are in percent with the least and the most over seeds.
    sources: where they come from.
    """
    try:
        between = {"novel": {model: _gains(model) for model in MODELS}}
    except NotMeasuredError:
        return Missing("long_context")
    between |= {kind: _shares(kind) for kind in distant_recall.BETWEEN}
    if not between["noise"]:
        return Missing("distant_recall")
    shown = {
        "between": {
            kind: [
                {"color": model, "name": PARTS[model], "points": lines[model]}
                for model in PARTS
                if model in lines
            ]
            for kind, lines in between.items()
        },
        "sources": [asdict(source) for source in provenance(_runs())],
    }
    return HTML(json_script(shown, id="ribbon-data"))


def _gains(model: str) -> list[Point]:
    """Gain from a repeated passage. Raises NotMeasuredError."""
    return [
        [
            one["bytes"],
            *(round(1000 * one["gain"] + by * 1000 * one["half"], 3) for by in (0, -1, 1)),
        ]
        for one in gains(model, MAIN, "again")
    ]


def _shares(kind: str) -> dict[str, list[Point]]:
    """Questions answered right, by model."""
    lines: dict[str, list[Point]] = {}
    for (model, between, distance), share in sorted(distant_recall.shares().items()):
        if between == kind:
            ends = (share.mean, share.low, share.high)
            lines.setdefault(model, []).append([distance, *(round(100 * x, 1) for x in ends)])
    return lines


def _runs() -> list[Record]:
    runs = [run for model in MODELS for run in runs_of(model, MAIN)]
    return [*runs, *(run for seeds in distant_recall.by_model().values() for run in seeds)]
