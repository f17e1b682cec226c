"""CUDA graphs: capturing a call, and timing its replays on the GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import timing
from .timing import Timing, nothing, summarize

REPLAYS = 5  # of a graph, between two readings of the clock
FEWEST, MOST = 3, 20


def capture(call: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    """Capture `call` as a CUDA graph and replay it once: replays take the GPU's time, not Python's.

    It is called twice before, on a separate stream, as torch requires: this compiles and allocates.
    """
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    graph.replay()
    return graph


def replay_in_turns(
    graphs: dict[str, torch.cuda.CUDAGraph],
    device: torch.device,
    between: Callable[[], object] = nothing,
) -> dict[str, Timing]:
    """Time the replays of several graphs interleaved. between: called before each, and not timed.

    While the GPU runs `between`, the host launches the replay, so that launch time does not count.
    """
    seconds: dict[str, list[float]] = {name: [] for name in graphs}
    enough, spent, rounds = timing.ENOUGH_SECONDS[device.type] * len(graphs), 0.0, 0
    while rounds < FEWEST or (spent < enough and rounds < MOST):
        for name, graph in graphs.items():
            seconds[name].append(_mean_of_replays(graph, device, between))
            spent += REPLAYS * seconds[name][-1]
        rounds += 1
    return {name: summarize(each) for name, each in seconds.items()}


def _mean_of_replays(
    graph: torch.cuda.CUDAGraph, device: torch.device, between: Callable[[], object]
) -> float:
    """Seconds of one replay."""
    clocks = []
    for _ in range(REPLAYS):
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        between()
        began.record()
        graph.replay()
        ended.record()
        clocks.append((began, ended))
    torch.cuda.synchronize(device)
    return sum(began.elapsed_time(ended) for began, ended in clocks) * 1e-3 / REPLAYS
