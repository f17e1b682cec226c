"""Triton's interpreter, quicker: its language is patched once a launch.

By itself it goes through all names of the language again at each call of a function inside a
kernel, a quarter of what the interpreted tests take, though the launch has replaced them.
"""

import inspect

import triton.language as tl
from triton.runtime import interpreter

LANGUAGE = [tl, tl.core]
patch = interpreter._patch_lang


def patch_once(fn):
    modules = [x for x in fn.__globals__.values() if inspect.ismodule(x) and x in LANGUAGE]
    # What restores it is asked for by the launch alone.
    return patch(fn) if any(tl.core.is_builtin(module.load) for module in modules) else None


interpreter._patch_lang = patch_once
