"""Compare the kernels' arithmetic in bfloat16 with float64, interpreted: no GPU is needed.

Triton's interpreter runs a kernel's programs one after another, on a processor. It rounds where a
tensor core would: the operands of a product to bfloat16, its sum in float32. The plan is the one
for Hopper, as are the segments of a sequence. The interpreter cannot show a GPU's own order of
adding, an approximate exponential, or a race between programs; `kernel_errors` can.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from importlib.util import find_spec
from typing import Any
from unittest import mock

import torch

from .harness.bench import errors
from .harness.bench.errors import FADING, KINDS, Answer, Case
from .harness.core.plan import Experiment, Outcome, Run, Session

TABLES = errors.TABLES
SUM, WITH_STATES, MAPPED = KINDS
SOFTPLUS = (True, "softplus", False, False)
EVERY = (*KINDS, SOFTPLUS, *FADING)
HARDEST = (SUM, MAPPED, FADING[1])
# A single token without a state before it has zero gradient in q: nothing to compare.
ONE_TOKEN = (SUM, WITH_STATES)
# B, T, H, K, V, and the kinds. First lengths; then the widths of fla's tests; then shapes whose dq
# once was too far from float64.
GRID = (
    *((1, T, 1, 64, 64, EVERY) for T in (2, 63, 64, 65, 500, 1000, 4096, 16_384)),
    *((1, T, 1, D, D, HARDEST) for T in (64, 500) for D in (16, 32, 128, 256)),
    (2, 63, 2, 48, 100, EVERY),
    (1, 1, 2, 64, 64, ONE_TOKEN),
    *((*shape, (SUM, MAPPED)) for shape in (
        (2, 500, 4, 60, 60), (2, 1000, 2, 100, 100), (2, 1024, 4, 128, 128),
        (3, 2048, 2, 64, 64), (1, 500, 1, 256, 256),
    )),
    (1, 4096, 2, 64, 64, (MAPPED, SOFTPLUS)),
    (1, 2049, 3, 128, 128, (MAPPED, SOFTPLUS)),
    (1, 131_073, 1, 64, 64, HARDEST),
)  # fmt: skip
SMOKE = ((1, 5, 1, 16, 16, HARDEST),)


def runs(kind: str, smoke: bool) -> list[Run]:
    """One run; none without an interpreter, or with a GPU, on which the kernels would run."""
    if not find_spec("triton") or kind != "cpu":
        return []
    grid = SMOKE if smoke else GRID
    cases = [["chunked", *shape, *what] for *shape, kinds in grid for what in kinds]
    config = {"dtype": "bfloat16", "planned for": "Hopper", "cases": cases, "seed": 0}
    return [Run("interpreted_errors", "bfloat16", config, 3)]


def interpreted(work: partial, case: Case) -> list[dict[str, Any]]:
    """The rows of a case, by kernels instead of plain torch; runs in an interpreting process."""
    from lsa.attention import dispatch
    from lsa.attention.triton.tuning.gpu import HOPPER, planned_for

    def by_kernels(q: torch.Tensor, v: torch.Tensor, scale: float) -> bool:
        return q.dtype != torch.float64  # the reference stays in plain torch

    with planned_for(HOPPER), mock.patch.object(dispatch, "uses_kernels", by_kernels):
        return work(case)


def _answers(work: partial, cases: list[Case], device: torch.device) -> Iterable[Answer]:
    """Compute cases in a process of its own: kernels are interpreted if imported in that mode."""
    with mock.patch.dict(os.environ, TRITON_INTERPRET="1"):
        yield from errors.in_processes(partial(interpreted, work), cases, 1, fresh=False)


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`."""
    return errors.compared(config, session, _answers)


EXPERIMENT = Experiment(
    "interpreted_errors",
    "the kernels' rounding, step by step without a GPU, against float64",
    TABLES,
    runs,
    perform,
)
