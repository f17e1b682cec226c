"""Time one token of sampling at different positions: KV cache against recurrent state.

The machine reads the text before a position (random tokens, in blocks). Then ticks are timed one by
one: a step of the machine and the draw of the next token. Positions advance with the ticks.

On a GPU such a tick takes the host's time, and the GPU waits. So for both attentions the next tick
is captured as a CUDA graph, and its replays are compared. They read a cache of that position's
length, or a state, and store the next token and the next state for the next replay.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from lsa.gpt import GPT, gpt_config
from lsa.layers import KVCache
from lsa.machines import StateMachine, state_bytes
from lsa.sampling import choose

from .harness.bench.graphs import capture, replay_in_turns
from .harness.bench.timing import TICKS, summarize, synchronize
from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import append, table
from .priorities import SAMPLING

POINT: dict[str, Any] = {
    "attention": ("name", "`softmax` (KV cache) or `linear` (recurrent state)"),
    "position": ("tokens", "how many tokens the text has when the ticks begin"),
}
TIMED: dict[str, Any] = TICKS | {
    "repeats": ("calls", TICKS["repeats"][1] + "; on a GPU each is the mean of five replays")
}
TABLES = {
    "rows": table(
        **POINT,
        **TIMED,
        state=("B", "the state's size after them, all layers, the whole batch"),
    ),
    "eager": table(
        optional="on a GPU only: the ticks called one by one from Python, bound by the host",
        **POINT,
        **TICKS,
    ),
}
BLOCK = 1024
KEYS = ("attention", "position")  # identify a row


def runs(kind: str, smoke: bool) -> list[Run]:
    """One run a model and batch."""
    longest = 64 if smoke else 16384
    shapes = [(scale, batch, longest) for scale, batch in (("nano", 1), ("124M", 1), ("nano", 16))]
    if smoke:
        shapes = shapes[:1]
    elif kind == "cuda":
        # Caches of 5, 20 and 19 GB, whose memory is allocated once.
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
        )
        for scale, batch, longest in shapes
    ]


@torch.no_grad()
def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`."""
    tables = session.go_on()
    timed = {*zip(*(tables.get("rows", {}).get(name, ()) for name in KEYS), strict=True)}
    positions = [1] + [2**i for i in range(6, 32) if 2**i <= config["longest"]]
    for i, attention in enumerate(("softmax", "linear")):
        if timed >= {(attention, position) for position in positions}:
            continue
        machine, state = _machine(attention, config, session.device)
        read = 0
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
            timings = {"rows": summarize(seconds)}
            if captures(session.device):
                tick = capture_tick(machine, state, token)
                replays = replay_in_turns({"": tick.graph}, session.device)[""]
                timings = {"rows": replays, "eager": summarize(seconds)}
                state, read = tick.state, read + 1
                del tick
            for name, timing in timings.items():
                row = {"attention": attention, "position": position, **timing.columns}
                append(
                    tables, name, row | ({"state": state_bytes(state)} if name == "rows" else {})
                )
            session.save(tables)
            done = i * len(positions) + j + 1
            session.show(done, 2 * len(positions), f"{attention} at {position}")
    return Outcome(tables)


def _machine(
    attention: str, config: dict[str, Any], device: torch.device
) -> tuple[StateMachine, Any]:
    """The machine and its first state."""
    torch.manual_seed(config["seed"])
    longest = config["longest"] + config["ticks"] + 2
    shape = gpt_config(
        config["scale"],
        vocab_size=config["vocab_size"],
        n_positions=longest,
        attention=attention,
    )
    machine = GPT(shape).to(device, getattr(torch, config["dtype"])).eval().machine()
    state = machine.initial_state
    if captures(device):
        # A cache that grew during the capture would be copied again at each replay.
        state = replaced(state, lambda x: KVCache(room=longest) if isinstance(x, KVCache) else x)
    return machine, state


def _ticks(
    machine: StateMachine, state: Any, token: torch.Tensor, n: int, device: torch.device
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


def captures(device: torch.device) -> bool:
    """Whether ticks are captured: a GPU finishes one before Python launches the next."""
    return device.type == "cuda"


@dataclass(frozen=True)
class Tick:
    """A tick as a graph, its token, which each replay reads and draws again, and its state.

    A state of tensors advances from one replay to the next. A cache does not: each replay
    overwrites the keys and values of the last one's token.
    """

    graph: torch.cuda.CUDAGraph
    token: torch.Tensor
    state: Any


def capture_tick(machine: StateMachine, state: Any, token: torch.Tensor) -> Tick:
    """Capture a tick from a warm state that has tokens in it, and replay it once."""
    token = token.clone()
    state = after = replaced(state, lambda x: x.clone() if isinstance(x, torch.Tensor) else x)
    held = tensors(state)

    def tick() -> None:
        nonlocal after
        begun = replaced(state, lambda x: x.rewound() if isinstance(x, KVCache) else x)
        after, logits = machine.step(begun, token)
        if held:
            torch.ops.aten._foreach_copy_(held, tensors(after))
        token.copy_(draw(logits))

    graph = capture(tick)
    # Other values are those after the tick; the tensors are those that replays update.
    own = iter(held)
    state = replaced(after, lambda x: next(own) if isinstance(x, torch.Tensor) else x)
    return Tick(graph, token, state)


def draw(logits: torch.Tensor) -> torch.Tensor:
    """`choose` without checks of the numbers, which a graph cannot wait for.

    A race of exponential clocks: each token's rings at a rate equal to its probability, and the
    first to ring is drawn.
    """
    likely = logits.float().softmax(-1)
    return (likely / torch.empty_like(likely).exponential_()).argmax(-1)


def tensors(state: Any) -> list[torch.Tensor]:
    """The tensors of a machine's state, in order."""
    if isinstance(state, tuple):
        return [x for part in state for x in tensors(part)]
    return [state] if isinstance(state, torch.Tensor) else []


def replaced(state: Any, other: Callable[[Any], Any]) -> Any:
    """A machine's state in which `other` is applied to each of its parts, in order."""
    if not isinstance(state, tuple):
        return other(state)
    parts = [replaced(part, other) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else tuple(parts)


EXPERIMENT = Experiment(
    "sampling_speed", "one token: KV cache against recurrent state", TABLES, runs, perform
)
