"""pytest plugin for test_interpreter.py: Triton's interpreter without two repeated steps.

Both cost half of a run. It replaces Triton's language anew for each function that a kernel calls,
and it computes each sum of integers a second time to find overflows, which these sizes cannot have.
"""

from dataclasses import replace
from types import SimpleNamespace

from triton import language as tl
from triton.runtime import interpreter


def pytest_configure() -> None:
    # Patches both modules of the language once, for all functions.
    interpreter._patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    interpreter._patch_lang = lambda fn: interpreter._LangPatchScope()
    builder = interpreter.interpreter_builder
    builder.options = replace(builder.options, sanitize_overflow=False)
