"""Processes that do one task after another, and are replaced when they have lost their device.

An illegal access leaves a CUDA context of which every later call fails: what remains is to end the
process and go on in a fresh one. To begin each task in a fresh one would cost the import of torch
and a context, some seconds a task, so a process is kept for as long as its device answers.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any

import torch

START = "spawn"  # CUDA does not outlive a fork
LEAVING = 2.0  # seconds that a process without a task has to leave in good order


class DeviceLostError(Exception):
    """The device answers no more; only another process can go on with it."""


@dataclass(frozen=True)
class Answer:
    """What a task returned, or why it did not. lost: the device, or the process itself, is gone."""

    value: Any = None
    problem: str = ""
    lost: bool = False


def is_lost(device: torch.device) -> bool:
    """Whether a device fails at being waited for, as it does for good after a fault."""
    if device.type != "cuda":
        return False
    try:
        torch.cuda.synchronize(device)
    except Exception:
        return True
    return False


def first_line(error: BaseException) -> str:
    """An exception in a line: its kind and what it says first."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


class Worker:
    """A process for one task at a time, begun with the first and begun anew after a loss."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.process: Any = None
        self.pipe: Any = None
        self.busy = False

    def start(self) -> None:
        """Begin the process, unless it is there: what it imports takes seconds."""
        if self.process is not None:
            return
        context = multiprocessing.get_context(START)
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, self.device))
        self.process.start()
        theirs.close()

    def give(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Have the process call a module's function; its answer is to be taken before the next."""
        self.start()
        self.pipe.send((function, arguments))
        self.busy = True

    def answer(self, seconds: float | None = None) -> Answer | None:
        """What has come of the task; None when nothing has after so many seconds."""
        if not self.pipe.poll(seconds):
            return None
        self.busy = False
        try:
            found = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            found = Answer(problem=f"its process ended with {self.process.exitcode}", lost=True)
        if found.lost:
            self.end()
        return found

    def stop(self, seconds: float) -> Answer:
        """Have the task end in good order; its process is ended when it has not by then."""
        self.process.terminate()
        found = self.answer(seconds) or Answer(problem="did not end when asked to", lost=True)
        self.end()
        return found

    def end(self) -> None:
        """End the process: in good order where it has nothing to do, at once otherwise."""
        if self.process is not None:
            if not self.busy:
                with suppress(OSError):
                    self.pipe.send(None)
                self.process.join(LEAVING)
            self.process.kill()
            self.process.join()
            self.pipe.close()
            self.process = None


def in_parallel(
    function: Callable[[Any], Any], tasks: list[Any], device: torch.device, count: int
) -> Iterator[tuple[int, Answer]]:
    """The number of each task and its answer, as they come; one that loses a device costs itself.

    Whoever stops listening ends the processes.
    """
    workers = [Worker(device) for _ in range(min(count, len(tasks)))]
    waiting, at = deque(enumerate(tasks)), dict[Worker, int]()
    try:
        while waiting or at:
            for worker in [one for one in workers if one not in at][: len(waiting)]:
                i, task = waiting.popleft()
                worker.give(function, task)
                at[worker] = i
            ready = wait([worker.pipe for worker in at])
            for worker in [one for one in at if one.pipe in ready]:
                found = worker.answer()
                if found is not None:
                    yield at.pop(worker), found
    finally:
        for worker in workers:
            worker.end()


def _serve(pipe: Any, device: torch.device) -> None:
    """Do what comes through the pipe until that ends or the device is lost.

    In a session of its own, so that a signal from the keyboard reaches the parent alone, which
    says what is to end; and ended with the parent, however that ends.
    """
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    lost = False
    while not lost:
        try:
            task = pipe.recv()
        except EOFError:
            return
        if task is None:
            return
        function, arguments = task
        try:
            found = Answer(function(*arguments))
        except Exception as error:
            traceback.print_exc()
            lost = isinstance(error, DeviceLostError) or is_lost(device)
            found = Answer(problem=first_line(error), lost=lost)
        with suppress(BrokenPipeError):
            pipe.send(found)
