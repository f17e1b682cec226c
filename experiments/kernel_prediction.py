"""How long the kernels should take on a GPU, written down before one has run them.

Needs no GPU. Every launch of chunked mode is planned and compiled as for an H100. It takes no less
time than its bytes do at the memory's speed, and no less than the instructions of the fullest
multiprocessor, one a scheduler and cycle. It may take as long as its programs do when each warp
waits `DEPENDENT_CYCLES` for every instruction and others fill none of the gaps. A call takes its
launches one after the other. Beside it stands the design that stores the state of every chunk, by
its bytes alone.

Of that account seconds are made, at best and at worst. Kernels come as near to their bound as
fla's published times of large shapes come to their bytes, and from one launch of a CUDA graph to
the next pass two to four microseconds: that is a guess. Called from Python, a call takes no less
than its host, by `host_time`, nor than the graph, and at most one after the other; the launches
themselves are in neither. fla's normaliser is counted as its operations stand in version 0.5.1, at
best at the data sheet's speed. Its host was not timed here, so it has no prediction of calls from
Python. The shapes are those of `kernel_speed`, which measures the same.
"""

from __future__ import annotations

from importlib.util import find_spec
from math import ceil
from typing import Any

import torch

from lsa.cost import PEAKS, design_cost, least_bytes
from lsa.cost.rooflines import DEPENDENT_CYCLES

from .harness.bench.published import LARGE, PUBLISHED
from .harness.bench.shapes import GPT2, LADDER, PASSES, SMALL
from .harness.bench.traffic import traffic
from .harness.core import record
from .harness.core.plan import LATE, Experiment, Outcome, Run, Session
from .harness.core.tables import PASS, Tables, append, table

SHAPE: dict[str, Any] = {
    "batch": ("sequences", "B"),
    "length": ("tokens", "T"),
    "heads": ("heads", "H"),
    "width": ("features", "K = V"),
}
TABLES = {
    "rows": table(
        shapes=("name", "`ladder`: of a published comparison; `gpt2`: GPT-2's heads"),
        **SHAPE,
        normalized=("yes or no", "whether the sum is divided by the normaliser"),
        **PASS,
        launches=("launches", "of kernels in one call"),
        bytes=("B a token and head", "to and from memory by all launches, states and all"),
        memory=("s", "that the bytes take at the data sheet's speed"),
        issue=("s", "that the instructions of the fullest multiprocessor take, one a scheduler "
               "and cycle"),
        pace=("s", "that programs take, one after the other where they queue, each warp waiting "
              "for every instruction"),
        least=("s", "no less: the longer of `memory` and `issue` for each launch, and their sum"),
        paced=("s", "the longest of the three for each launch, and their sum"),
        stored=("s", "the bytes of a design that stores the state of every chunk of 64 tokens, at "
                "the same speed; the sum without a normaliser"),
    ),
    "expected": table(
        implementation=("name", "`ours`; `stored states`: that design as fla has it, normalised by "
                        "fla's own operations"),
        shapes=("name", "as above"),
        **SHAPE,
        normalized=("yes or no", "whether the sum is divided by the normaliser"),
        **PASS,
        launch=("name", "`eager`: called from Python; `graph`: replayed as a CUDA graph"),
        low=("s", "what a call should take at best"),
        high=("s", "and at worst"),
        share_low=("of the limit", "the least bytes' time at the data sheet's speed over `high`"),
        share_high=("of the limit", "the same over `low`"),
    ),
    "assumed": table(
        near=("of the time", "that fla's bytes take of its published times, at least"),
        nearest=("of the time", "the same at most"),
        gap_low=("s", "from one launch of a CUDA graph to the next, at best; a guess"),
        gap_high=("s", "the same at worst"),
    ),
    "hosts": table(
        optional="where `host_time` is stored: the runs from which calls from Python are predicted",
        host=("name", "the processor"),
        record=("name", "the digest of its record"),
    ),
    "sources": table(
        file=("name", "a module of the kernels"),
        digest=("name", "of its code, comments and docstrings aside"),
    ),
}  # fmt: skip
Row = dict[str, Any]
Seconds = tuple[float, float]  # at best and at worst
GPU = "H100 SXM"
GAP = (2e-6, 4e-6)  # s from one launch of a CUDA graph to the next, at best and at worst
STORED_LAUNCHES = {"forward": 2, "forward+backward": 6}  # of the design that stores all states
# What fla's normaliser adds, fla/ops/linear_attn/utils.py in 0.5.1: vectors of d numbers a token,
# read or written, and launches. Forwards the sum of k so far (2), q scaled (2) and times that (3),
# its sum over features (1), o divided (2). Backwards do divided (2), times o (3) and summed (1),
# both factors' gradients (2, 2), the sum of k's from the end (2), and dq and dk added to those of
# the sum itself (3, 3); the other launches are for numbers a token.
NORMALISER_VECTORS = {"forward": 10, "forward+backward": 28}
NORMALISER_LAUNCHES = {"forward": 6, "forward+backward": 21}
SCHEDULERS = 4  # of a multiprocessor; each issues an instruction of one warp a cycle


def runs(kind: str, smoke: bool) -> list[Run]:
    """One run, the same on every device; none where there is no compiler."""
    if not find_spec("triton"):
        return []
    shapes = {"ladder": [SMALL]} if smoke else {"ladder": LADDER, "gpt2": GPT2}
    config = {
        "gpu": GPU,
        "arch": 90,
        "dtype": "bfloat16",
        "shapes": {name: [list(shape) for shape in each] for name, each in shapes.items()},
        "seed": 0,
    }
    return [Run("kernel_prediction", "h100", config, 3 if kind == "cpu" else LATE)]


def launches(shape: list[int], dtype: torch.dtype, normalize: bool, gradients: bool) -> list[Any]:
    """What a call launches, planned for an H100; nothing is run."""
    from lsa.attention.triton.call import Problem
    from lsa.attention.triton.chunked import passes as chunked
    from lsa.attention.triton.tuning.gpu import HOPPER, planned_for

    from .harness.bench.compiling import record_launches

    q, k, v, do = (torch.empty(shape, dtype=dtype, device="meta") for _ in range(4))
    problem = Problem(q, k, v, None, None, shape[3] ** -0.5, 1e-6, normalize, with_z=normalize)

    def call() -> None:
        out = chunked.forward(problem)
        if gradients:
            chunked.backward(problem, out, do, None, None)

    with planned_for(HOPPER):
        return record_launches(call)


def bounds(launched: Any, shape: list[int], arch: int, gpu: str) -> tuple[float, float, float]:
    """s that a launch takes by its bytes, by instructions, and by those of one warp."""
    from lsa.attention.triton.tuning.gpu import HOPPER

    from .harness.bench.compiling import build, loop_length

    (B, T, H, _), peak, slots = shape, PEAKS[gpu], HOPPER.multiprocessors
    arguments = launched.arguments
    memory = traffic(arguments, launched.name) * B * T * H / peak.bytes
    if "L" not in arguments or launched.name.startswith("scan_kernel"):
        return memory, 0.0, 0.0
    built = build(launched, arch)
    # The rounds of the main loop; sums of fewer tokens than L are those of the last segment.
    rounds = ceil(min(arguments["L"], T) / arguments["C"])
    one = loop_length(built.cubin) * rounds / peak.clock
    fullest = ceil(launched.programs / slots)
    queue = ceil(launched.programs / (built.resident * slots))
    issue = one * launched.options["num_warps"] / SCHEDULERS * fullest
    return memory, issue, one * DEPENDENT_CYCLES * queue


def predicted(
    shape: list[int], normalize: bool, gradients: bool, config: dict[str, Any]
) -> dict[str, float | int]:
    """The bounds of a call, and of the design that stores the state of every chunk."""
    B, T, H, D = shape
    peak = PEAKS[config["gpu"]]
    made = launches(shape, getattr(torch, config["dtype"]), normalize, gradients)
    each = [bounds(one, shape, config["arch"], config["gpu"]) for one in made]
    kernels = {one.name.split(":")[0] for one in made}
    design = "one pass" if "one_pass_kernel" in kernels else "three passes"
    forward = next(one.arguments for one in made if one.name == "forward_kernel")
    cut = (forward["G"], forward["L"])
    states = design_cost(design, T, B * H, D, gradients=gradients, cut=cut).states
    of_states = states * B * T * H / peak.bytes
    memory = sum(one[0] for one in each) + of_states
    stored = design_cost("chunk states", T, B * H, D, gradients=gradients).bytes
    return {
        "launches": len(made),
        "bytes": memory * peak.bytes / (B * T * H),
        "memory": memory,
        "issue": sum(one[1] for one in each),
        "pace": sum(one[2] for one in each),
        "least": sum(max(one[:2]) for one in each) + of_states,
        "paced": sum(max(one) for one in each) + of_states,
        "stored": stored * B * T * H / peak.bytes,
    }


def nearness(gpu: str) -> tuple[float, float]:
    """The part of fla's published times of large shapes that its bytes take, least and most."""
    parts = [
        B * T * H * design_cost("chunk states", T, B * H, D, gradients=gradients).bytes
        / PEAKS[gpu].bytes / (1e-3 * ms)
        for B, T, H, D, _, _, forward, both in PUBLISHED
        for ms, gradients in ((forward, False), (both, True))
        if B * T * H >= LARGE
    ]  # fmt: skip
    return min(parts), max(parts)


def graph_seconds(row: Row, near: tuple[float, float]) -> Seconds:
    """What a call of ours should take as a CUDA graph, from its row of the account."""
    return (
        row["least"] / near[1] + row["launches"] * GAP[0],
        row["paced"] / near[0] + row["launches"] * GAP[1],
    )


def stored_seconds(row: Row, near: tuple[float, float], gpu: str) -> Seconds:
    """The same of the design that stores every chunk's state, with fla's normaliser or without."""
    kind, tokens = row["pass"], row["batch"] * row["length"] * row["heads"]
    launches, more = STORED_LAUNCHES[kind], 0.0
    if row["normalized"] == "yes":
        launches += NORMALISER_LAUNCHES[kind]
        more = NORMALISER_VECTORS[kind] * 2 * row["width"] * tokens / PEAKS[gpu].bytes
    return (
        row["stored"] / near[1] + more + launches * GAP[0],
        (row["stored"] + more) / near[0] + launches * GAP[1],
    )


def host_seconds(hosts: list[record.Record], row: Row) -> Seconds:
    """What a call like this one took on the hosts: the lowest and the highest quartile."""
    found = [
        (low, high)
        for run in hosts
        for call, kind, normalized, mapped, low, high in zip(
            *(
                run["tables"]["rows"][column]
                for column in ("call", "pass", "normalized", "feature_map", "low", "high")
            ),
            strict=True,
        )
        if (call, mapped) == ("linear_attention", "identity")
        and (kind, normalized) == (row["pass"], row["normalized"])
    ]
    return min(low for low, _ in found), max(high for _, high in found)


def expected(
    row: Row, near: tuple[float, float], hosts: list[record.Record], gpu: str
) -> list[Row]:
    """Rows of what a case of the account should take."""
    graph = graph_seconds(row, near)
    calls = {("ours", "graph"): graph, ("stored states", "graph"): stored_seconds(row, near, gpu)}
    if hosts:
        host = host_seconds(hosts, row)
        calls["ours", "eager"] = max(graph[0], host[0]), graph[1] + host[1]
    tokens, D = row["batch"] * row["length"] * row["heads"], row["width"]
    limit = tokens * least_bytes(1, D, D, training=row["pass"] != PASSES[0]) / PEAKS[gpu].bytes
    where = {key: row[key] for key in ("shapes", *SHAPE, "normalized", "pass")}
    return [
        {
            "implementation": name,
            **where,
            "launch": launch,
            "low": low,
            "high": high,
            "share_low": limit / high,
            "share_high": limit / low,
        }
        for (name, launch), (low, high) in calls.items()
    ]


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Plan, compile and count."""
    from .harness.bench.compiling import kernel_digests

    tables: Tables = {}
    near = nearness(config["gpu"])
    hosts = [run for run in record.load("host_time") if run["complete"]]
    shapes = [(name, shape) for name, each in config["shapes"].items() for shape in each]
    for i, (name, shape) in enumerate(shapes):
        where = dict(zip(SHAPE, shape, strict=True))
        for normalize in (False, True):
            for kind in PASSES:
                found = predicted(shape, normalize, kind != PASSES[0], config)
                what = {"normalized": "yes" if normalize else "no", "pass": kind}
                row = {"shapes": name, **where, **what, **found}
                append(tables, "rows", row)
                for one in expected(row, near, hosts, config["gpu"]):
                    append(tables, "expected", one)
        session.show(i + 1, len(shapes), " x ".join(map(str, shape)))
    gaps = dict(zip(("gap_low", "gap_high"), GAP, strict=True))
    append(tables, "assumed", {"near": near[0], "nearest": near[1], **gaps})
    for run in hosts:
        name = run["provenance"]["device"]["name"]
        append(tables, "hosts", {"host": name, "record": run["digest"]})
    for file, digest in kernel_digests().items():
        append(tables, "sources", {"file": file, "digest": digest})
    return Outcome(tables)


EXPERIMENT = Experiment(
    "kernel_prediction", "how long the kernels should take, by account", TABLES, runs, perform
)
