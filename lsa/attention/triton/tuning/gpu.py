"""The GPU that a launch is planned for, or a stand-in if there is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache

import torch


@dataclass(frozen=True)
class Gpu:
    """A GPU. capability: its compute capability. multiprocessors: how many it has."""

    capability: tuple[int, int]
    multiprocessors: int

    @property
    def large(self) -> bool:
        """Whether a program may use 227 KiB of shared memory and wgmma: Hopper, its successor."""
        return self.capability[0] in (9, 10)


AMPERE, HOPPER = Gpu((8, 0), 108), Gpu((9, 0), 132)  # an A100; an H100 or H200
_stand_in = ContextVar("stand_in", default=HOPPER)


@contextmanager
def planned_for(gpu: Gpu) -> Iterator[None]:
    """Context in which calls on tensors that are on no GPU are planned as for `gpu`."""
    token = _stand_in.set(gpu)
    try:
        yield
    finally:
        _stand_in.reset(token)


def gpu_of(device: torch.device) -> Gpu:
    """The GPU of a device, or the stand-in if the device is none."""
    return _cuda(device) if device.type == "cuda" else _stand_in.get()


@lru_cache(maxsize=64)
def _cuda(device: torch.device) -> Gpu:
    return Gpu(
        torch.cuda.get_device_capability(device),
        torch.cuda.get_device_properties(device).multi_processor_count,
    )
