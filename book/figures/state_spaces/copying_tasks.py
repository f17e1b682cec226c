"""Copying and selective copying: scores of layers, for each training plan separately."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from ..lib import tasks
from ..lib.format import in_words, percent
from ..lib.records import NotMeasuredError, Record, learned
from ..lib.seeds import how_many_seeds
from ..lib.tables import Missing, Table
from ..lib.tasks import Kind, at_best_rates, in_order, kind_of, label, of_usual_size, with_range
from ..relatives.synthetic_tasks import EXPERIMENT, score

TASKS = ("copying", "selective copying")
COMPARED = {"s4", "s4d", "s6"}  # layers that the chapter is about

Runs = dict[str, list[Record]]  # by model, a seed each


def older(task: str) -> Runs:
    """Runs whose learning rate a short probe chose."""
    found: dict[Kind, list[Record]] = defaultdict(list)
    for run in learned(EXPERIMENT):
        if run["complete"] and run["config"]["task"] == task:
            found[kind_of(run)].append(run)
    return of_usual_size(found)


def newer(task: str) -> Runs:
    """Runs of the plan that trains every rate in full."""
    return of_usual_size(at_best_rates(task))


PLANS: dict[str, Callable[[str], Runs]] = {"older plan": older, "newer plan": newer}


def least(task: str) -> float:
    """The least share right of a seed of any layer, by the newer plan. Raises NotMeasuredError."""
    shares = [score(runs).low for model, runs in newer(task).items() if model != "none"]
    if not shares:
        raise NotMeasuredError(f"{tasks.EXPERIMENT}: no {task}")
    return min(shares)


def scores() -> Table | Missing:
    """Scores of the newer plan's layers, S4 and S4D, at both tasks in both plans."""
    columns = {f"{task}, {plan}": of(task) for task in TASKS for plan, of in PLANS.items()}
    columns = {title: runs for title, runs in columns.items() if runs}
    if not columns:
        return Missing(tasks.EXPERIMENT)
    shown = COMPARED.union(*map(newer, TASKS))
    cells = [
        [label(name), *(_share(runs.get(name, ())) for runs in columns.values())]
        for name in in_order(shown)
    ]
    return Table(["layer", *columns], cells)


def _share(runs: Iterable[Record]) -> str:
    """Share right, ± half of its range over several seeds."""
    try:
        return with_range(score(runs))
    except NotMeasuredError:
        return "–"


def numbers() -> dict[str, str]:
    """Numbers for the chapter on state spaces."""

    def config(runs: Runs) -> dict:
        """Configuration of the runs of one plan. Raises NotMeasuredError."""
        for first, *_ in runs.values():
            return first["config"]
        raise NotMeasuredError(EXPERIMENT)

    told = {
        f"older_selective_{model}": lambda model=model: _share(
            older("selective copying").get(model, ())
        )
        for model in sorted(COMPARED)
    }
    told |= {
        f"selective_{model}": lambda model=model: with_range(
            score(newer("selective copying").get(model, ()))
        )
        for model in ("softmax", "delta", "s6", "linear", "gla", "gated", "mamba")
    }
    told |= {
        f"copying_{model}": lambda model=model: with_range(score(newer("copying").get(model, ())))
        for model in ("s4", "s4d")
    }
    told |= {
        f"selective_{first}_{other}": lambda first=first, other=other: tasks.lead(
            "selective copying", first, other
        ).signed(0)
        for first in ("s6", "delta")
        for other in ("linear", "softmax")
    }
    return in_words(
        copying_least=lambda: percent(least("copying")),
        older_updates=lambda: f"{config(older('copying'))['updates']:,}",
        older_seeds=lambda: how_many_seeds(score(older("selective copying").get("s4", ())).seeds),
        task_updates=lambda: f"{config(newer('selective copying'))['updates']:,}",
        task_solved=lambda: f"{100 * config(newer('selective copying'))['solved']:g}%",
        **told,
    )
