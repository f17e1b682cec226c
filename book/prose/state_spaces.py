"""Of the chapter on state spaces."""

from ..figures.relatives import synthetic_tasks
from ..figures.relatives.synthetic_tasks import by_layer, score
from ..figures.state_spaces import scan_build, scan_speed
from . import every

VERDICTS = {
    "most of the runs stopped before they had solved their task": lambda: (
        synthetic_tasks.unsolved() > 0.5
    ),
    "Copying asks for fixed delays, and S4 and S4D have them": lambda: all(
        score(by_layer("copying").get(name, [])).low > 0.95 for name in ("s4", "s4d")
    ),
    "On Ampere and Hopper the compiler spills nothing": lambda: scan_build.spilled() == 0,
    "a tree takes {glue:text}`scan_tree` the time of a scan in order": lambda: every(
        scan_speed.ratio(run, "tree", "steps") > 1 for run in scan_speed.measured()
    ),
}
