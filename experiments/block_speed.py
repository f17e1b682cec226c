"""Time one block of GPT-2 in training, forward and backward: softmax, and the three modes.

Timing only a layer's core overstates a gain. In a model, projections and a multilayer perceptron
take time too, the same in every mode. All blocks of a model are alike, so one block in the shape of
the largest GPT-2 shows the shares of the whole. At each length the modes take turns, one call each.
The small block is also timed without attention, but with its projections: the part that all modes
share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from lsa.attention import MODES
from lsa.compat import has_bfloat16
from lsa.gpt import Block, gpt_config

from .harness.bench.timing import TIMING, doublings, matmul_rate, measure_in_turns, peak_bytes
from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import append, table
from .priorities import BLOCK

TABLES = {
    "limits": table(
        matmul=(
            "FLOP/s",
            "of a square product of side `config.matmul_side` in `config.autocast`, in this run",
        ),
    ),
    "rows": table(
        mode=(
            "name",
            "`softmax`, `attention`, `recurrent`, `chunked`; `none`: each token takes its value",
        ),
        length=("tokens", "T"),
        **TIMING,
        peak=("B", "most bytes of tensors alive at once beyond input and weights"),
    ),
}


def runs(kind: str, smoke: bool) -> list[Run]:
    """One run a model: a small one and the largest."""
    cpu = kind == "cpu"
    scales = ["nano"] if smoke else ["1.5B", "124M"]
    return [
        Run(
            "block_speed",
            scale,
            {
                "scale": scale,
                "autocast": "bfloat16" if kind != "cpu" or has_bfloat16() else "float32",
                "shortest": 64 if smoke else 256 if cpu else 1024,
                "longest": 64 if smoke else 16384 if cpu else 65536,
                # On a GPU each length of each mode is compiled, which takes longer than timing it.
                **({} if cpu else {"every": 2}),
                **({} if scale == "1.5B" else {"control": "none"}),
                # On a CPU, plain torch stores the products of all pairs, and goes token by token.
                "longest_attention": 64 if smoke else 4096 if cpu else 131072,
                "longest_recurrent": 64 if smoke else 4096 if cpu else 131072,
                "matmul_side": 64 if smoke else 2048 if cpu else 8192,
                "seed": 0,
            },
            BLOCK,
        )
        for scale in scales
    ]


def block_call(
    mode: str, config: dict[str, Any], length: int, device: torch.device
) -> Callable[[], Any]:
    """A function without arguments: the block forward, and the gradients of its parameters."""
    torch.manual_seed(config["seed"])
    linear = {"attention": "linear", "attention_options": {"mode": mode}}
    options = linear if mode in MODES else {"attention": mode}
    shape = gpt_config(config["scale"], **options)
    block = Block(shape).to(device)
    x, dy = (
        torch.randn(1, length, block.ln_1.normalized_shape[0], device=device) for _ in range(2)
    )
    inputs = (x.requires_grad_(), *block.parameters())
    forward = torch.compile(block, dynamic=False) if device.type == "cuda" else block
    dtype = getattr(torch, config["autocast"])

    def call() -> tuple[torch.Tensor, ...]:
        with torch.autocast(device.type, dtype=dtype, enabled=dtype != torch.float32):
            y = forward(x)
        return torch.autograd.grad(y, inputs, dy.to(y.dtype))

    return call


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`. First the limit, then the lengths still missing."""
    lengths = doublings(config["shortest"], config["longest"])[:: config.get("every", 1)]
    if not (tables := session.go_on()):
        dtype = getattr(torch, config["autocast"])
        rate = matmul_rate(session.device, dtype, config["matmul_side"])
        tables = {"limits": {"matmul": [rate]}, "rows": {}}
    control = [config["control"]] if "control" in config else []
    done = {*tables["rows"].get("length", ())}
    for length in session.through(lengths, tables, "{} tokens".format, done):
        if session.device.type == "cuda":
            # All blocks share one code object: past eight variants torch.compile would give up on
            # it.
            torch.compiler.reset()
        calls = {
            mode: block_call(mode, config, length, session.device)
            for mode in ("softmax", *MODES, *control)
            if length <= config.get(f"longest_{mode}", length)
        }
        for mode, timing in measure_in_turns(calls, session.device).items():
            peak = peak_bytes(calls[mode], session.device)
            row = {"mode": mode, "length": length, **timing.columns, "peak": peak}
            append(tables, "rows", row)
    return Outcome(tables, session.whole)


EXPERIMENT = Experiment(
    "block_speed", "one block of GPT-2 in training, in each mode", TABLES, runs, perform
)
