"""Every private part of torch and of Triton that lsa uses, each with its reason.

They were read in torch 2.10 to 2.13 and in Triton 3.6 and 3.7. tests/test_compat.py allows all
other modules public names only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

HAS_TRITON = find_spec("triton") is not None  # nothing here imports it before a kernel is needed

# The type of `torch.ops.NAMESPACE.NAME.default` has no public name.
OpOverload = torch._ops.OpOverload
# An operator under no_grad, or inside an autograd.Function, needs no autograd dispatch. Without
# this guard each call goes through the autograd node that was registered for torch.compile.
below_autograd = torch._C._AutoDispatchBelowAutograd
# A dispatch mode sees every operator; we use one to count the bytes of exchanges. torch's notes
# explain it, but its module is private.
DispatchMode = TorchDispatchMode
# The exchanges between ranks as operators, which torch.compile can overlap with other work. The
# public functions wait at once, or drop the gradients of other ranks.
EXCHANGES = "_c10d_functional"
exchanges = torch.ops._c10d_functional


def is_in_function_transform() -> bool:
    """Whether a torch.func transform is active. torch has no public function for it."""
    return torch._C._are_functorch_transforms_active()


def is_batched(x: Tensor | None) -> bool:
    """Whether `torch.autograd.grad(..., is_grads_batched=True)` made x.

    It has a vmap of its own: its tensors have no memory, and torch.func does not know of them.
    """
    functorch = torch._C._functorch  # pyright: ignore[reportAttributeAccessIssue]
    return x is not None and functorch.is_legacy_batchedtensor(x)


def is_under_dispatch_mode() -> bool:
    """Whether a mode such as FakeTensorMode is active, whose tensors have no data."""
    return bool(torch._C._len_torch_dispatch_stack())


def is_traced() -> bool:
    """Whether torch.jit.trace is active, which records operators only. Documented, not exported."""
    return torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]


def has_bfloat16() -> bool:
    """Whether this CPU has instructions for products in bfloat16.

    `torch.cpu.get_capabilities` is public from torch 2.11 on.
    """
    known = getattr(torch.cpu, "get_capabilities", dict)()
    return any(known.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))


def describe_exchanges() -> None:
    """Register the result shapes of `exchanges` for torch.compile.

    Done on demand: the import takes a moment, and only programs with several ranks need it.
    """
    import torch.distributed._functional_collectives  # noqa: F401


def mark_constant(function: Any) -> Any:
    """Have torch.compile call a function while it traces, and take the result as a constant.

    `torch.compiler.assume_constant_result` sets the same mark, and first imports the compiler and
    with it torch.distributed, which takes seconds.
    """
    function._dynamo_marked_constant = True
    return function


def register_state(
    kind: type, flatten: Callable, unflatten: Callable, names: Sequence[str]
) -> None:
    """Let torch's functions of trees see the tensors in a class, as they see those in a tuple.

    flatten: from an object to (its tensors, the rest). unflatten: from both to an object.
    names: of the tensors, in paths. The public `torch.export.register_dataclass` would take every
    field as it is, spare memory too.
    """
    keys = [_pytree.GetAttrKey(name) for name in names]

    def with_keys(state: Any) -> tuple[list, Any]:
        parts, rest = flatten(state)
        return [*zip(keys, parts, strict=False)], rest

    _pytree.register_pytree_node(
        kind,
        flatten,
        unflatten,
        serialized_type_name=f"{kind.__module__}.{kind.__qualname__}",
        flatten_with_keys_fn=with_keys,
    )


def group_named(name: Any) -> Any:
    """The process group of this name: operators take names, not groups."""
    from torch._C._distributed_c10d import _resolve_process_group

    return _resolve_process_group(name)


def is_transformed(x: Iterable[Tensor | None]) -> bool:
    """Whether torch.func or forward-mode AD is active, neither of which knows our operators.

    `forward_ad.unpack_dual` is public, but costs a call for each tensor, so the level is read
    first.
    """
    if is_in_function_transform():
        return True
    return forward_ad._current_level >= 0 and any(
        y is not None and forward_ad.unpack_dual(y).tangent is not None for y in x
    )


VERSIONS = ("3.6.", "3.7.")  # of Triton, in which triton/runtime/jit.py was read
MOST = 4096  # launches remembered of a kernel: each text length adds one
_TENSORS = {Tensor, torch.nn.Parameter}
_PLAIN = {int, float, bool, str}


def remember_launches(package: str) -> None:
    """Let the kernels in the package's modules, as imported so far, remember their launches."""
    import triton
    from triton.runtime import JITFunction

    if not triton.__version__.startswith(VERSIONS):
        return
    for name in [name for name in sys.modules if name.startswith(f"{package}.")]:
        for kernel in vars(sys.modules[name]).values():
            if isinstance(kernel, JITFunction) and not isinstance(kernel.run, Remembered):
                kernel.run = Remembered(kernel)


class Remembered:
    """A kernel's `run` without Triton's binder, which took 10 to 18% of a call on the host.

    Measured at commit e4c73ce, both variants alternating: 10 to 13% forwards, 12 to 18% with
    gradients.

    It replaces the `run` of one kernel. The binder inspects each of 30 to 50 arguments, and finds
    the properties that the kernel is compiled for. For NVIDIA's GPUs these depend only on

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
        """Launch as JITFunction.run does with the same arguments."""
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
        """Whether a hook expects launches to go through the binder."""
        return bool(
            self.kernel.pre_run_hooks
            or self._knobs.runtime.add_stages_inspection_hook is not None
            or self._class.run is not self._run
        )

    def _key(self, args: tuple, named: dict[str, Any]) -> tuple | None:
        """The properties that the compiled kernel depends on; None if they are not known."""
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
        """Cache the compiled kernel, if this launch can be replayed."""
        rest = self.kernel.arg_names[len(args) :]
        if (
            type(compiled) is self._compiled  # not one that is still being compiled
            and compiled.metadata.target.backend == "cuda"
            and not self.kernel.used_global_vals  # whose values the binder would compare
            and all(name in named for name in rest)
        ):
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[key] = compiled, rest, self.kernel.device_caches[key[0]][0]
