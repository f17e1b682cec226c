"""Errors of results and gradients against float64, case by case."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from typing import Any

import torch
from torch import Tensor

from lsa import LinearState, linear_attention
from lsa.attention.feature_maps import elu_plus_one

from ..core.files import first_line
from ..core.plan import Outcome, Session
from ..core.tables import append, table

TABLES = {
    "rows": table(
        mode=("name", "of computation"),
        batch=("sequences", "B"),
        length=("tokens", "T"),
        heads=("heads", "H"),
        width=("features", "K, of a key"),
        values=("features", "V, of a value"),
        normalize=("yes or no", "whether the sum of the weights divides"),
        map=("name", "the feature map; `identity`: q and k are mapped already"),
        states=("yes or no", "whether a state goes in and the last one comes out"),
        decay=("yes or no", "whether the state fades, by a number of every token and head"),
        tensor=(
            "name",
            "a result or a gradient: `o`, `S`, `z`, `dq`, `dk`, `dv`, `dS`, `dz`, `dg`; or "
            "`rounded`: the exact o in the type of the inputs, which no kernel could improve on",
        ),
        error=("relative RMS", "of the difference from float64"),
    ),
}
START = "spawn"  # CUDA does not survive a fork
# Bounds, as a share of each result's root mean square: half a step of the type, plus the sums'.
BOUNDS = {"float32": 2e-6, "float16": 1e-3, "bfloat16": 3.3e-3}
SIZES = ("batch", "length", "heads", "width", "values")
YES_OR_NO = ("normalize", "states", "decay")
# Options of a case: normalize, map, states, decay.
KINDS = (
    (False, "identity", False, False),
    (True, "identity", True, False),
    (True, "elu_plus_one", False, False),
)
FADING = ((False, "identity", False, True), (True, "elu_plus_one", True, True))
# A case is a shape and a kind: mode, B, T, H, K, V, and normalize, map, states, decay.
Case = tuple[str, int, int, int, int, int, bool, str, bool, bool]
# The number of a case, and its rows, or the exception that prevented them.
Answer = tuple[int, list[dict[str, Any]] | Exception]
# The function that gets the rows of cases: from one that computes a case, the cases and a device.
Answers = Callable[[partial, list[Case], torch.device], Iterable[Answer]]


def relative_rms(found: Tensor, exact: Tensor) -> float:
    """Root mean square of the error over that of the exact values, which are float64."""
    error = (found.double() - exact).square().mean().sqrt()
    return (error / exact.square().mean().sqrt()).item()


def outputs_and_gradients(
    call: Callable[..., Tensor], inputs: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """The output of a call, and the gradient of each input. inputs: the last is the output's."""
    *given, dy = inputs
    leaves = [x.detach().requires_grad_() for x in given]
    y = call(*leaves)
    return y.detach(), *torch.autograd.grad(y, leaves, dy)


def error_rows(
    name: str, tensors: Sequence[str], found: Sequence[Tensor], exact: Sequence[Tensor],
    session: Session,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """A row for each tensor of an implementation; one without a finite error is warned of."""
    for tensor, x, y in zip(tensors, found, exact, strict=True):
        error = relative_rms(x, y)
        if math.isfinite(error):
            yield {"implementation": name, "tensor": tensor, "error": error}
        else:
            session.warn(f"{name}: the error of {tensor} is {error}")


def rows(case: Case, dtype: str, seed: int, device: torch.device) -> list[dict[str, Any]]:
    """The errors of one case in a dtype, against the same function in float64."""
    mode, B, T, H, K, V, normalize, feature_map, states, decay = case
    inputs = _inputs(case, seed, device, getattr(torch, dtype))
    call = partial(_results, mode=mode, normalize=normalize, feature_map=feature_map, states=states)
    found, exact = call(inputs), call({name: x.double() for name, x in inputs.items()})
    where = {"mode": mode, **dict(zip(SIZES, (B, T, H, K, V), strict=True))}
    what = {"normalize": _yes(normalize), "map": feature_map, "states": _yes(states)}
    what["decay"] = _yes(decay)
    found["rounded"], exact["rounded"] = exact["o"].to(found["o"].dtype), exact["o"]
    return [
        {**where, **what, "tensor": name, "error": relative_rms(found[name], exact[name])}
        for name in exact
    ]


def _yes(condition: bool) -> str:
    return "yes" if condition else "no"


def _inputs(case: Case, seed: int, device: torch.device, dtype: torch.dtype) -> dict[str, Tensor]:
    _, B, T, H, K, V, _, feature_map, states, decay = case
    generator = torch.Generator(device).manual_seed(seed)

    def new(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, device=device)

    q, k, v, do = new(B, T, H, K), new(B, T, H, K), new(B, T, H, V), new(B, T, H, V)
    if feature_map == "identity":
        q, k = elu_plus_one(q), elu_plus_one(k)
    inputs = {"q": q.to(dtype), "k": k.to(dtype), "v": v.to(dtype), "do": do.to(dtype)}
    if states:
        inputs |= {"S": new(B, H, K, V).abs(), "z": new(B, H, K).abs()}
        inputs |= {"dS_T": new(B, H, K, V), "dz_T": new(B, H, K)}
    if decay:
        inputs["g"] = -0.3 * torch.rand(B, T, H, generator=generator, device=device)
    return inputs


def _results(
    inputs: dict[str, Tensor], *, mode: str, normalize: bool, feature_map: str, states: bool
) -> dict[str, Tensor]:
    """Every output and every gradient, by name."""
    names = ("q", "k", "v", *(name for name in ("S", "z", "g") if name in inputs))
    leaves = {name: inputs[name].detach().requires_grad_() for name in names}
    options = {"mode": mode, "normalize": normalize, "feature_map": feature_map}
    options["log_decay"] = leaves.get("g")
    q, k, v = (leaves[name] for name in ("q", "k", "v"))
    if states:
        first = LinearState(leaves["S"], leaves["z"])
        o, last = linear_attention(q, k, v, initial_state=first, return_state=True, **options)
        outputs = {"o": o, "S": last.S, "z": last.z}
        weights = [inputs[name] for name in ("do", "dS_T", "dz_T")]
    else:
        outputs = {"o": linear_attention(q, k, v, **options)}
        weights = [inputs["do"]]
    gradients = torch.autograd.grad([*outputs.values()], [*leaves.values()], weights)
    named = {f"d{name}": x for name, x in zip(leaves, gradients, strict=True)}
    return {name: x.detach() for name, x in (outputs | named).items()}


def in_processes(
    work: Callable[[Case], list[dict[str, Any]]], cases: list[Case], count: int, *, fresh: bool
) -> Iterator[Answer]:
    """The answers of `count` processes in parallel, as they come. fresh: one process a case.

    An illegal access breaks a CUDA context for all later calls. In a process of its own it costs
    only its own case.
    """
    tasks = 1 if fresh and START == "spawn" else None
    with ProcessPoolExecutor(count, get_context(START), max_tasks_per_child=tasks) as pool:
        at = {pool.submit(work, case): i for i, case in enumerate(cases)}
        try:
            for one in as_completed(at):
                error = one.exception()
                yield at[one], error if isinstance(error, Exception) else one.result()
        finally:
            pool.shutdown(cancel_futures=True)


def compared(config: dict[str, Any], session: Session, answers: Answers) -> Outcome:
    """Compute all cases of a type. Errors above their bounds are warned of, and stored too."""
    tables = session.go_on()
    done = cases_of(tables.get("rows", {}))
    cases = [case for case in config["cases"] if tuple(case) not in done]
    work = partial(rows, dtype=config["dtype"], seed=config["seed"], device=session.device)
    bound, missed = BOUNDS[config["dtype"]], 0
    for i, (which, answer) in enumerate(answers(work, cases, session.device)):
        case = f"{cases[which]} in {config['dtype']}"
        problem = first_line(answer) if isinstance(answer, Exception) else ""
        found = [] if isinstance(answer, Exception) else answer
        over = [f"{row['tensor']} {row['error']:.1e}" for row in found if not row["error"] <= bound]
        if problem:
            session.warn(f"{case}: {problem}")
        if over:
            session.warn(f"{case}: beyond {bound:g}: {', '.join(over)}")
        missed += bool(over or problem)
        for row in found:
            if math.isfinite(row["error"]):
                append(tables, "rows", row)
        session.save(tables)
        note = f"{missed} cases beyond {bound:g}"
        session.show(len(config["cases"]) - len(cases) + i + 1, len(config["cases"]), note)
        if session.out_of_time():
            return Outcome(tables, complete=False)
    return Outcome(tables)


def cases_of(columns: Mapping[str, list]) -> set[tuple]:
    """The cases that have rows."""
    shapes = [columns.get(name, []) for name in ("mode", *SIZES)]
    whether = {name: [x == "yes" for x in columns.get(name, [])] for name in YES_OR_NO}
    kinds = [whether["normalize"], columns.get("map", []), whether["states"], whether["decay"]]
    return {*zip(*shapes, *kinds, strict=True)}
