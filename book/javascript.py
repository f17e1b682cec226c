"""JavaScript that runs while the book is built, in an embedded V8, so that no Node is needed."""

from __future__ import annotations

import atexit
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from py_mini_racer import MiniRacer, init_mini_racer


@cache
def _engine() -> MiniRacer:
    # An engine that is created in a thread without an event loop starts its own. In a notebook it
    # would otherwise use the kernel's loop, and calls from other threads would never return.
    # V8 itself starts in the thread that will end the process. Where the processor has memory
    # protection keys, no older thread than V8's first may touch what V8 has to free.
    init_mini_racer(ignore_duplicate_init=True)
    with ThreadPoolExecutor(1) as pool:
        engine = pool.submit(MiniRacer).result()
    # Not left to the interpreter's end, where V8 would wait forever for a thread that needs it.
    atexit.register(engine.close)
    return engine


@cache
def _load(script: Path) -> None:
    _engine().eval(script.read_text(encoding="utf-8"))


def call(script: Path, function: str, *arguments) -> Any:
    """The result of `function`, an expression, for `arguments` after `script` has run.

    A process has one V8 and runs each script once. Arguments and result pass as JSON. Raises
    py_mini_racer.JSEvalException if the function throws.
    """
    _load(script)
    return _engine().call(f"({function})", *arguments)
