"""Time one layer's attention, forward and backward, of a sequence that several processes share.

Each process computes with one thread, so more processes use more processors if there are enough.
Linear attention passes on states, and runs as in the package. Softmax passes keys and values around
a ring, in plain torch. Both are of `lsa.parallel`. Processes start each call together, and it ends
with the last of them. Bytes are counted where torch hands them to the network.

The run named `memory` asks why one process takes longer than its share of a long text. The process
runs alone, once unchanged and once keeping the memory that calls free. Its times are processor
time, not elapsed time.
"""

from __future__ import annotations

import ctypes
import resource
import statistics
import tempfile
import time
from datetime import timedelta
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from lsa.parallel import Ranks, linear_attention, ring_attention
from lsa.parallel.traffic import Traffic

from .harness.bench import timing
from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import append, table

TABLES = {
    "rows": table(
        ranks=("processes", "that hold the sequence, of one thread each"),
        attention=("name", "`linear`, or `softmax` around a ring"),
        length=("tokens", "T, of all processes together"),
        **timing.TIMING,
        received=("B", "that the busiest process receives, forward and backward"),
        optional="in the run named `heads`",
    ),
    "alone": table(
        kept=("yes or no", "whether memory that a call gives back stays with the process"),
        attention=("name", "`linear` or `softmax`"),
        length=("tokens", "T"),
        processor=("s", "of processor time, median of one call"),
        faults=("calls", "of the system for a page of memory, in one call"),
        optional="in the run named `memory`",
    ),
}
WAIT = timedelta(minutes=10)
# Options of glibc: how many blocks may be mapped separately and returned when freed, and how much
# free memory a heap keeps at its end.
M_MMAP_MAX, M_TRIM_THRESHOLD = -4, -1


def runs(kind: str, smoke: bool) -> list[Run]:
    """Runs on processors only: one GPU has no other to send to."""
    if kind != "cpu":
        return []
    config = {
        "seed": 0,
        "heads": 2,
        "width": 8 if smoke else 64,
        "chunk_size": 64,
        "linear": [32] if smoke else [4096, 16384, 65536],
        "softmax": [32] if smoke else [1024, 2048, 4096],
    }
    return [
        Run("rank_speed", "heads", {**config, "ranks": [1, 2] if smoke else [1, 2, 4]}, 20),
        Run("rank_speed", "memory", {**config, "calls": 3 if smoke else 9}, 21),
    ]


def together(call: Any, group: Any, enough: float) -> list[float]:
    """Seconds of calls that all ranks make at the same time, each until the last rank has ended."""
    seconds: list[float] = []
    for i in range(timing.MOST + 2):  # the first two are not counted
        dist.barrier(group)
        began = time.perf_counter()
        call()
        took = torch.tensor(time.perf_counter() - began, dtype=torch.float64)
        dist.all_reduce(took, dist.ReduceOp.MAX, group)
        if i > 1:
            seconds.append(took.item())
        if len(seconds) >= timing.FEWEST and sum(seconds) >= enough:
            break
    return seconds


def call_of(attention: str, length: int, config: dict[str, Any], ranks: Ranks) -> Any:
    """A function without arguments: this rank's part of the sequence, forward and backward."""
    shape = 1, length // ranks.size, config["heads"], config["width"]
    generator = torch.Generator().manual_seed(config["seed"] + ranks.rank)
    q, k, v = (torch.randn(shape, generator=generator, requires_grad=True) for _ in range(3))

    def call() -> None:
        if attention == "softmax":
            o = ring_attention(q, k, v, ranks=ranks)
        else:
            fixed = {"feature_map": "elu_plus_one", "chunk_size": config["chunk_size"]}
            o = linear_attention(q, k, v, ranks=ranks, **fixed)
        torch.autograd.grad(o, (q, k, v), torch.ones_like(o))

    return call


def keep_memory() -> None:
    """Make the C library keep freed memory, large blocks too. Raises OSError."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallopt"):
        raise OSError("memory: expected a C library that can be told to keep it, such as glibc")
    library.mallopt(M_MMAP_MAX, 0)
    library.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def alone(attention: str, length: int, config: dict[str, Any], ranks: Ranks) -> dict[str, Any]:
    """Columns of a row of the table `alone`: medians of calls, without the first."""
    call, seconds, faults = call_of(attention, length, config, ranks), [], []
    for _ in range(config["calls"] + 1):
        began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        call()
        seconds.append(time.process_time() - began)
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    processor = round(statistics.median(seconds[1:]), 9)
    return {"processor": processor, "faults": statistics.median(faults[1:])}


def spread(
    attention: str, length: int, config: dict[str, Any], ranks: Ranks, enough: float
) -> dict[str, Any]:
    """Columns of a row of the table `rows`."""
    call = call_of(attention, length, config, ranks)
    with Traffic() as traffic:
        call()
    received = torch.tensor(traffic.received)
    dist.all_reduce(received, dist.ReduceOp.MAX, ranks.group)
    found = timing.summarize(together(call, ranks.group, enough)).columns
    return {"ranks": ranks.size, **found, "received": received.item()}


def work(
    rank: int, size: int, store: str, config: dict[str, Any], enough: float, kept: bool, told: Any
) -> None:
    """The work of each process; the first one returns the rows."""
    torch.set_num_threads(1)
    if kept:
        keep_memory()
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=size, timeout=WAIT
    )
    assert dist.group.WORLD is not None  # set by the line above
    ranks = Ranks(dist.group.WORLD)
    row = alone if "calls" in config else partial(spread, enough=enough)
    rows = [
        {"attention": attention, "length": length, **row(attention, length, config, ranks)}
        for attention in ("linear", "softmax")
        for length in config[attention]
    ]
    dist.destroy_process_group()
    if rank == 0:
        told.put(rows)


def measured(
    size: int, config: dict[str, Any], enough: float = 0.0, *, kept: bool = False
) -> list[dict[str, Any]]:
    """The rows of `size` processes. Raises OSError if one of them fails.

    enough: seconds of calls, if calls are not counted. kept: whether freed memory is kept.
    """
    context = get_context("spawn")
    told = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        given = size, str(Path(folder) / "store"), config, enough, kept, told
        workers = [context.Process(target=work, args=(rank, *given)) for rank in range(size)]
        for worker in workers:
            worker.start()
        try:
            while not all(worker.exitcode == 0 for worker in workers):
                if broken := [i for i, one in enumerate(workers) if one.exitcode]:
                    raise OSError(f"rank {broken[0]} of {size} broke off")
                time.sleep(0.02)
            return told.get(timeout=60)
        finally:
            for worker in workers:
                worker.kill()
                worker.join()


def perform(config: dict[str, Any], session: Session) -> Outcome:
    """Perform one run; see `plan.Experiment`."""
    if "calls" in config:
        return _both_ways(config, session)
    tables: dict[str, Any] = {"rows": {}}
    for size in session.through(config["ranks"], tables, "{} processes".format):
        for row in measured(size, config, timing.ENOUGH_SECONDS["cpu"]):
            append(tables, "rows", row)
    return Outcome(tables, session.whole)


def _both_ways(config: dict[str, Any], session: Session) -> Outcome:
    """Measure one process, which returns freed memory or keeps it."""
    tables: dict[str, Any] = {}
    for kept in session.through((False, True), tables, "kept: {}".format):
        for row in measured(1, config, kept=kept):
            append(tables, "alone", {"kept": "yes" if kept else "no", **row})
    return Outcome(tables, session.whole)


EXPERIMENT = Experiment(
    "rank_speed", "attention of a sequence that several processes hold", TABLES, runs, perform
)
