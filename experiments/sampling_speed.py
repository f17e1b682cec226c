"""Time one token of sampling at different positions: KV cache against recurrent state.

The text before a position is really read (random tokens, in blocks), then ticks are timed one
by one: a step of the machine and the draw of the next token. Positions advance with the ticks.
"""

from __future__ import annotations

import time
from typing import Any

import torch

from lsa.gpt import GPT, gpt_config
from lsa.machines import state_bytes
from lsa.sampling import choose

from .harness.plan import SAMPLING, Experiment, Outcome, Run, Session
from .harness.tables import append, table
from .harness.timing import TICKS, summarize, synchronize

TABLES = {
    "rows": table(
        attention=("name", "`softmax` (KV cache) or `linear` (recurrent state)"),
        position=("tokens", "how many tokens the text has when the ticks begin"),
        **TICKS,
        state=("B", "the state's size after them, all layers, the whole batch"),
    ),
}
BLOCK = 1024
KEYS = ("attention", "position")  # what a row is about


def runs(kind: str, smoke: bool) -> list[Run]:
    """One run a model and batch."""
    longest = 64 if smoke else 16384
    shapes = [(scale, batch, longest) for scale, batch in (("nano", 1), ("124M", 1), ("nano", 16))]
    if smoke:
        shapes = shapes[:1]
    elif kind == "cuda":
        # As long as a cache, which doubles its room, and its copy fit into 80 GB.
        shapes = [("124M", 1, 131072), ("1.5B", 1, 65536), ("124M", 32, 16384)]
    dtype = "float32" if kind == "cpu" else "bfloat16"
    return [
        Run(
            "sampling_speed",
            f"{scale}-b{batch}",
            {
                "scale": scale,
                "batch": batch,
                "dtype": dtype,
                "longest": longest,
                "ticks": 4 if smoke else 24,
                "vocab_size": 256,
                "seed": 0,
            },
            SAMPLING if batch == 1 else 14,
            60 if kind == "cuda" else None,
        )
        for scale, batch, longest in shapes
    ]


@torch.no_grad()
def perform(config: dict[str, Any], session: Session) -> Outcome:
    """One run, as `plan.Experiment` asks."""
    tables = session.go_on()
    timed = {*zip(*(tables.get("rows", {}).get(name, ()) for name in KEYS), strict=True)}
    positions = [1] + [2**i for i in range(6, 32) if 2**i <= config["longest"]]
    for i, attention in enumerate(("softmax", "linear")):
        if timed >= {(attention, position) for position in positions}:
            continue
        torch.manual_seed(config["seed"])
        shape = gpt_config(
            config["scale"],
            vocab_size=config["vocab_size"],
            n_positions=config["longest"] + config["ticks"] + 2,
            attention=attention,
        )
        model = GPT(shape).to(session.device, getattr(torch, config["dtype"])).eval()
        machine = model.machine()
        state, read = machine.initial_state, 0
        token = torch.zeros(config["batch"], dtype=torch.long, device=session.device)
        for j, position in enumerate(positions):
            if (attention, position) in timed:
                continue
            while read < position - 1:
                if session.out_of_time():
                    return Outcome(tables, complete=False)
                n = min(BLOCK, position - 1 - read)
                block = torch.randint(256, (config["batch"], n), device=session.device)
                state, _ = machine.prefill(state, block)
                read += n
            seconds, state = _ticks(machine, state, token, config["ticks"], session.device)
            read += config["ticks"]
            timing = summarize(seconds)
            row = {
                "attention": attention,
                "position": position,
                **timing.columns,
                "state": state_bytes(state),
            }
            append(tables, "rows", row)
            session.save(tables)
            done = i * len(positions) + j + 1
            session.show(done, 2 * len(positions), f"{attention} at {position}")
    return Outcome(tables)


def _ticks(
    machine: Any, state: Any, token: torch.Tensor, n: int, device: torch.device
) -> tuple[list[float], Any]:
    seconds = []
    for _ in range(n):
        synchronize(device)
        began = time.perf_counter()
        state, logits = machine.step(state, token)
        token = choose(logits)
        synchronize(device)
        seconds.append(time.perf_counter() - began)
    return seconds, state


EXPERIMENT = Experiment(
    "sampling_speed", "one token: KV cache against recurrent state", TABLES, runs, perform
)
