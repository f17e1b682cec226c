"""How long the kernels should take on a GPU, written down before one has run them.

Needs no GPU. Every launch of chunked mode is planned and compiled as for an H100. It takes no less
time than its bytes do at the memory's speed, and no less than the instructions of the fullest
multiprocessor, one a scheduler and cycle. It may take as long as its programs do when each warp
waits `DEPENDENT_CYCLES` for every instruction and others fill none of the gaps. A call takes its
launches one after the other. Beside it stands the design that stores the state of every chunk, by
its bytes alone.

How near kernels come to such a bound is not in it: the figure takes that from what others have
published of theirs. The shapes are those of `kernel_speed`, which measures the same.
"""

from __future__ import annotations

from importlib.util import find_spec
from math import ceil
from typing import Any

import torch

from lsa.cost import PEAKS, design_cost
from lsa.cost.rooflines import DEPENDENT_CYCLES

from .harness.plan import LATE, Experiment, Outcome, Run, Session
from .harness.shapes import GPT2, LADDER, PASSES, SMALL
from .harness.tables import PASS, Tables, append, table
from .harness.traffic import traffic

TABLES = {
    "rows": table(
        shapes=("name", "`ladder`: of a published comparison; `gpt2`: GPT-2's heads"),
        batch=("sequences", "B"),
        length=("tokens", "T"),
        heads=("heads", "H"),
        width=("features", "K = V"),
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
    "sources": table(
        file=("name", "a module of the kernels"),
        digest=("name", "of its code, comments and docstrings aside"),
    ),
}  # fmt: skip
GPU = "H100 SXM"
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
    from lsa.linear_attention.kernels import chunked
    from lsa.linear_attention.kernels.gpu import HOPPER, planned_for
    from lsa.linear_attention.kernels.problem import Problem

    from .harness.compiling import record_launches

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
    from lsa.linear_attention.kernels.gpu import HOPPER

    from .harness.compiling import build, loop_length

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


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Plan, compile and count."""
    from .harness.compiling import kernel_digests

    tables: Tables = {}
    shapes = [(name, shape) for name, each in config["shapes"].items() for shape in each]
    for i, (name, shape) in enumerate(shapes):
        where = dict(zip(("batch", "length", "heads", "width"), shape, strict=True))
        for normalize in (False, True):
            for kind in PASSES:
                found = predicted(shape, normalize, kind != PASSES[0], config)
                what = {"normalized": "yes" if normalize else "no", "pass": kind}
                append(tables, "rows", {"shapes": name, **where, **what, **found})
        session.show(i + 1, len(shapes), " x ".join(map(str, shape)))
    for file, digest in kernel_digests().items():
        append(tables, "sources", {"file": file, "digest": digest})
    return Outcome(tables)


EXPERIMENT = Experiment(
    "kernel_prediction", "how long the kernels should take, by account", TABLES, runs, perform
)
