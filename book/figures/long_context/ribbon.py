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
    "gated": "Mamba-2's decay",
    "delta": "delta rule",
}

# One of the experiment's places, as an example: the passage, the words after it, and those before
# it comes again, by distance.
NOVEL, PLACE = "The Hound of the Baskervilles", 10
PASSAGE = "the tall, austere figure of Holmes standing motionless and gazin"
AFTER = "g after us.\n\nThe journey was a swift and pleasant one, and I"
BEFORE = {
    256: "Dr. Mortimer's spaniel. In a very few ho",
    1024: "inside it the Celtic enthusiasm and pow",
    4096: "Both road and stream wound up through a valley",
    16384: "we are fresh and well, so it is all cheerful once mo",
}

Point = list[float]  # distance, value, low, high


def data() -> HTML | Missing:
    """JSON in a script element for the stage, or a note on what to run if nothing is stored.

    between: for each kind of text between, lines of {color, name, points}; a point is distance,
        value, low and high. `novel` is in thousandths of a nat a byte with the 95% interval;
        `noise` and `pairs` are in percent with the least and the most over seeds.
    example: a passage of the novel, how many there are, and {distance: [words after the passage,
        bytes left out, words before it comes again]}.
    sources: where they come from.
    """
    try:
        between = {"novel": {model: _gains(model) for model in MODELS}}
    except NotMeasuredError:
        return Missing("long_context")
    between |= {kind: _shares(kind) for kind in distant_recall.BETWEEN}
    if not between["noise"]:
        return Missing("made_up_tasks")
    shown = {
        "between": {
            kind: [
                {"color": model, "name": PARTS[model], "points": lines[model]}
                for model in PARTS
                if model in lines
            ]
            for kind, lines in between.items()
        },
        "example": {
            "novel": NOVEL,
            "passage": PASSAGE,
            "places": runs_of("linear", MAIN)[0]["config"]["places"],
            "between": {distance: _between(distance) for distance in BEFORE},
        },
        "sources": [asdict(source) for source in provenance(_runs())],
    }
    return HTML(json_script(shown, id="ribbon-data"))


def _between(distance: int) -> tuple[str, int, str]:
    """Words after the passage, the number of bytes left out, and words before it comes again."""
    before = BEFORE[distance]
    return AFTER, distance - len(PASSAGE) - len(AFTER) - len(before), before


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
