"""Data of the stage `race`: softmax and linear attention at every context, means over seeds."""

from __future__ import annotations

from IPython.display import HTML

from ...explorable.figure import Explorable
from ...explorable.markup import json_script
from ..lib.records import NotMeasuredError, mean_curve, need
from ..lib.tables import Missing
from .race import CONTEXTS, OPENS_AT, PAIR, by_model, figure, seconds

DIGITS = 4


def data() -> HTML | Missing:
    """JSON in a script element for the stage, or a note on what to run if a race is missing.

    A list by context: context; updates, after which losses were measured; seconds of an update and
    losses in nats a byte for each model.
    """
    races = []
    for context in CONTEXTS:
        try:
            races.append(_race(context))
        except NotMeasuredError:
            continue
    if not races:
        return Missing("race")
    return HTML(json_script(races, id="race-data"))


def more() -> Explorable | Missing:
    """The whole race, folded below the stage, at the stage's default context."""
    fold = "More: all models, every seed, the table, the sources"
    return figure(fold=fold, context=OPENS_AT)


def _race(context: int) -> dict:
    """The curves at one context, at the updates that both models have. Raises NotMeasuredError."""
    runs = by_model(context)
    need(all(name in runs for name in PAIR), f"race: not both models at {context}")
    curves = {name: mean_curve(runs[name]) for name in PAIR}
    updates = sorted(set.intersection(*(set(curve) for curve in curves.values())))
    return {
        "context": context,
        "updates": updates,
        "seconds": {name: seconds(name, context) for name in PAIR},
        "loss": {name: [round(curves[name][at], DIGITS) for at in updates] for name in PAIR},
    }
