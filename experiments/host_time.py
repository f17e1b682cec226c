"""What a call of the kernels costs before a GPU begins: checks, plan, operator, launches.

Needs no GPU: the kernels are compiled for Hopper, their arguments are bound and looked up as for
a launch, and the launch itself does nothing. Beside each call stands an operator of the same
arguments and results that only makes room for the results, so what torch asks of any operator
can be told from what is ours. All calls of all cases take turns: a computer that slows down for
some seconds slows all alike, and the medians are of the same moments.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch

from lsa import linear_attention

from .harness.bench.timing import TIMING, measure_in_turns
from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import PASS, Tables, append, table

TABLES = {
    "rows": table(
        call=("name", "`linear_attention`, or `empty`: an operator that only makes room"),
        **PASS,
        width=("features", "K = V"),
        feature_map=("name", "through which q and k go as they are loaded"),
        normalized=("yes or no", "whether the sum is divided by the normaliser"),
        launches=("launches", "of kernels in one call"),
        **TIMING,
    ),
}
PASSES = ("forward", "forward+backward")
ROUNDS = 250  # a case: the sixteen take twenty seconds, for a shared computer's speed varies


def runs(kind: str, smoke: bool) -> list[Run]:
    """One run; none where there is no compiler, or a GPU that would find what is compiled."""
    if not find_spec("triton") or kind != "cpu":
        return []
    config = {
        "arch": 90,
        "dtype": "bfloat16",
        "batch": 1,
        "length": 128,
        "heads": 12,
        "widths": [64] if smoke else [64, 128],
        "feature_maps": ["identity"] if smoke else ["identity", "elu_plus_one"],
        "seed": 0,
    }
    return [Run("host_time", f"sm{config['arch']}", config, 4)]


def calls(
    config: dict[str, Any], width: int, feature_map: str, normalize: bool, backward: bool
) -> dict[str, Callable[[], Any]]:
    """A call of linear attention and one of the empty operator, with gradients or without."""
    from .harness.bench.hosting import empty_operator

    shape = (config["batch"], config["length"], config["heads"], width)
    dtype = getattr(torch, config["dtype"])
    q, k, v, do = (torch.zeros(shape, dtype=dtype) for _ in range(4))
    for x in (q, k, v):
        x.requires_grad_(backward)
    options = ("chunked", 0, normalize, width**-0.5, 1e-6, feature_map, False, False)

    def attention() -> torch.Tensor:
        return linear_attention(q, k, v, normalize=normalize, feature_map=feature_map)

    def empty() -> torch.Tensor:
        return empty_operator()(q, k, v, None, None, None, *options)[0]

    found = {"linear_attention": attention, "empty": empty}
    if backward:
        return {
            name: lambda call=call: torch.autograd.grad(call(), (q, k, v), do)
            for name, call in found.items()
        }
    return {name: torch.no_grad()(call) for name, call in found.items()}


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """One run, as `plan.Experiment` asks."""
    from lsa.attention.triton.tuning.gpu import HOPPER, planned_for

    from .harness.bench.hosting import launches_replaced

    tables: Tables = {}
    cases = [
        (width, feature_map, normalize, pass_name)
        for width in config["widths"]
        for feature_map in config["feature_maps"]
        for normalize in (False, True)
        for pass_name in PASSES
    ]
    with planned_for(HOPPER), launches_replaced(config["arch"]) as launched:
        made: dict[str, Callable[[], Any]] = {}
        facts: dict[str, dict[str, Any]] = {}
        for i, (width, feature_map, normalize, pass_name) in enumerate(cases):
            for name, call in calls(
                config, width, feature_map, normalize, pass_name != "forward"
            ).items():
                before = len(launched)
                call()
                key = f"{i} {name}"
                made[key] = call
                facts[key] = {
                    "call": name,
                    "pass": pass_name,
                    "width": width,
                    "feature_map": feature_map,
                    "normalized": "yes" if normalize else "no",
                    "launches": len(launched) - before,
                }
            session.show(i + 1, len(cases), f"width {width}, {pass_name}")
        timings = measure_in_turns(made, torch.device("cpu"), most=ROUNDS * len(cases))
        for key, timing in timings.items():
            append(tables, "rows", facts[key] | timing.columns)
    return Outcome(tables)


EXPERIMENT = Experiment(
    "host_time", "what a call of the kernels costs on the host", TABLES, runs, perform
)
