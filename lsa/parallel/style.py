"""A module's sequence over the ranks of a mesh, as torch's `parallelize_module` has it.

    parallelize_module(gpt, mesh, SequenceOverRanks())
    parallelize_module(model, mesh, {"layers.*.attention": SequenceOverRanks()})

Apart from the package's other names: it imports torch's tensor parallelism, which is slow.
"""

from __future__ import annotations

from functools import partial

from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor.parallel import ParallelStyle

from ..checks import one_of
from .ranks import WAYS, Ranks


class SequenceOverRanks(ParallelStyle):
    """A GPT, or one of its layers, given `ranks`. Parameters stay as they are, plain and whole.

    way: as of `Ranks`.
    """

    def __init__(self, way: str = "gather") -> None:
        super().__init__()
        one_of("way", way, WAYS)
        self.way = way

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        module.forward = partial(module.forward, ranks=Ranks(device_mesh.get_group(), self.way))
        return module
