"""Guarded sentences of the chapter on state spaces."""

from ..figures.lib import tasks
from ..figures.relatives.synthetic_tasks import Score, score
from ..figures.state_spaces import scan_speed
from ..figures.state_spaces.copying_tasks import newer, older
from . import every

SELECTING = "selective copying"


def by_older(task: str, model: str) -> Score:
    """Score of a model that the older plan trained."""
    return score(older(task).get(model, ()))


def selected(model: str) -> float:
    """Share of selective copying that a model of the newer plan answers right."""
    return score(newer(SELECTING).get(model, ())).mean


VERDICTS = {
    "one learning rate and one seed so far": tasks.is_one_rate_and_seed,
    "S4 and S4D copy: {glue:text}`older_copying_s4`": lambda: every(
        by_older("copying", name).low > 0.95 for name in ("s4", "s4d")
    ),
    "None of these runs had solved selective copying when it stopped": lambda: every(
        by_older(SELECTING, name).high < 0.995 for name in ("s4", "s4d", "s6")
    ),
    "S6, GLA, the delta rule and softmax solve selective copying": lambda: every(
        selected(name) > 0.985 for name in ("s6", "gla", "delta", "softmax")
    ),
    "whose state never fades, comes close": lambda: 0.95 < selected("linear") < 0.985,
    "the newer has one rate and one seed": tasks.is_one_rate_and_seed,
    "other rates may give them more": lambda: every(
        selected(name) < 0.9 for name in ("gated", "mamba")
    ),
    "a tree takes {glue:text}`scan_tree` the time of a scan in order": lambda: every(
        scan_speed.ratio(run, "tree", "steps") > 1 for run in scan_speed.measured()
    ),
}
