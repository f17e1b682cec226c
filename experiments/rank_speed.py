"""Time one layer's attention, forward and backward, of a sequence that several processes share.

Each process computes with one thread, so more processes use more processors if there are enough.
Linear attention passes on states; each process first sums up its part in plain torch. Softmax
passes keys and values around a ring, in plain torch. Both are of `lsa.parallel`. Processes start
each call together, and it ends with the last of them. Bytes are counted where torch hands them to
the network.

`plain` is what one process would run on its own: `lsa.linear_attention`.

Processes keep the memory that calls free. Otherwise the C library returns large blocks at each
call, and a process with a longer part of the sequence waits for more pages.
"""

from __future__ import annotations

import ctypes
import tempfile
import time
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import lsa
from lsa.parallel import Ranks, linear_attention, ring_attention
from lsa.parallel.traffic import Traffic

from .harness.bench import timing
from .harness.core.plan import Experiment, Outcome, Run, Session
from .harness.core.tables import append, table

TABLES = {
    "rows": table(
        ranks=("processes", "that hold the sequence, of one thread each"),
        attention=("name", "`linear`, `softmax` around a ring, or `plain`"),
        length=("tokens", "T, of all processes together"),
        **timing.TIMING,
        received=("B", "that the busiest process receives, forward and backward"),
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
    return [Run("rank_speed", "heads", {**config, "ranks": [1, 2] if smoke else [1, 2, 4]}, 20)]


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
        fixed = {"feature_map": "elu_plus_one", "chunk_size": config["chunk_size"]}
        if attention == "softmax":
            o = ring_attention(q, k, v, ranks=ranks)
        elif attention == "plain":
            o = lsa.linear_attention(q, k, v, **fixed)
        else:
            o = linear_attention(q, k, v, ranks=ranks, **fixed)
        torch.autograd.grad(o, (q, k, v), torch.ones_like(o))

    return call


def keep_memory() -> None:
    """Make the C library keep freed memory, large blocks too, where it can be told to."""
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(M_MMAP_MAX, 0)
        library.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


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
    rank: int, size: int, store: str, config: dict[str, Any], enough: float, told: Any
) -> None:
    """The work of each process; the first one returns the rows."""
    torch.set_num_threads(1)
    keep_memory()
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=size, timeout=WAIT
    )
    assert dist.group.WORLD is not None  # set by the line above
    ranks = Ranks(dist.group.WORLD)
    lengths = {name: config[name] for name in ("linear", "softmax")}
    if size == 1:
        lengths["plain"] = config["linear"]
    rows = [
        {"attention": name, "length": length, **spread(name, length, config, ranks, enough)}
        for name in lengths
        for length in lengths[name]
    ]
    dist.destroy_process_group()
    if rank == 0:
        told.put(rows)


def measured(size: int, config: dict[str, Any], enough: float = 0.0) -> list[dict[str, Any]]:
    """The rows of `size` processes, each timed for so many seconds. Raises OSError if one fails."""
    context = get_context("spawn")
    told = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        given = size, str(Path(folder) / "store"), config, enough, told
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
    tables: dict[str, Any] = {"rows": {}}
    for size in session.through(config["ranks"], tables, "{} processes".format):
        for row in measured(size, config, timing.ENOUGH_SECONDS["cpu"]):
            append(tables, "rows", row)
    return Outcome(tables, session.whole)


EXPERIMENT = Experiment(
    "rank_speed", "attention of a sequence that several processes hold", TABLES, runs, perform
)
