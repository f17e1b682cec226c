"""A thread on each rank that ends a team in which one hangs, and names it.

A rank that is killed ends the others at once, by torchrun. One that hangs does not: the others wait
for it in their next exchange. So each rank says every two seconds, in torchrun's store, that its
process runs, and looks for three faults:

- The next rank no longer says so: its process is stopped, or its computer is lost.
- Nothing of its own process runs, and it waits for no other rank: it hangs itself. Where work takes
  long, as to compile or to read a text, something runs.
- Its own update is overdue, and it waits for no other rank: it hangs itself, and runs in circles.

It tells this in one line and ends its process, and torchrun ends the rest.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import torch

BEAT = 2.0  # s between two signs of life
SILENT = 20.0  # s without one, after which a rank is lost
# s in which nothing runs, or after which work is overdue, if it also takes so many times as long as
# it ever has. torchrun gives a stopped process half a minute to end, which belongs to the minute.
OVERDUE, TIMES = 20.0, 5
RARELY = 0.01  # of a processor, that threads take which only look whether there is work
ENDED = "ended"
# Modules in which a rank waits for others, and where they write and read files.
EXCHANGES = "torch.distributed", "lsa.parallel.collectives"
FILES = "torch.distributed.checkpoint."
PROCESSES = Path("/proc")


def leave(message: str) -> None:
    """Say it, and end this process at once, whatever its other threads wait for."""
    print(f"\nerror: {message}", file=sys.stderr, flush=True)
    os._exit(1)


class Watch:
    """Looks after this rank and the next, from `start` to `stop`.

    store: of torch.distributed, with a connection of its own. busy: whether a device has work that
    was given to it, for which the main thread may wait. runs: whether anything of this process has
    run since it was last asked. leave: what ends the process.
    """

    def __init__(
        self,
        store: Any,
        rank: int,
        size: int,
        busy: Callable[[], bool] = lambda: False,
        runs: Callable[[], bool] = lambda: True,
        leave: Callable[[str], None] = leave,
    ) -> None:
        self.store, self.rank, self.next = store, rank, (rank + 1) % size
        self.busy, self.runs, self.leave = busy, runs, leave
        self.main = threading.main_thread().ident
        self.thread = threading.Thread(target=self._run, daemon=True)
        self._ended = threading.Event()
        # The clock of this thread: it stands still while the process is stopped by Control-Z.
        self._beats = self._waited = self._idle = 0
        self._since: int | None = None
        self._kind: object = None
        self._longest = 0.0

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        """Say that this rank is done, so that its silence alarms nobody."""
        self._ended.set()
        self.thread.join()
        self.store.set(str(self.rank), ENDED)

    @contextmanager
    def expecting(self, kind: object) -> Iterator[None]:
        """Work that takes about as long as others of its kind; of the first, nothing is known."""
        began, known = time.monotonic(), kind is self._kind
        self._since = self._beats if known else None
        try:
            yield
        finally:
            self._since = None
        took = time.monotonic() - began
        self._kind, self._longest = kind, max(took, self._longest if known else 0.0)

    def _run(self) -> None:
        last, missed, following = None, 0, str(self.next)
        while not self._ended.wait(BEAT):
            self._beats += 1
            try:
                self.store.set(str(self.rank), str(self._beats))
                found = self.store.get(following) if self.store.check([following]) else None
            except RuntimeError:
                return self.leave(f"rank {self.rank}: torchrun was lost: its store does not answer")
            missed = missed + 1 if found == last != ENDED.encode() else 0
            last = found
            if missed * BEAT >= SILENT:
                return self.leave(
                    f"rank {self.next} hangs: no sign of life for {missed * BEAT:.0f} s. Its "
                    "process is stopped, or its computer is lost"
                )
            if place := self._stuck():
                return self.leave(f"rank {self.rank} hangs: {place}")
        return None

    def _stuck(self) -> str:
        """Where the main thread hangs; "" while something runs, or waits for others."""
        frames, since = sys._current_frames(), self._since
        frame = frames.pop(self.main or 0, None)
        # A thread of its own writes checkpoints; the main thread may wait for it.
        if frame is None or any(map(_waits, (frame, *frames.values()))):
            return self._waits()
        self._idle = 0 if self.runs() else self._idle + 1
        took = 0.0 if since is None else (self._beats - max(since, self._waited)) * BEAT
        late = took >= max(OVERDUE, TIMES * self._longest)
        if not late and self._idle * BEAT < OVERDUE:
            return ""
        if self.busy():
            return self._waits()
        where = f"in {_name(frame)}, line {frame.f_lineno} of {frame.f_code.co_name}"
        return f"for {took if late else self._idle * BEAT:.0f} s {where}"

    def _waits(self) -> str:
        """It does not hang: what it does counts from now on."""
        self._idle, self._waited = 0, self._beats
        return ""


class Signs:
    """What the system counts of a process and of those that it has started.

    A thread of its own asks, and is not counted.
    """

    def __init__(self) -> None:
        self.main = time.pthread_getcpuclockid(threading.main_thread().ident or 0)
        self.moment = self.ran = 0.0
        self.others: float | None = None  # s of all but the main thread, when it ran no more

    def __call__(self) -> bool:
        """Whether something runs: the main thread at all, others more than rarely, or a disk."""
        ran, moment = time.clock_gettime(self.main), time.monotonic()
        if ran > self.ran:
            self.ran, self.others = ran, None
            return True
        ticks = sum(int(n) for pid in started(os.getpid()) for n in _stat(pid)[11:15])
        others = time.process_time() - time.thread_time() + ticks / os.sysconf("SC_CLK_TCK")
        rarely = RARELY * (moment - self.moment)
        # Fewer, where a process has ended: what it began may run.
        if self.others is None or abs(others - self.others) > rarely or _waits_for_disk():
            self.moment, self.others = moment, others
            return True
        return False


def started(pid: int) -> list[int]:
    """Processes that one has started, and that these have."""
    found: list[int] = []
    for one in PROCESSES.glob(f"{pid}/task/*/children"):
        with suppress(OSError):  # it has ended
            children = [int(child) for child in one.read_text().split()]
            found += children + [its for child in children for its in started(child)]
    return found


def _stat(place: int | str) -> list[str]:
    """What Linux tells of a process or a thread after its name: first its state."""
    try:
        return (PROCESSES / str(place) / "stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended
        return []


def _waits_for_disk() -> bool:
    """Whether a thread of this process or of one that it has started does."""
    each = (os.getpid(), *started(os.getpid()))
    threads = (one for pid in each for one in PROCESSES.glob(f"{pid}/task/*"))
    return any(_stat(str(thread))[:1] == ["D"] for thread in threads)


def _name(frame: FrameType) -> str:
    return frame.f_globals.get("__name__", "")


def _waits(frame: FrameType) -> bool:
    """Whether a thread waits for other ranks: nothing but torch called what it does there."""
    inner: FrameType | None = frame
    while inner is not None:
        if _name(inner).startswith(EXCHANGES):
            return not _name(inner).startswith(FILES)
        if not _name(inner).startswith("torch"):
            return False
        inner = inner.f_back
    return False


_watches: list[Watch] = []


@contextmanager
def watching(kind: str) -> Iterator[None]:
    """Within, this rank of torchrun is watched. kind: of its device."""
    import torch.distributed as dist

    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    patience = timedelta(seconds=SILENT)
    store = dist.TCPStore(  # pyright: ignore[reportPrivateImportUsage]
        host, port, wait_for_workers=False, timeout=patience
    )
    tried = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")  # the store outlives a restart
    place = dist.PrefixStore(  # pyright: ignore[reportPrivateImportUsage]
        f"watch/{tried}", store
    )
    device = torch.cuda.current_device() if kind == "cuda" else None
    signs = Signs() if (PROCESSES / f"self/task/{os.getpid()}/children").exists() else lambda: True
    busy = partial(_is_busy, device)
    watch = Watch(place, dist.get_rank(), dist.get_world_size(), busy, signs)
    watch.start()
    _watches.append(watch)
    try:
        yield
        watch.stop()  # after an error the process ends, and torchrun sees why
    finally:
        _watches.remove(watch)


def _is_busy(device: int | None) -> bool:
    """Whether a GPU has work left. device: None on a processor."""
    return device is not None and not torch.cuda.default_stream(device).query()


def expecting(kind: object) -> Any:
    """Within, work that takes about as long as others of its kind: see `Watch.expecting`."""
    return _watches[-1].expecting(kind) if _watches else nullcontext()
