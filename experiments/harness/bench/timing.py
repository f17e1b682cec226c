"""Timing of functions: warm-up, repeats, quartiles and peak memory."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

ENOUGH_SECONDS = {"cpu": 1.0, "cuda": 0.3}  # a GPU without other users is steadier
FEWEST, MOST = 5, 200
# The columns of `Timing.columns`, for the tables that an experiment declares.
TIMING: dict[str, Any] = {
    "seconds": ("s", "median of one call"),
    "low": ("s", "first quartile"),
    "high": ("s", "third quartile"),
    "repeats": ("calls", "how many were timed, after two that were not"),
}
# Each tick continues from the last one's state, so there are no warm-up ticks.
TICKS: dict[str, Any] = TIMING | {
    "repeats": ("calls", "how many were timed: all, one position after another")
}


@dataclass(frozen=True)
class Timing:
    """Seconds a call: the median and the quartiles of `repeats` calls."""

    median: float
    low: float
    high: float
    repeats: int

    @property
    def columns(self) -> dict[str, float]:
        """Columns of a row of results, in seconds to the nanosecond."""
        return {
            "seconds": round(self.median, 9),
            "low": round(self.low, 9),
            "high": round(self.high, 9),
            "repeats": self.repeats,
        }


def doublings(shortest: int, longest: int) -> list[int]:
    """shortest, 2 shortest, 4 shortest, ... up to longest."""
    lengths = (shortest * 2**i for i in range(32))
    return [length for length in lengths if length <= longest]


def measure(call: Callable[[], object], device: torch.device) -> Timing:
    """Time `call` after two warm-up calls, until enough seconds are spent (5 to 200 calls)."""
    return measure_in_turns({"": call}, device)[""]


def nothing() -> None:
    """Do nothing between two timed calls: the default of `between`."""


def measure_in_turns(
    calls: dict[str, Callable[[], object]],
    device: torch.device,
    between: Callable[[], object] = nothing,
    settle: bool = False,
) -> dict[str, Timing]:
    """Time several calls interleaved, each once a round, so that drift affects all equally.

    between: called before each timed call, and not timed. settle: make each call once more just
    before, untimed, so that none pays for memory that another released.
    """
    for call in calls.values():
        for _ in range(2):
            call()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    enough, spent, rounds = ENOUGH_SECONDS[device.type] * len(calls), 0.0, 0
    while rounds < FEWEST or (spent < enough and rounds < MOST):
        for name, call in calls.items():
            between()
            if settle:
                call()
            synchronize(device)
            began = time.perf_counter()
            call()
            synchronize(device)
            seconds[name].append(time.perf_counter() - began)
            spent += seconds[name][-1]
        rounds += 1
    return {name: summarize(each) for name, each in seconds.items()}


def timed_call(
    call: Callable[..., Any], inputs: Sequence[torch.Tensor], backward: bool
) -> Callable[[], Any]:
    """A function without arguments that makes a call once (and its gradients).

    inputs: those of the call, and the gradient of its output.
    """
    *given, dy = inputs
    if not backward:
        return torch.no_grad()(lambda: call(*given))
    leaves = [x.detach().requires_grad_() for x in given]
    return lambda: torch.autograd.grad(call(*leaves), leaves, dy)


def summarize(seconds: list[float]) -> Timing:
    """Median and quartiles of measured seconds."""
    if len(seconds) < 2:
        return Timing(seconds[0], seconds[0], seconds[0], len(seconds))
    low, median, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return Timing(median, low, high, len(seconds))


def synchronize(device: torch.device) -> None:
    """Wait until the device has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def cache_filler(device: torch.device, cache: int) -> Callable[[], object]:
    """A function that evicts everything from a cache of this many bytes.

    It reads twice the cache's size. Writes would have to go to memory while the next call is timed.
    """
    other = torch.zeros(max(1, 2 * cache // 4), device=device)
    return other.sum


def copy_rate(device: torch.device, size: int) -> float:
    """B/s of copying `size` random bytes, read and written; memory might compress zeros."""
    generator = torch.Generator(device).manual_seed(0)
    source = torch.randint(256, (size,), dtype=torch.uint8, device=device, generator=generator)
    target = torch.empty_like(source)
    return 2 * size / measure(lambda: target.copy_(source), device).median


def matmul_rate(device: torch.device, dtype: torch.dtype, side: int) -> float:
    """FLOP/s of a product of two square matrices of this size."""
    a = torch.randn(side, side, device=device).to(dtype)
    return 2 * side**3 / measure(lambda: a @ a, device).median


def call_seconds(device: torch.device) -> float:
    """Seconds of the smallest call into torch, each waiting for the one before it."""
    x = torch.zeros(1, device=device)

    def chain() -> None:
        for _ in range(1000):
            x.add_(1.0)

    return measure(chain, device).median / 1000


def peak_bytes(call: Callable[[], object], device: torch.device) -> int:
    """The most bytes of tensors alive at once during `call`, beyond those alive before it."""
    if device.type == "cuda":
        synchronize(device)
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        call()
        synchronize(device)
        return torch.cuda.max_memory_allocated(device) - before
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profiler:
        call()
    alive = peak = 0
    recorded: Any = profiler.profiler  # torch declares no type for its records
    for event in recorded.kineto_results.events():
        if event.name() == "[memory]":
            alive += event.nbytes()
            peak = max(peak, alive)
    return peak
