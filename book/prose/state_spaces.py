"""Guarded sentences of the chapter on state spaces."""

from ..figures.lib import tasks
from ..figures.state_spaces import induction
from ..figures.state_spaces.copying_tasks import COPYING, SELECTIVE, least, runs_of
from . import every, is_above, is_undecided


def selected(model: str) -> tasks.Share:
    """Share of selective copying."""
    return tasks.score(runs_of(SELECTIVE).get(model, ()))


def width(model: str) -> float:
    """The range of that score over seeds."""
    found = selected(model)
    return found.high - found.low


VERDICTS = {
    "Every layer copies": lambda: least(COPYING) > 0.95,
    "Selective copying separates S6 from S4 and S4D": lambda: every(
        is_above(tasks.lead(SELECTIVE, "s6", other)) for other in ("s4", "s4d")
    ),
    "updates, and neither had solved it. The tasks": lambda: every(
        selected(name).high < 0.995 for name in ("s4", "s4d")
    ),
    "and the delta rule ({glue:text}`selective_delta`) have the highest means": lambda: (
        min(selected(name).mean for name in ("s6", "delta"))
        > max(selected(name).mean for name in runs_of(SELECTIVE) if name not in ("s6", "delta"))
    ),
    "whose state never fades, are not clearly behind": lambda: every(
        is_undecided(tasks.lead(SELECTIVE, first, other))
        for first in ("s6", "delta")
        for other in ("linear", "softmax")
    ),
    "in selective copying S4 and S6 did best at the largest of three": lambda: every(
        run["config"]["learning_rate"] == max(rate for rate, _ in tasks.trainings(SELECTIVE))
        for name in ("s4", "s6")
        for run in runs_of(SELECTIVE).get(name, ())
    ),
    "power attention and DeltaNet without erasing at the smallest": lambda: every(
        run["config"]["learning_rate"] == min(rate for rate, _ in tasks.trainings(SELECTIVE))
        for name in ("softmax", "gla", "power", "delta-adds")
        for run in runs_of(SELECTIVE).get(name, ())
    ),
    "Induction is trained at 256 tokens, without S4 and S4D": lambda: (
        len(induction.others()) == 10
        and not {"s4", "s4d"} & {*induction.others()}
        and induction.TRAINED_AT == 256
    ),
    "in validation on all three, after at most": lambda: every(
        run["tables"]["end"]["ending"] == ["solved"]
        for name in induction.others()
        for run in induction.by_layer().get(name, ())
    ),
    "vary most between seeds": lambda: (
        {"gated", "mamba"} == {*sorted(runs_of(SELECTIVE), key=width)[-2:]}
    ),
    "at least {glue:text}`induction_least` at its best rate, and the control guesses": lambda: (
        induction.least() > 0.9
        and tasks.score(
            induction.by_layer().get(induction.CONTROL, ()), length=induction.TRAINED_AT
        ).high
        < 0.15
    ),
    "Beyond that length most fail": lambda: every(
        2 * sum(max(map(induction.right, induction.by_layer()[name])) < 0.9 for name in names)
        > len(names)
        for names in [induction.others()]
    ),
    "No other layer does": lambda: every(
        min(induction.at_any_rate(name)) < min(induction.at_any_rate("softmax"))
        for name in induction.others()
        if name != "softmax"
    ),
    "DeltaNet reaches {glue:text}`task_solved` there in all nine runs": lambda: (
        [run["tables"]["end"]["ending"] for run in tasks.runs_of_model(induction.TASK, "delta")]
        == 9 * [["solved"]]
    ),
    "among them every seed of S6 and linear attention": lambda: every(
        run["config"]["join"] == [0, 160, 240]
        and [case["questions"] for case in run["config"]["cases"]] == [16, 4, 1]
        and induction.updates(run) <= run["config"]["join"][-1]
        for name in ("s6", "linear")
        for run in induction.by_layer().get(name, ())
    ),
}
