"""Guarded sentences of the chapter on state spaces."""

from ..figures.lib import tasks
from ..figures.relatives.synthetic_tasks import by_layer, score, share
from ..figures.state_spaces import scan_build, scan_speed
from . import every

SELECTING = "selective copying"

VERDICTS = {
    "Without †: one learning rate and one seed so far": tasks.is_one_rate_and_seed,
    "Copying asks for fixed delays, and S4 and S4D have them": lambda: all(
        score(by_layer("copying").get(name, [])).low > 0.95 for name in ("s4", "s4d")
    ),
    "On selective copying, where delays change, they answer": lambda: all(
        share(SELECTING, name) < 0.4 for name in ("s4", "s4d")
    ),
    "S6, GLA, the delta rule and softmax solve selective copying": lambda: all(
        share(SELECTING, name) > 0.985 for name in ("s6", "gla", "delta", "softmax")
    ),
    "Linear attention, whose state never fades, comes close": lambda: (
        share(SELECTING, "linear") > 0.95
    ),
    "at this rate; other rates may rank them otherwise": lambda: all(
        share(SELECTING, name) < 0.9 for name in ("gated", "mamba")
    ),
    "On Ampere and Hopper the compiler spills nothing": lambda: scan_build.spilled() == 0,
    "a tree takes {glue:text}`scan_tree` the time of a scan in order": lambda: every(
        scan_speed.ratio(run, "tree", "steps") > 1 for run in scan_speed.measured()
    ),
}
