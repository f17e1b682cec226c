"""A remembered launch hands over what Triton's binder would, and asks the binder when in doubt.

Nothing is compiled or run: what is compiled is replaced by a record of what it was launched with.
"""

import itertools
import sys
from collections import defaultdict
from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("triton")

import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import CompiledKernel, LazyDict
from triton.runtime import JITFunction, driver

from experiments.harness.bench.compiling import record_launches
from lsa import compat, operators
from lsa.attention.triton import attention, recurrent
from lsa.attention.triton.chunked import passes as chunked
from lsa.attention.triton.chunked import sums as segment_sums
from lsa.compat import Remembered, remember_launches
from lsa.scans.kernels import selective
from tests.kernels.cases import empty_call

PACKAGES = "lsa.attention.triton", "lsa.scans.kernels"
KERNELS = {
    kernel
    for name in [name for name in sys.modules if name.startswith(PACKAGES)]
    for kernel in vars(sys.modules[name]).values()
    if isinstance(kernel, JITFunction) and kernel.__name__.endswith("_kernel")
}


@pytest.fixture
def gpu(monkeypatch):
    """A GPU of paper. asked: the kernels whose binder was; launched: each with its arguments."""
    gpu = SimpleNamespace(device=0, asked=[], launched=[])

    def do_compile(self, key, signature, device, constexprs, options, attrs, warmup):
        kernel = CompiledKernel.__new__(CompiledKernel)
        kernel.metadata = SimpleNamespace(target=GPUTarget("cuda", 90, 32))
        kernel.module, kernel.function, kernel.name = object(), object(), key
        kernel.src, kernel.packed_metadata = None, ("packed", key)
        kernel._run = lambda *handed: gpu.launched.append((self.__name__, handed))
        self.device_caches[device][0][key] = kernel
        return kernel

    def create_binder(self, real=JITFunction.create_binder):
        *rest, binder = real(self)

        def counted(*args, **named):
            gpu.asked.append(self.__name__)
            return binder(*args, **named)

        return (*rest, counted)

    stand_in = SimpleNamespace(
        get_current_device=lambda: gpu.device,
        get_current_stream=lambda device: 70 + device,
        get_current_target=lambda: GPUTarget("cuda", 90, 32),
    )
    monkeypatch.setattr(driver, "_active", stand_in)
    monkeypatch.setattr(JITFunction, "_do_compile", do_compile)
    monkeypatch.setattr(JITFunction, "create_binder", create_binder)
    for kernel in KERNELS:
        monkeypatch.setattr(kernel, "device_caches", defaultdict(kernel.create_binder))
        monkeypatch.setitem(vars(kernel), "run", Remembered(kernel))
    return gpu


def is_same(x, y):
    """Whether two arguments of a launch are: the same tensor, hook or kernel, the same number."""
    if isinstance(x, (int, float, str, tuple)):
        return type(x) is type(y) and x == y
    return x is y or (isinstance(x, LazyDict) and x.data == y.data)


def launch_twice(gpu, call, monkeypatch):
    """The kernels that `call` launches again; each as the binder would launch it then."""
    call()
    seen = []

    def both(remembered, *args, real=Remembered.__call__, **options):
        before = len(gpu.asked)
        found = real(remembered, *args, **options)
        assert len(gpu.asked) == before, f"{remembered.kernel.__name__}: the binder was asked"
        assert JITFunction.run(remembered.kernel, *args, **options) is found
        (name, fast), (_, slow) = gpu.launched[-2:]
        assert len(fast) == len(slow) == 9 + len(remembered.kernel.arg_names)
        assert all(map(is_same, fast, slow)), name
        seen.append(name)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Remembered, "__call__", both)
        call()
    return seen


def attention_call(mode, dtype, **options):
    problem, given = empty_call(2, 700, 1, 48, dtype, device="cpu", **options)
    cut = {"cut": (6, 128)} if mode is chunked else {}
    return lambda: mode.backward(problem, mode.forward(problem, **cut), *given, **cut)


def scan_call(dtype, states):
    def new(*shape):
        return torch.empty(shape, dtype=dtype)

    u, A, h = new(2, 300, 24), new(24, 4), new(2, 24, 4) if states else None
    problem = selective.Problem(u, u, A, new(2, 300, 4), new(2, 300, 4), h, "euler")

    def call():
        y, last, kept = selective.forward(problem, keep=True, cut=(3, 128))
        selective.backward(problem, kept, y, last if states else None, cut=(3, 128))

    return call


def test_every_launch_is_the_binders(gpu, monkeypatch):
    seen = set()
    names = ("feature_map", "normalize", "states", "decay")
    for mode, dtype, *values in itertools.product(
        (attention, recurrent, chunked), (torch.bfloat16, torch.float32),
        ("identity", "softplus"), *3 * [(False, True)],
    ):  # fmt: skip
        options = dict(zip(names, values, strict=True))
        again = launch_twice(gpu, attention_call(mode, dtype, **options), monkeypatch)
        plain = not options["normalize"] and not options["decay"]
        assert len(again) > 3 or (mode is chunked and plain)
        seen.update(again)
    for dtype, states in itertools.product((torch.bfloat16, torch.float32), (False, True)):
        seen.update(launch_twice(gpu, scan_call(dtype, states), monkeypatch))
    assert seen == {kernel.__name__ for kernel in KERNELS}


class Launch:
    """A launch of delta_kernel, again and again."""

    def __init__(self, gpu, T=32):
        self.gpu, self.kernel = gpu, segment_sums.delta_kernel
        x = torch.empty(T * 2 * 16 + 1)
        self.o = x[:-1].view(1, T, 2, 16)
        self.off_by_four = x[1:].view(1, T, 2, 16)
        self.delta = torch.empty(1, T, 2)
        self.numbers = [T * 32, 32, 16, T * 32, 32, 16, T, 2, 16, 32, 16]

    def asks(self, o=None, number=None, grid=(1,), **options):
        """Whether the binder was asked. number: in place of o's stride over the batch."""
        o, numbers = self.o if o is None else o, list(self.numbers)
        if number is not None:
            numbers[0] = number
        before = len(self.gpu.asked), len(self.gpu.launched)
        self.kernel[grid](o, self.o, self.delta, *numbers, **{"num_warps": 4, **options})
        assert len(self.gpu.launched) == before[1] + 1
        return len(self.gpu.asked) > before[0]


def test_the_binder_is_asked_when_something_is_new(gpu, monkeypatch):
    launch = Launch(gpu)
    assert launch.asks()
    assert not launch.asks()
    news = [
        {"o": launch.o.double()},
        {"number": 1},
        {"number": True},
        {"number": 1.0},
        {"number": 7},
        {"number": 2**31},
        {"num_warps": 8},
        {"num_stages": 2},
    ]
    for new in news:
        assert launch.asks(**new), new
        assert not launch.asks(**new), new
    assert len({id(handed[4]) for _, handed in gpu.launched}) == 1 + len(news)
    for place, name, value in (
        (gpu, "device", 1),
        (knobs.runtime, "debug", True),
        (knobs.compilation, "instrumentation_mode", "some"),
        (launch.kernel, "debug", True),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, value)
            assert launch.asks(), name
            assert not launch.asks(), name
            assert gpu.launched[-1][1][3] == 70 + gpu.device
        assert not launch.asks(), name
    launch.kernel.device_caches.clear()
    assert launch.asks()
    assert not launch.asks()


def test_the_binder_is_always_asked_for_what_is_not_known(gpu, monkeypatch):
    launch = Launch(gpu)
    for _ in range(2):
        assert launch.asks()
        assert launch.asks(launch.off_by_four)
        assert launch.asks(None, None, lambda bound: (1,))
        assert launch.asks(SimpleNamespace(data_ptr=launch.o.data_ptr, dtype=torch.float32))
        launch.kernel.device_caches.clear()
    hooked = []
    for hook in (
        (launch.kernel, "pre_run_hooks", [lambda *_, **__: hooked.append(1)]),
        (knobs.runtime, "add_stages_inspection_hook", lambda *_: ("key", "hash")),
        (launch.kernel, "used_global_vals", {("torch", 0): (torch, {"torch": torch})}),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(*hook)
            launch.kernel.device_caches.clear()
            assert launch.asks()
            assert launch.asks()
    assert hooked == [1, 1]
    assert launch.asks()
    assert len(record_launches(lambda: launch.kernel[(1,)](launch.o, num_warps=4))) == 1
    assert not launch.asks()


def test_hooks_around_a_launch_are_handed_on(gpu, monkeypatch):
    launch, hook = Launch(gpu), knobs.HookChain()
    launch.asks()
    monkeypatch.setattr(knobs.runtime, "launch_enter_hook", hook)
    assert not launch.asks(grid=(5, 3))
    handed = gpu.launched[-1][1]
    assert handed[:4] == (5, 3, 1, 70)
    assert handed[6].get()["function"] is handed[4]
    assert handed[7] is hook


def test_few_launches_are_kept(gpu, monkeypatch):
    monkeypatch.setattr(compat, "MOST", 3)
    launch = Launch(gpu)
    assert [launch.asks(number=n) for n in (2, 3, 4, 4, 5, 5, 2)] == [1, 1, 1, 0, 1, 0, 1]


def test_operators_remember_launches_of_known_versions_alone(monkeypatch):
    for kernel in KERNELS:
        monkeypatch.delitem(vars(kernel), "run", raising=False)
    monkeypatch.setattr(triton, "__version__", "3.8.0")
    for package in PACKAGES:
        remember_launches(package)
    assert not any("run" in vars(kernel) for kernel in KERNELS)
    monkeypatch.undo()
    operators.triton_module.cache_clear()
    for package, module in zip(PACKAGES, ("chunked", "selective"), strict=True):
        assert operators.triton_module(package, module) is sys.modules[f"{package}.{module}"]
    assert all(isinstance(kernel.run, Remembered) for kernel in KERNELS)
