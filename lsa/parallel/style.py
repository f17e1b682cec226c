"""Sequence parallelism over a mesh, as a style for torch's `parallelize_module`.

    parallelize_module(gpt, mesh, SequenceOverRanks())
    parallelize_module(model, mesh, {"layers.*.attention": SequenceOverRanks()})

A module of its own, because it imports torch's tensor parallelism, which is slow.
"""

from __future__ import annotations

from functools import partial

from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor.parallel import ParallelStyle

from ..checks import one_of
from .ranks import WAYS, Ranks


class SequenceOverRanks(ParallelStyle):
    """Calls a GPT, or one of its layers, with `ranks`. Its parameters stay plain and whole.

    way: as for `Ranks`.
    """

    def __init__(self, way: str = "gather") -> None:
        super().__init__()
        one_of("way", way, WAYS)
        self.way = way

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        module.forward = partial(module.forward, ranks=Ranks(device_mesh.get_group(), self.way))
        return module
