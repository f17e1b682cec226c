"""Compare results and gradients of every mode with float64, on the present device.

This is the first run on a GPU, since wrong kernels need not be timed. The cases are few and varied:
widths that a tile divides and others, two tokens, an indivisible length. All have a state before
and after; some have a feature map. On a GPU several processes take the cases in turn. So they
compile in parallel, and later runs find the compiled kernels.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import torch

from .harness.bench import errors
from .harness.bench.errors import FADING, KINDS, Answer, Case
from .harness.core.plan import Experiment, Outcome, Run, Session
from .priorities import REST, RIGHT

TABLES = errors.TABLES
WORKERS = 8  # on a GPU; each compiles on its own core
SHAPES = (
    ("chunked", 2, 1000, 4, 64, 64),
    ("chunked", 1, 2049, 3, 128, 128),
    ("chunked", 1, 500, 2, 256, 256),
    ("chunked", 2, 63, 2, 48, 100),
    ("chunked", 1, 2, 2, 64, 64),
    ("attention", 2, 500, 2, 64, 64),
    ("recurrent", 2, 63, 2, 64, 64),
)
# Cases that are raced. By mode and width: unnormalised, with a state and normaliser, with decay.
FIRST = {("chunked", width, width): (*KINDS[:2], FADING[0]) for width in (64, 128, 256)} | {
    (mode, 64, 64): KINDS[1:2] for mode in ("attention", "recurrent")
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """A run a type. On a GPU the cases that will be timed come first, in their type."""
    shapes = SHAPES[4:] if smoke else SHAPES
    cases = [[*shape, *what] for shape in shapes for what in (*KINDS, *FADING)]
    if kind != "cuda":
        return [_run("float32", "float32", cases, RIGHT)]
    first = [[*shape, *what] for shape in shapes for what in FIRST.get((shape[0], *shape[4:]), ())]
    return [
        _run("bfloat16", "bfloat16", first, RIGHT),
        _run("bfloat16-rest", "bfloat16", [case for case in cases if case not in first], REST),
        _run("float32", "float32", cases, REST + 1),
        _run("float16", "float16", cases, REST + 1),
    ]


def _run(name: str, dtype: str, cases: list[list], priority: int) -> Run:
    config = {"dtype": dtype, "cases": cases, "seed": 0}
    return Run("kernel_errors", name, config, priority)


def perform(config: dict, session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`: all cases of a type, on the present device."""
    return errors.compared(config, session, _answers)


def _answers(work: partial, cases: list[Case], device: torch.device) -> Iterable[Answer]:
    """Compute cases so that a failing case does not stop the others."""
    if device.type == "cuda":
        yield from errors.in_processes(work, cases, WORKERS, fresh=True)
        return
    for i, case in enumerate(cases):
        try:
            yield i, work(case)
        except Exception as error:
            yield i, error


EXPERIMENT = Experiment(
    "kernel_errors", "results and gradients against float64, before timing", TABLES, runs, perform
)
