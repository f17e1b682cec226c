"""Guarded sentences of the chapter on state spaces."""

from math import inf

from ..figures.lib import tasks
from ..figures.relatives.synthetic_tasks import Score, score
from ..figures.state_spaces import scan_speed
from ..figures.state_spaces.copying_tasks import COPYING, SELECTIVE, least, runs_of
from . import every


def selected(model: str) -> Score:
    """Score of selective copying."""
    return score(runs_of(SELECTIVE).get(model, ()))


def width(model: str) -> float:
    """The range of that score over seeds."""
    found = selected(model)
    return found.high - found.low


VERDICTS = {
    "Every layer copies": lambda: least(COPYING) > 0.95,
    "Selective copying tells them apart": lambda: every(
        (lead := tasks.lead(SELECTIVE, "s6", other)).mean > (lead.half or inf)
        for other in ("s4", "s4d")
    ),
    "Neither had solved the task when it stopped": lambda: every(
        selected(name).high < 0.995 for name in ("s4", "s4d")
    ),
    "S6 and the delta rule have the highest means": lambda: (
        min(selected(name).mean for name in ("s6", "delta"))
        > max(selected(name).mean for name in runs_of(SELECTIVE) if name not in ("s6", "delta"))
    ),
    "By seed neither is clearly behind": lambda: every(
        abs(lead.mean) < (lead.half or 0)
        for lead in (
            tasks.lead(SELECTIVE, first, other)
            for first in ("s6", "delta")
            for other in ("linear", "softmax")
        )
    ),
    "vary most between seeds": lambda: (
        {"gated", "mamba"} == {*sorted(runs_of(SELECTIVE), key=width)[-2:]}
    ),
    "Copying, selective copying and recall now train each rate in full": lambda: every(
        len(tasks.trainings(task)) == 9 for task in (COPYING, SELECTIVE, "recall")
    ),
    "a tree takes {glue:text}`scan_tree` the time of a scan in order": lambda: every(
        scan_speed.ratio(run, "tree", "steps") > 1 for run in scan_speed.measured()
    ),
}
