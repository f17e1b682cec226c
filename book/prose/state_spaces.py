"""Guarded sentences of the chapter on state spaces."""

from ..figures.lib import tasks
from ..figures.relatives.synthetic_tasks import Score, score
from ..figures.state_spaces import scan_speed
from ..figures.state_spaces.copying_tasks import least, newer, older
from . import every

SELECTING = "selective copying"


def by_older(task: str, model: str) -> Score:
    """Score of a model that the older plan trained."""
    return score(older(task).get(model, ()))


def selected(model: str) -> Score:
    """Score of selective copying by the newer plan."""
    return score(newer(SELECTING).get(model, ()))


def width(model: str) -> float:
    """The range of that score over seeds."""
    found = selected(model)
    return found.high - found.low


VERDICTS = {
    "By the newer plan each layer that it trained copies": lambda: least("copying") > 0.95,
    "This plan has not trained S6 and the Mamba block on copying": lambda: (
        least("copying") > 0 and not {"s6", "mamba"} & newer("copying").keys()
    ),
    "None of these runs had solved selective copying when it stopped": lambda: every(
        by_older(SELECTING, name).high < 0.995 for name in ("s4", "s4d", "s6")
    ),
    "S6 and the delta rule have the highest means at selective copying": lambda: (
        min(selected(name).mean for name in ("s6", "delta"))
        > max(selected(name).mean for name in newer(SELECTING) if name not in ("s6", "delta"))
    ),
    "Linear attention and softmax, without a decay, come close": lambda: (
        min(selected(name).mean for name in ("linear", "softmax")) > 0.9
    ),
    "By seed neither is clearly ahead of these two": lambda: every(
        abs(lead.mean) < (lead.half or 0)
        for lead in (
            tasks.lead(SELECTING, first, other)
            for first in ("s6", "delta")
            for other in ("linear", "softmax")
        )
    ),
    "Mamba-2's decay and the Mamba block vary most between seeds": lambda: (
        {"gated", "mamba"} == {*sorted(newer(SELECTING), key=width)[-2:]}
    ),
    "The newer trains three rates and three seeds in full": lambda: (
        len(tasks.trainings(SELECTING)) == 9
    ),
    "a tree takes {glue:text}`scan_tree` the time of a scan in order": lambda: every(
        scan_speed.ratio(run, "tree", "steps") > 1 for run in scan_speed.measured()
    ),
}
