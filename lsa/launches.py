"""Launching a kernel once more without asking Triton's binder again what to launch.

The binder looks at each of 30 to 50 arguments, writes down for which of their properties the
kernel is compiled, and looks that up: much of what a launch costs on the host. In the versions
named here, for NVIDIA's GPUs, what it finds depends on no more than

- the current device, two of Triton's knobs, and the options of the launch,
- of a tensor its dtype, and whether its address is a multiple of 16,
- of a number or a string its type and its value;

JITFunction.run and native_specialize_impl, in triton/runtime/jit.py, are where to read that. So
what was compiled for one launch is what another with the same of these is to launch, and takes
its arguments in the order of the kernel's parameters. Whatever else comes, and any of Triton's
hooks before a launch, goes through the binder. experiments/host_time.py times calls so launched.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
import triton
from torch import Tensor
from triton import knobs
from triton.compiler import CompiledKernel
from triton.runtime import JITFunction, driver

VERSIONS = ("3.6.", "3.7.")  # in which both files were read
MOST = 4096  # launches remembered of a kernel: each length of a text is another
_TENSORS = {Tensor, torch.nn.Parameter}
_PLAIN = {int, float, bool, str}
_run = JITFunction.run


def remember_launches(package: str) -> None:
    """From now on the kernels in the package's modules, as imported so far, remember launches."""
    if not triton.__version__.startswith(VERSIONS):
        return
    for name in [name for name in sys.modules if name.startswith(f"{package}.")]:
        for kernel in vars(sys.modules[name]).values():
            if isinstance(kernel, JITFunction) and not isinstance(kernel.run, Remembered):
                kernel.run = Remembered(kernel)


class Remembered:
    """The `run` of one kernel, in place of its class's."""

    def __init__(self, kernel: JITFunction) -> None:
        self.kernel = kernel
        self._known: dict[tuple, tuple[CompiledKernel, list[str], dict]] = {}
        self._places: dict[tuple[type, ...], list[int]] = {}  # where tensors stand

    def __call__(self, *args: Any, grid: Any, warmup: bool, **named: Any) -> Any:
        """What JITFunction.run does with the same arguments."""
        key = None
        if not warmup and type(grid) is tuple and not self._is_watched():
            key = self._key(args, named)
        if key is None:
            return JITFunction.run(self.kernel, *args, grid=grid, warmup=warmup, **named)
        device = key[0]
        found = self._known.get(key)
        if found is None or found[2] is not self.kernel.device_caches[device][0]:
            compiled = JITFunction.run(self.kernel, *args, grid=grid, warmup=warmup, **named)
            self._remember(key, compiled, args, named)
            return compiled
        compiled, rest, _ = found
        active: Any = driver.active
        launch = compiled[grid + (1,) * (3 - len(grid))]
        others = [named[name] for name in rest]
        launch(*args, *others, stream=active.get_current_stream(device))
        return compiled

    def _is_watched(self) -> bool:
        """Whether someone waits for launches where only the binder would find them."""
        return bool(
            self.kernel.pre_run_hooks
            or knobs.runtime.add_stages_inspection_hook is not None
            or JITFunction.run is not _run
        )

    def _key(self, args: tuple, named: dict[str, Any]) -> tuple | None:
        """All that the compiled kernel depends on; None where that is not known."""
        values = [*args, *named.values()]
        kinds = tuple(map(type, values))
        places = self._places.get(kinds)
        if places is None:
            if not _TENSORS.union(_PLAIN).issuperset(kinds):
                return None
            places = [i for i, kind in enumerate(kinds) if kind in _TENSORS]
            self._places[kinds] = places
        addresses = 0
        for i in places:
            x = values[i]
            addresses |= x.data_ptr()
            values[i] = x.dtype
        if addresses % 16:
            return None
        debug = self.kernel.debug, knobs.runtime.debug, knobs.compilation.instrumentation_mode
        active: Any = driver.active
        return active.get_current_device(), debug, kinds, tuple(named), tuple(values)

    def _remember(self, key: tuple, compiled: Any, args: tuple, named: dict[str, Any]) -> None:
        """Cache the compiled kernel if this launch can be replayed."""
        rest = self.kernel.arg_names[len(args) :]
        if (
            type(compiled) is CompiledKernel  # and none that is still being compiled
            and compiled.metadata.target.backend == "cuda"
            and not self.kernel.used_global_vals  # which the binder would compare
            and all(name in named for name in rest)
        ):
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[key] = compiled, rest, self.kernel.device_caches[key[0]][0]
