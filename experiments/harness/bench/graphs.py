"""CUDA graphs: capturing a call, and timing its replays by the GPU's own clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import timing
from .timing import Timing, nothing, summarize

REPLAYS = 5  # of a graph, between two looks at the clock
FEWEST, MOST = 3, 20


def capture(call: Callable[[], Any]) -> torch.cuda.CUDAGraph:
    """`call` as a CUDA graph, replayed once: its replays take the GPU's time without Python's.

    It is called twice before, on a stream of its own, as torch asks: that compiles, and makes room.
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
    """Time the replays of several graphs interleaved. between: done before each, and not timed.

    While the GPU is at that, the host hands it the replay, whose own launch is then not waited for.
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
    """s of one replay."""
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
