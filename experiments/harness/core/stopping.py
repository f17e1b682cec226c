"""Stopping cleanly: signals that ask a run to stop, and a lock that one process holds."""

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
    """A signal ended the run. number: of the signal."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Stop:
    """Records whether a signal has asked for the end.

    A first signal raises Interrupted at once, unless the run is inside `deferred` and will check
    `number` itself soon. A second signal always raises.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self._deferred = False

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Context in which the first signal only sets `number`: work must not be cut in two."""
        self._deferred = True
        try:
            yield
        finally:
            self._deferred = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Context that handles INT, TERM and HUP. Ignored signals (nohup) stay ignored."""
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
    """Hold the lock that is named by `path`; False if another process holds it.

    The system releases it when its process ends, for any reason. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    name = path.with_name(f".{path.name}.lock")
    handle = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another process may have removed the file after we opened it and before we locked it.
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
