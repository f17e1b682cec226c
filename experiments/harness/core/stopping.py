"""Ending in good order: signals that ask a run to stop, and the lock that one process holds."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """A signal ended the run. number: which."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Stop:
    """Whether a signal has asked for the end, and whether a run looks for that itself.

    A first signal raises Interrupted where the program is, unless a run has said by `deferred`
    that it will look at `number` soon; a second one always does.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._deferred = False

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Within, the first signal only sets `number`: for work that must not be cut in two."""
        self._deferred = True
        try:
            yield
        finally:
            self._deferred = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Handle INT, TERM and HUP within. Signals that were ignored (nohup) stay ignored."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, self._handle)
            for number in SIGNALS
            if signal.getsignal(number) is not signal.SIG_IGN
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        first, self.number = self.number is None, number
        if not (first and self._deferred):
            raise Interrupted(number)


@contextmanager
def lock(path: Path) -> Iterator[bool]:
    """Hold the lock of the run stored at `path`; False when another process holds it.

    The system lets go of it when its process ends, however that ends. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    name = path.with_name(f".{path.name}.lock")
    handle = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another process may have removed the file between our opening and our locking it.
            mine = name.exists() and os.path.samestat(os.fstat(handle), name.stat())
        except BlockingIOError:
            mine = False
        try:
            yield mine
        finally:
            if mine:
                with suppress(OSError):  # a file that stays locks nothing
                    name.unlink()
    finally:
        os.close(handle)
