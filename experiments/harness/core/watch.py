"""A thread on each rank that ends the team if a rank hangs, and names that rank.

If a rank is killed, torchrun ends the others at once. If one hangs, the others wait for it in their
next exchange. So each rank writes a sign of life to torchrun's store every two seconds, and looks
for three faults:

- The next rank's signs of life stop: its process is stopped, or its computer is lost.
- Nothing of its own process runs, and it waits for no other rank: it hangs. During long work, such
  as compiling or reading a text, something runs.
- Its own update is overdue, and it waits for no other rank: it is in an endless loop.

It prints the fault in one line and ends its process, and torchrun ends the rest.
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
SILENT = 20.0  # s without a sign of life, after which a rank is lost
# Seconds in which nothing runs, or after which work is overdue, if it also takes TIMES times as
# long as it ever has. The minute includes the half that torchrun gives a stopped process to end.
OVERDUE, TIMES = 20.0, 5
RARELY = 0.01  # share of a processor that idle polling threads take
ENDED = "ended"
# Modules in which a rank waits for others, and the part of them that writes and reads files.
EXCHANGES = "torch.distributed", "lsa.parallel.collectives"
FILES = "torch.distributed.checkpoint."
PROCESSES = Path("/proc")


def leave(message: str) -> None:
    """Print a message and end this process at once, even if other threads are waiting."""
    print(f"\nerror: {message}", file=sys.stderr, flush=True)
    os._exit(1)


class Watch:
    """Watches this rank and the next, from `start` to `stop`.

    store: of torch.distributed, with its own connection.
    busy: whether a device has unfinished work that the main thread may wait for.
    runs: whether anything of this process has run since the last call.
    leave: ends the process.
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
        # This thread's clock: it stands still while the process is stopped by Control-Z.
        self._beats = self._waited = self._idle = 0
        self._since: int | None = None
        self._kind: object = None
        self._longest = 0.0

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        """Mark this rank as done, so that the end of its signs of life is no fault."""
        self._ended.set()
        self.thread.join()
        self.store.set(str(self.rank), ENDED)

    @contextmanager
    def expecting(self, kind: object) -> Iterator[None]:
        """Context for work that takes about as long as earlier work of its kind did."""
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
        """Where the main thread hangs; "" if something runs or waits for others."""
        frames, since = sys._current_frames(), self._since
        frame = frames.pop(self.main or 0, None)
        # Another thread writes checkpoints; the main thread may wait for it.
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
        """Restart the count of idle time; returns "", for no fault."""
        self._idle, self._waited = 0, self._beats
        return ""


class Signs:
    """CPU time of this process and its children, as a sign that they run.

    The calling thread is not counted.
    """

    def __init__(self) -> None:
        self.main = time.pthread_getcpuclockid(threading.main_thread().ident or 0)
        self.moment = self.ran = 0.0
        self.others: float | None = None  # s of the others at the last look; None: main has run

    def __call__(self) -> bool:
        """Whether something runs: the main thread, others more than rarely, or a disk access."""
        ran, moment = time.clock_gettime(self.main), time.monotonic()
        if ran > self.ran:
            self.ran, self.others = ran, None
            return True
        ticks = sum(int(n) for pid in started(os.getpid()) for n in _stat(pid)[11:15])
        others = time.process_time() - time.thread_time() + ticks / os.sysconf("SC_CLK_TCK")
        rarely = RARELY * (moment - self.moment)
        # The sum shrinks when a process ends; those that it started may run.
        if self.others is None or abs(others - self.others) > rarely or _waits_for_disk():
            self.moment, self.others = moment, others
            return True
        return False


def started(pid: int) -> list[int]:
    """The child processes of a process, and theirs."""
    found: list[int] = []
    for one in PROCESSES.glob(f"{pid}/task/*/children"):
        with suppress(OSError):  # it has ended
            children = [int(child) for child in one.read_text().split()]
            found += children + [its for child in children for its in started(child)]
    return found


def _stat(place: int | str) -> list[str]:
    """Fields of a process's or thread's /proc entry `stat` after its name: first its state."""
    try:
        return (PROCESSES / str(place) / "stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended
        return []


def _waits_for_disk() -> bool:
    """Whether a thread of this process or of a child waits for a disk."""
    each = (os.getpid(), *started(os.getpid()))
    threads = (one for pid in each for one in PROCESSES.glob(f"{pid}/task/*"))
    return any(_stat(str(thread))[:1] == ["D"] for thread in threads)


def _name(frame: FrameType) -> str:
    return frame.f_globals.get("__name__", "")


def _waits(frame: FrameType) -> bool:
    """Whether a thread waits for other ranks: it is in an exchange, below code of torch alone."""
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
    """Context in which this rank of torchrun is watched. kind: of its device."""
    import torch.distributed as dist

    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    patience = timedelta(seconds=SILENT)
    store = dist.TCPStore(  # pyright: ignore[reportPrivateImportUsage]
        host, port, wait_for_workers=False, timeout=patience
    )
    tried = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")  # the store survives a restart
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
        watch.stop()  # after an error the process ends, and torchrun sees the reason
    finally:
        _watches.remove(watch)


def _is_busy(device: int | None) -> bool:
    """Whether a GPU has unfinished work. device: None on a processor."""
    return device is not None and not torch.cuda.default_stream(device).query()


def expecting(kind: object) -> Any:
    """Context for work that takes about as long as earlier work of its kind; see `Watch`."""
    return _watches[-1].expecting(kind) if _watches else nullcontext()
