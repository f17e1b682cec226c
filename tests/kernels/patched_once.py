"""pytest plugin for test_interpreter.py: Triton's interpreter without three repeated steps.

They cost half of a run. It replaces Triton's language anew for each function that a kernel calls,
computes each sum of integers a second time to find overflows, which these sizes cannot have, and
makes a table of all types to look up one.
"""

from dataclasses import replace
from types import SimpleNamespace

from triton import language as tl
from triton.runtime import interpreter


def pytest_configure() -> None:
    # Patches both modules of the language once, for all functions.
    interpreter._patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    interpreter._patch_lang = lambda fn: interpreter._LangPatchScope()
    interpreter._get_np_dtype = by_name(interpreter._get_np_dtype)
    builder = interpreter.interpreter_builder
    builder.options = replace(builder.options, sanitize_overflow=False)


def by_name(np_dtype):
    found = {}  # pointers have no hash

    def one(type):
        if type.name not in found:
            found[type.name] = np_dtype(type)
        return found[type.name]

    return one
