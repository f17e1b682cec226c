"""Every private part of torch and of Triton that lsa uses, each with its reason.

They were read in torch 2.10 to 2.13 and in Triton 3.6 and 3.7. tests/test_compat.py holds all other
modules to public names.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

HAS_TRITON = find_spec("triton") is not None  # nothing here imports it before a kernel is needed

# The type of `torch.ops.NAMESPACE.NAME.default` has no public name.
OpOverload = torch._ops.OpOverload
# An operator under no_grad, or inside an autograd.Function, needs no autograd dispatch. Without
# this guard each call goes through the node that was registered for compilers.
below_autograd = torch._C._AutoDispatchBelowAutograd
# A mode sees operators, and counts the bytes of exchanges. torch's notes teach it, but the module
# that has it is private.
DispatchMode = TorchDispatchMode
# The exchanges between ranks as operators, which a compiler can overlap. Public functions wait
# at once, or drop the gradients of other ranks.
EXCHANGES = "_c10d_functional"
exchanges = torch.ops._c10d_functional


def is_in_function_transform() -> bool:
    """Whether torch.func is at work. It has no public question for it."""
    return torch._C._are_functorch_transforms_active()


def is_under_dispatch_mode() -> bool:
    """Whether a mode such as FakeTensorMode watches, whose tensors have no numbers to show."""
    return bool(torch._C._len_torch_dispatch_stack())


def is_traced() -> bool:
    """Whether torch.jit.trace is at work, which knows operators alone. Documented, not exported."""
    return torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]


def has_bfloat16() -> bool:
    """Whether this CPU multiplies numbers in bfloat16 by instructions of its own.

    `torch.cpu.get_capabilities` is public from torch 2.11 on.
    """
    known = getattr(torch.cpu, "get_capabilities", dict)()
    return any(known.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))


def describe_exchanges() -> None:
    """Let torch declare the shapes that `exchanges` return, for a compiler.

    In a function: it takes a moment, and only those with several ranks need it.
    """
    import torch.distributed._functional_collectives  # noqa: F401


def group_named(name: Any) -> Any:
    """The group of this name: operators are given names, not groups."""
    from torch._C._distributed_c10d import _resolve_process_group

    return _resolve_process_group(name)


def is_transformed(x: Iterable[Tensor | None]) -> bool:
    """Whether torch.func or forward-mode AD is at work, neither of which knows our operators.

    `forward_ad.unpack_dual` is public, but costs a call for each tensor: the level is asked first.
    """
    if is_in_function_transform():
        return True
    return forward_ad._current_level >= 0 and any(
        y is not None and forward_ad.unpack_dual(y).tangent is not None for y in x
    )


VERSIONS = ("3.6.", "3.7.")  # of Triton, in which triton/runtime/jit.py was read
MOST = 4096  # launches remembered of a kernel: each length of a text is another
_TENSORS = {Tensor, torch.nn.Parameter}
_PLAIN = {int, float, bool, str}


def remember_launches(package: str) -> None:
    """From now on the kernels in the package's modules, as imported so far, remember launches."""
    import triton
    from triton.runtime import JITFunction

    if not triton.__version__.startswith(VERSIONS):
        return
    for name in [name for name in sys.modules if name.startswith(f"{package}.")]:
        for kernel in vars(sys.modules[name]).values():
            if isinstance(kernel, JITFunction) and not isinstance(kernel.run, Remembered):
                kernel.run = Remembered(kernel)


class Remembered:
    """Launches a kernel again without Triton's binder, which took 10 to 18% of a call on the host.

    Measured at commit e4c73ce, both ways in turns: 10 to 13% forwards, 12 to 18% with gradients.

    The `run` of one kernel, in place of its class's. The binder looks at each of 30 to 50 arguments
    and writes down for which of their properties the kernel is compiled. For NVIDIA's GPUs its
    answer depends on no more than

    - the current device, two of Triton's knobs, and the options of the launch,
    - of a tensor its dtype, and whether its address is a multiple of 16,
    - of a number or a string its type and its value;

    see JITFunction.run and native_specialize_impl, in triton/runtime/jit.py. Launches with equal
    keys run the same binary, so we skip the binder. All other launches, and launches with any of
    Triton's hooks, go through it.
    """

    def __init__(self, kernel: Any) -> None:
        from triton import knobs
        from triton.compiler import CompiledKernel
        from triton.runtime import JITFunction, driver

        self.kernel, self._class, self._run = kernel, JITFunction, JITFunction.run
        self._compiled, self._knobs = CompiledKernel, knobs
        self._driver: Any = driver
        self._known: dict[tuple, tuple[Any, list[str], dict]] = {}
        self._places: dict[tuple[type, ...], list[int]] = {}  # where tensors stand

    def __call__(self, *args: Any, grid: Any, warmup: bool, **named: Any) -> Any:
        """Does what JITFunction.run does with the same arguments."""
        key = None
        if not warmup and type(grid) is tuple and not self._is_watched():
            key = self._key(args, named)
        if key is None:
            return self._class.run(self.kernel, *args, grid=grid, warmup=warmup, **named)
        device = key[0]
        found = self._known.get(key)
        if found is None or found[2] is not self.kernel.device_caches[device][0]:
            compiled = self._class.run(self.kernel, *args, grid=grid, warmup=warmup, **named)
            self._remember(key, compiled, args, named)
            return compiled
        compiled, rest, _ = found
        launch = compiled[grid + (1,) * (3 - len(grid))]
        others = [named[name] for name in rest]
        launch(*args, *others, stream=self._driver.active.get_current_stream(device))
        return compiled

    def _is_watched(self) -> bool:
        """Whether someone waits for launches where only the binder would find them."""
        return bool(
            self.kernel.pre_run_hooks
            or self._knobs.runtime.add_stages_inspection_hook is not None
            or self._class.run is not self._run
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
        knobs, active = self._knobs, self._driver.active
        debug = self.kernel.debug, knobs.runtime.debug, knobs.compilation.instrumentation_mode
        return active.get_current_device(), debug, kinds, tuple(named), tuple(values)

    def _remember(self, key: tuple, compiled: Any, args: tuple, named: dict[str, Any]) -> None:
        """Cache the compiled kernel if this launch can be replayed."""
        rest = self.kernel.arg_names[len(args) :]
        if (
            type(compiled) is self._compiled  # and none that is still being compiled
            and compiled.metadata.target.backend == "cuda"
            and not self.kernel.used_global_vals  # which the binder would compare
            and all(name in named for name in rest)
        ):
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[key] = compiled, rest, self.kernel.device_caches[key[0]][0]
