"""Copying and selective copying: scores of layers at their best learning rates."""

from __future__ import annotations

from collections.abc import Iterable

from ..lib import tasks
from ..lib.format import in_words, percent
from ..lib.records import NotMeasuredError, Record, need
from ..lib.tables import Missing, Table
from ..lib.tasks import at_best_rates, in_order, label, of_usual_size, score, with_range

COPYING, SELECTIVE = TASKS = ("copying", "selective copying")

Runs = dict[str, list[Record]]  # by model, a seed each


def runs_of(task: str) -> Runs:
    """Runs of each layer at its best learning rate."""
    return of_usual_size(at_best_rates(task))


def least(task: str) -> float:
    """The least share right of a seed of any layer. Raises NotMeasuredError."""
    shares = [score(runs).low for model, runs in runs_of(task).items() if model != "none"]
    return min(need(shares, f"{tasks.EXPERIMENT}: no {task}"))


def scores() -> Table | Missing:
    """Scores of all layers at both tasks."""
    columns = {task: runs for task in TASKS if (runs := runs_of(task))}
    if not columns:
        return Missing(tasks.EXPERIMENT)
    cells = [
        [label(name), *(_share(runs.get(name, ())) for runs in columns.values())]
        for name in in_order(set().union(*columns.values()))
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
    told = {
        f"selective_{model}": lambda model=model: with_range(
            score(runs_of(SELECTIVE).get(model, ()))
        )
        for model in ("softmax", "delta", "s4", "s4d", "s6", "linear", "gated", "mamba")
    }
    told |= {
        f"selective_{first}_{other}": lambda first=first, other=other: tasks.lead(
            SELECTIVE, first, other
        ).signed(0)
        for first in ("s6", "delta")
        for other in ("linear", "softmax")
    }
    told |= {
        f"selective_s6_{other}": lambda other=other: tasks.lead(SELECTIVE, "s6", other).spread(0)
        for other in ("s4", "s4d")
    }

    def config() -> dict:
        """Configuration of the runs. Raises NotMeasuredError."""
        return need([*runs_of(SELECTIVE).values()], tasks.EXPERIMENT)[0][0]["config"]

    return in_words(
        copying_least=lambda: percent(least(COPYING)),
        copying_none=lambda: with_range(score(runs_of(COPYING).get("none", ()))),
        task_updates=lambda: f"{config()['updates']:,}",
        task_solved=lambda: f"{100 * config()['solved']:g}%",
        **told,
    )
