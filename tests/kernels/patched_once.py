"""pytest plugin for test_interpreter.py: Triton's interpreter without four repeated steps.

They cost most of a run. It replaces Triton's language anew for each function that a kernel calls,
computes each sum of integers a second time to find overflows, which these sizes cannot have, makes
a table of all types to look up one, and describes the shape of each tensor anew.
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
    tl.block_type.__init__ = by_shape(tl.block_type.__init__)
    tl.tensor.__init__ = with_shape_of_type


def by_name(np_dtype):
    found = {}  # pointers have no hash

    def one(type):
        if type.name not in found:
            found[type.name] = np_dtype(type)
        return found[type.name]

    return one


def by_shape(describe):
    found = {}

    def init(self, element_ty, shape):
        key = element_ty.name, *(getattr(size, "value", size) for size in shape)
        if key not in found:
            describe(self, element_ty, shape)
            sizes = tl.tuple([tl.constexpr(size) for size in self.shape])
            found[key] = {**vars(self), "of_tensor": (sizes, tl.constexpr(self.numel))}
        vars(self).update(found[key])

    return init


SCALAR = tl.tuple([]), tl.constexpr(1)


def with_shape_of_type(self, handle, type):
    """As tensor.__init__, which makes the shape of each tensor of a type anew."""
    self.handle, self.type, self.dtype = handle, type, type.scalar
    self.shape, self.numel = type.of_tensor if type.is_block() else SCALAR
