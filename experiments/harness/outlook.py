"""What fits into the time that is left on a lent machine, and what that machine lacks."""

from __future__ import annotations

from .plan import Run

# Beyond the updates that are timed: compiling a model, reading its text, validation. On a GPU.
AROUND_TRAINING = 50.0


def expected(run: Run) -> float | None:
    """About how many seconds a run takes on the device planned for; None where nobody knows."""
    if run.expected is None and run.config.get("train_seconds"):
        return run.config["train_seconds"] + AROUND_TRAINING
    return run.expected


def choose(runs: list[Run], seconds: float) -> Run:
    """The first of the runs that is expected to fit into the seconds left.

    Where none is, the first of them all: some go on later from what they leave, and time that
    nothing is expected to fit into is worth nothing else.
    """
    fitting = (run for run in runs if (expected(run) or float("inf")) <= seconds)
    return next(fitting, runs[0])


def in_words(run: Run) -> str:
    """A run and its minutes, as the plan names it."""
    seconds = expected(run)
    about = "of unknown length" if seconds is None else f"about {seconds / 60:.1f} min"
    return f"{run.experiment} {run.name} ({about})"
