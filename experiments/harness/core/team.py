"""The processes of one run: this one alone, or the ranks that torchrun started.

Every rank goes through the same plan. Only the first rank reads files and the clock, and tells the
others. It alone writes and prints.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

# Time limit of an exchange. If a rank is killed, torchrun ends the others at once; if one hangs,
# those that wait for it end after this time.
TIMEOUT = timedelta(minutes=5)
# gloo's messages if another process has ended, or hangs.
GONE = "Connection closed by peer", "Connection reset by peer", "Timed out waiting"
TOLD = "the first rank says it"  # a note on an error that the other ranks need not print


@dataclass(frozen=True)
class Team:
    """A team. rank: of this process, from 0. size: number of ranks. group: torch's, if several."""

    rank: int = 0
    size: int = 1
    group: Any = None

    @property
    def leads(self) -> bool:
        """Whether this process writes and prints."""
        return self.rank == 0

    def first(self, call: Callable[[], Any]) -> Any:
        """The first rank's result of `call`, on every rank; an error there is raised on all."""
        if self.size == 1:
            return call()
        said: list[Any] = [None, None]
        if self.leads:
            try:
                said[0] = call()
            except Exception as error:
                said[1] = error
        dist.broadcast_object_list(said, group=self.group, group_src=0)
        if said[1] is not None:
            if not self.leads:
                said[1].add_note(TOLD)
            raise said[1]
        return said[0]

    def any(self, *flags: bool) -> list[bool]:
        """Whether each flag is set on any rank."""
        if self.size == 1:
            return [*flags]
        counts = torch.tensor(flags, dtype=torch.int32)
        dist.all_reduce(counts, group=self.group)
        return (counts > 0).tolist()

    def leading(self, number: float) -> float:
        """The first rank's number."""
        return self.total(torch.tensor(number * self.leads, dtype=torch.float64)).item()

    def total(self, x: torch.Tensor) -> torch.Tensor:
        """The sum of x over all ranks."""
        if self.size > 1:
            dist.all_reduce(x, group=self.group)
        return x


_supposed = [Team()]


def here() -> Team:
    """The team of this process."""
    if dist.is_available() and dist.is_initialized():
        return Team(dist.get_rank(), dist.get_world_size(), dist.group.WORLD)
    return _supposed[-1]


@contextmanager
def supposed(size: int) -> Iterator[None]:
    """Context in which this process acts as the first of `size` ranks, to list their plan."""
    _supposed.append(Team(0, size))
    try:
        yield
    finally:
        _supposed.pop()


@contextmanager
def exchanging() -> Iterator[None]:
    """Context that turns torch's error about a lost rank into an OSError of one line."""
    try:
        yield
    except RuntimeError as error:
        if any(one in str(error) for one in GONE):
            line = "an exchange broke off: another rank was lost, or hangs"
            raise OSError(line) from error
        raise


@contextmanager
def joined(kind: str) -> Iterator[Team]:
    """Context with the team of torchrun's ranks, on devices of a kind, or of this process alone.

    Raises OSError if this computer has fewer GPUs than ranks, or if another rank is lost.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        yield Team()
        return
    local = int(os.environ["LOCAL_RANK"])
    backend = "gloo"
    if kind == "cuda":
        if local >= torch.cuda.device_count():
            count = torch.cuda.device_count()
            raise OSError(f"--nproc-per-node: expected at most {count}, a GPU a process")
        torch.cuda.set_device(local)
        backend = "cpu:gloo,cuda:nccl"
    dist.init_process_group(backend, timeout=TIMEOUT)
    with exchanging():
        yield here()
    dist.destroy_process_group()  # not after an error: other ranks may be waiting for this one
