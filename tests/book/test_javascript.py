"""JavaScript in the build: one engine, whatever thread or event loop asks it."""

import asyncio
import sys
from functools import cache
from pathlib import Path
from subprocess import run
from threading import Thread

import pytest
from py_mini_racer import JSEvalException

from book import javascript

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def script(tmp_path, monkeypatch):
    """A script of a process that has run none."""
    for name in ("_engine", "_load"):
        monkeypatch.setattr(javascript, name, cache(getattr(javascript, name).__wrapped__))
    path = tmp_path / "sum.js"
    path.write_text("globalThis.runs = (globalThis.runs || 0) + 1; const sum = (a, b) => a + b;")
    return path


def test_a_script_runs_once(script):
    assert [javascript.call(script, "sum", "é", i) for i in range(3)] == ["é0", "é1", "é2"]
    assert javascript.call(script, "() => runs") == 1
    assert javascript._engine.cache_info().misses == 1


def test_what_a_script_throws_is_said(script):
    with pytest.raises(JSEvalException, match="expected more"):
        javascript.call(script, "() => { throw new RangeError('expected more'); }")


def test_a_cell_of_a_notebook_and_its_threads_are_answered(script):
    """A cell holds the kernel's event loop while it waits for a thread that asks."""

    answers = []

    def ask(a, b):
        answers.append(javascript.call(script, "sum", a, b))

    async def cell():
        ask(1, 2)
        asking = Thread(target=ask, args=(3, 4), daemon=True)
        asking.start()
        asking.join(timeout=20)

    # Playwright's loop may be running in this thread.
    kernel = Thread(target=lambda: asyncio.run(cell()), daemon=True)
    kernel.start()
    kernel.join(timeout=40)
    assert answers == [3, 7]
    assert javascript.call(script, "sum", 5, 6) == 11, "the cell's loop has ended"


def test_a_process_that_used_it_ends_without_a_signal():
    """V8 died where a thread older than itself freed it, on a processor with memory protection
    keys. Freed while the interpreter ended, it sometimes waited forever for another thread."""
    program = (
        "from book.javascript import call; from pathlib import Path; "
        "[call(Path('book/theme/vendor/katex-0.19.1/katex.min.js'), 'katex.renderToString', 'x^2')"
        " for _ in range(300)]"
    )
    ended = run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
