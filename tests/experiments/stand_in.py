"""A GPU's stand-in: what is asked of `cuda` is done on the CPU, and torch.cuda only pretends.

So that every line of what a lease would do on a GPU is gone through without one: a wrong name of an
attribute or of a column is found here. What it cannot tell is whether a kernel is right or fast.
"""

import sys
import time
from contextlib import contextmanager, nullcontext
from types import ModuleType, SimpleNamespace
from unittest import mock

import torch
from torch.overrides import TorchFunctionMode

from experiments import kernel_speed
from experiments.harness.bench import timing
from lsa import linear_attention

# A GPU's own cache, of 50 MiB, would be filled before each timed call.
PROPERTIES = SimpleNamespace(name="Stand-in", total_memory=80 * 2**30, L2_cache_size=2**16)


def here(value):
    """The CPU for a GPU, wherever it is named."""
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return "cpu" if isinstance(value, str) and value.split(":")[0] == "cuda" else value


class OnTheCPU(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.device:  # which device it is remains known
            return function(*args, **(kwargs or {}))
        kwargs = {name: here(value) for name, value in (kwargs or {}).items()}
        return function(*map(here, args), **kwargs)


class Generator(torch.Generator):
    def __new__(cls, device="cpu"):
        return super().__new__(cls, here(device))


class Event:
    def __init__(self, enable_timing=False):
        self.at = None

    def record(self, stream=None):
        self.at = time.perf_counter()

    def elapsed_time(self, other):
        return max(1e-3, 1e3 * (other.at - self.at))


class Stream:
    def wait_stream(self, stream):
        assert isinstance(stream, Stream)


class Graph:
    def replay(self):
        assert self.captured


@contextmanager
def capture(graph, stream=None):
    yield
    graph.captured = True


def libraries():
    """Other libraries' functions, by their names and arguments, with our own inside."""

    def plain(
        q, k, v, scale=None, initial_state=None, output_final_state=False, normalize=True, **rest
    ):
        return linear_attention(q, k, v, scale=scale, normalize=normalize), None

    def fading(q, k, v, g=None, g_gamma=None, scale=None, **rest):
        return linear_attention(q, k, v, scale=scale, normalize=False, log_decay=g), None

    names = ("chunk", "fused_chunk", "fused_recurrent")
    linear, simple = ModuleType("fla.ops.linear_attn"), ModuleType("fla.ops.simple_gla")
    for name in names:
        setattr(linear, f"{name}_linear_attn", plain)
    simple.chunk_simple_gla = fading
    fla = ModuleType("fla")
    fla.__version__ = "0.6.0"
    return {
        "fla": fla,
        "fla.ops": ModuleType("fla.ops"),
        "fla.ops.linear_attn": linear,
        "fla.ops.simple_gla": simple,
    }


@contextmanager
def stand_in():
    """Inside, torch sees a GPU that is none."""
    cuda = {
        "is_available": lambda: True,
        "synchronize": lambda device=None: None,
        "empty_cache": lambda: None,
        "memory_allocated": lambda device=None: 0,
        "max_memory_allocated": lambda device=None: 1,
        "reset_peak_memory_stats": lambda device=None: None,
        "get_device_properties": lambda device=None: PROPERTIES,
        "Event": Event,
        "Stream": Stream,
        "current_stream": lambda device=None: Stream(),
        "stream": lambda stream: nullcontext(),
        "CUDAGraph": Graph,
        "graph": capture,
    }
    autocast = torch.autocast
    elsewhere = {
        "Generator": Generator,
        "autocast": lambda kind, **rest: autocast(here(kind), **rest),
        "compile": lambda model, **rest: model,
    }
    with (
        mock.patch.multiple(torch.cuda, **cuda),
        mock.patch.multiple(torch, **elsewhere),
        mock.patch.object(torch.compiler, "reset", lambda: None),
        mock.patch.object(torch._dynamo, "reset", lambda: None),
        mock.patch.dict(sys.modules, libraries()),
        # A copy of a gibibyte and a product of a teraflop are not for a CPU.
        mock.patch.object(
            kernel_speed, "copy_rate", lambda device, size: timing.copy_rate(device, 2**16)
        ),
        mock.patch.object(
            kernel_speed,
            "matmul_rate",
            lambda device, dtype, _: timing.matmul_rate(device, dtype, 64),
        ),
        OnTheCPU(),
    ):
        yield
