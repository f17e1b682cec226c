"""Compare results and gradients of every mode with float64, on the device at hand.

The first run on a GPU: what is wrong need not be timed. The cases are few and far apart: widths
that a tile divides and that it does not, two tokens, a length that nothing divides, a state before
and after, with a feature map and without. On a GPU several processes take them in turn, so that
they compile side by side and leave what they compiled to the runs that follow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lsa import LinearState, linear_attention
from lsa.linear_attention.feature_maps import elu_plus_one

from .harness.errors import relative_rms
from .harness.plan import REST, RIGHT, Experiment, Outcome, Run, Session
from .harness.tables import append, table
from .harness.workers import Answer, first_line, in_parallel

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
            "a result or a gradient: `o`, `S`, `z`, `dq`, `dk`, `dv`, `dS`, `dz`, `dg`",
        ),
        error=("relative RMS", "of the difference from float64"),
    ),
}
# Of the root mean square of each result: half a step of the type, and what sums add to it.
BOUNDS = {"float32": 2e-6, "float16": 1e-3, "bfloat16": 3.3e-3}
WORKERS = 8  # on a GPU; each compiles on a core of its own
SIZES = ("batch", "length", "heads", "width", "values")
YES_OR_NO = ("normalize", "states", "decay")
# A case is a shape and a kind: mode, B, T, H, K, V, and normalize, map, states, decay.
SHAPES = (
    ("chunked", 2, 1000, 4, 64, 64),
    ("chunked", 1, 2049, 3, 128, 128),
    ("chunked", 1, 500, 2, 256, 256),
    ("chunked", 2, 63, 2, 48, 100),
    ("chunked", 1, 2, 2, 64, 64),
    ("attention", 2, 500, 2, 64, 64),
    ("recurrent", 2, 63, 2, 64, 64),
)
KINDS = (
    (False, "identity", False, False),
    (True, "identity", True, False),
    (True, "elu_plus_one", False, False),
)
FADING = ((False, "identity", False, True), (True, "elu_plus_one", True, True))
# What is raced: by mode and width the sum alone, with a state and normaliser, and fading.
FIRST = {("chunked", width, width): (*KINDS[:2], FADING[0]) for width in (64, 128, 256)} | {
    (mode, 64, 64): KINDS[1:2] for mode in ("attention", "recurrent")
}
Case = tuple[str, int, int, int, int, int, bool, str, bool, bool]


def runs(kind: str, smoke: bool) -> list[Run]:
    """A run a type. On a GPU what will be timed comes first, in its type, and the rest late."""
    shapes = SHAPES[4:] if smoke else SHAPES
    cases = [[*shape, *what] for shape in shapes for what in (*KINDS, *FADING)]
    if kind != "cuda":
        return [_run("float32", "float32", cases, RIGHT)]
    first = [[*shape, *what] for shape in shapes for what in FIRST.get((shape[0], *shape[4:]), ())]
    return [
        _run("bfloat16", "bfloat16", first, RIGHT, 60),
        _run("bfloat16-rest", "bfloat16", [case for case in cases if case not in first], REST, 75),
        _run("float32", "float32", cases, REST + 1, 90),
        _run("float16", "float16", cases, REST + 1, 90),
    ]


def _run(
    name: str, dtype: str, cases: list[list], priority: int, expected: float | None = None
) -> Run:
    config = {"dtype": dtype, "cases": cases, "seed": 0}
    return Run("kernel_errors", name, config, priority, expected)


def rows(case: Case, dtype: str, seed: int, device: torch.device) -> list[dict[str, Any]]:
    """The errors of one case, in the dtype named, against the same function in float64."""
    mode, B, T, H, K, V, normalize, feature_map, states, decay = case
    inputs = _inputs(case, seed, device, getattr(torch, dtype))
    call = partial(_results, mode=mode, normalize=normalize, feature_map=feature_map, states=states)
    found, exact = call(inputs), call({name: x.double() for name, x in inputs.items()})
    where = {"mode": mode, **dict(zip(SIZES, (B, T, H, K, V), strict=True))}
    what = {"normalize": _yes(normalize), "map": feature_map, "states": _yes(states)}
    what["decay"] = _yes(decay)
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


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """All cases of a type; what misses its bound is a warning, and stored like the others."""
    tables = session.go_on()
    done = _cases_of(tables.get("rows", {}))
    cases = [case for case in config["cases"] if tuple(case) not in done]
    work = partial(
        rows, dtype=config["dtype"], seed=config["seed"], device=session.device
    )  # fmt: skip
    bound, missed = BOUNDS[config["dtype"]], 0
    for i, (which, answer) in enumerate(_answers(work, cases, session.device)):
        case, found = f"{cases[which]} in {config['dtype']}", answer.value or ()
        over = [f"{row['tensor']} {row['error']:.1e}" for row in found if not row["error"] <= bound]
        if answer.problem:
            session.warn(f"{case}: {answer.problem}")
        if over:
            session.warn(f"{case}: beyond {bound:g}: {', '.join(over)}")
        missed += bool(over or answer.problem)
        for row in found:
            if math.isfinite(row["error"]):
                append(tables, "rows", row)
        session.save(tables)
        note = f"{missed} cases beyond {bound:g}"
        session.show(len(config["cases"]) - len(cases) + i + 1, len(config["cases"]), note)
        if session.out_of_time():
            return Outcome(tables, complete=False)
    return Outcome(tables)


def _cases_of(columns: Mapping[str, list]) -> set[tuple]:
    """The cases of which there are rows."""
    shapes = [columns.get(name, []) for name in ("mode", *SIZES)]
    whether = {name: [x == "yes" for x in columns.get(name, [])] for name in YES_OR_NO}
    kinds = [whether["normalize"], columns.get("map", []), whether["states"], whether["decay"]]
    return {*zip(*shapes, *kinds, strict=True)}


def _answers(
    work: partial, cases: list[Case], device: torch.device
) -> Iterable[tuple[int, Answer]]:
    """The number of each case, and its rows or why there are none.

    A case that breaks off must not keep the others from theirs.
    """
    if device.type == "cuda":
        yield from in_parallel(work, cases, device, WORKERS)
        return
    for i, case in enumerate(cases):
        try:
            answer = Answer(work(case))
        except Exception as error:
            answer = Answer(problem=first_line(error))
        yield i, answer


EXPERIMENT = Experiment(
    "kernel_errors", "results and gradients against float64, before timing", TABLES, runs, perform
)
