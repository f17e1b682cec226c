"""Triton interpreted on the CPU: its names, counts of moved bytes, and stand-ins without it.

Without Triton (it has no macOS version), a kernel can still be defined. It does nothing when
launched, and a check of its result says that nothing was run.
"""

import os
from contextlib import contextmanager
from types import SimpleNamespace

if os.environ.get("TRITON_INTERPRET") != "1":
    raise ImportError("set os.environ['TRITON_INTERPRET'] = '1' before importing this")

try:
    import triton
    import triton.language as tl
except ImportError:

    class _Written:
        """A kernel that is defined and never run."""

        def __init__(self, function):
            self.function = function

        def __getitem__(self, grid):
            return lambda *arguments, **options: None

    triton = SimpleNamespace(jit=_Written, cdiv=lambda a, b: -(-a // b))
    tl = SimpleNamespace(constexpr=int)
    installed = False
else:
    installed = True

__all__ = ["check", "installed", "moved", "tl", "triton"]

ABSENT = "not run: Triton is not installed here"


def check(what, result, wanted, bound=1e-5):
    """Print the relative RMS error of `result` against `wanted`; fail if it exceeds `bound`."""
    if not installed:
        print(f"{what}: {ABSENT}")
        return
    error = (result - wanted).square().mean().sqrt() / wanted.square().mean().sqrt()
    assert error <= bound, f"{what}: relative error {error:.1e}"
    print(f"{what}: agrees, relative error {error:.0e}")


@contextmanager
def moved():
    """Count the bytes that interpreted kernels load and store inside: `with moved() as count`."""
    count = SimpleNamespace(loaded=0, stored=0)
    if not installed:
        yield count
        return
    from triton.runtime.interpreter import InterpreterBuilder as Builder

    load, store = Builder.create_masked_load, Builder.create_masked_store

    def counting_load(self, pointers, mask, *rest):
        count.loaded += _bytes(pointers, mask)
        return load(self, pointers, mask, *rest)

    def counting_store(self, pointers, value, mask, *rest):
        count.stored += _bytes(pointers, mask)
        return store(self, pointers, value, mask, *rest)

    Builder.create_masked_load, Builder.create_masked_store = counting_load, counting_store
    try:
        yield count
    finally:
        Builder.create_masked_load, Builder.create_masked_store = load, store


def _bytes(pointers, mask):
    width = pointers.get_element_ty().primitive_bitwidth // 8
    return int(mask.data.sum()) * width
