"""How a training is spread over the ranks of its team: weights sharded, windows and text parted.

An update's windows are parted over ranks. Where there are fewer windows than ranks, several ranks
hold a window, a part of it each, if its attention can be split so (`lsa.parallel`). The loss is the
mean over all tokens of the update, so that any number of ranks takes the same step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from lsa.cost.memory import WEIGHT
from lsa.gpt import GPT
from lsa.parallel import Ranks

from ..core.provenance import memory_of_rank
from ..core.team import TIMEOUT, Team
from .shapes import layout, memory_needed

Batch = tuple[Tensor, Tensor]
# Up to so many bytes of weights, gradients and moments each rank keeps all of them. One sum of
# gradients in an update costs less than to gather every block's weights twice.
REPLICATED = 10**9


class OneProcess:
    """All of a training in one process."""

    def __init__(self) -> None:
        self.mesh: dict[str, int] = {}
        self.recompute = False
        self.saving_group: Any = None  # on which shards are written while training goes on
        self.options: dict[str, Any] = {}

    def shard(self, model: GPT) -> GPT:
        """The model as it is trained."""
        return model

    def pieces(self, inputs: Tensor, targets: Tensor, micro_batches: int) -> Iterator[Batch]:
        """This process's parts of a batch, one after the other."""
        n = min(micro_batches, len(inputs))
        return zip(inputs.chunk(n), targets.chunk(n), strict=True)


class Ranked(OneProcess):
    """This rank's part of a training. Every rank makes it, at the same moment.

    Blocks are computed again for their gradients where these would not fit otherwise. Raises
    UsageError where there are more ranks than the windows of an update can be parted among.
    """

    def __init__(
        self, team: Team, model: GPT, config: dict[str, Any], device: torch.device
    ) -> None:
        super().__init__()
        data, sequence = layout(config, team.size)
        self.team, self.kind = team, device.type
        # The first rank decides: what is computed again has exchanges in it.
        self.recompute = team.first(
            lambda: memory_needed(config, team.size, recompute=False) > memory_of_rank(device)
        )
        weights = sum(p.numel() for p in model.parameters())
        shards = 1 if weights * WEIGHT <= REPLICATED else team.size
        self.mesh = {"data": data, "sequence": sequence, "shards": shards}
        self.row, self.column = divmod(team.rank, self.mesh["sequence"])
        (self.saving_group,) = new_groups(team, team.size, "gloo")
        if sequence > 1:
            self.options = {"ranks": Ranks(new_groups(team, sequence)[self.row])}

    def shard(self, model: GPT) -> GPT:
        """Weights, gradients and moments over all ranks, gathered block by block (FSDP2).

        Each rank has all of a small model, which is FSDP2 with shards of one rank.
        """
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.fsdp import fully_shard

        if self.mesh["shards"] > 1:
            mesh = DeviceMesh.from_group(self.team.group, self.kind)
        else:
            groups = [self.team.group, new_groups(self.team, 1)[self.team.rank]]
            ranks = [[rank] for rank in range(self.team.size)]
            names = "replicate", "shard"
            mesh = DeviceMesh.from_group(groups, self.kind, mesh=ranks, mesh_dim_names=names)
        for block in model.blocks:
            block.recompute = self.recompute
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
        return model

    def pieces(self, inputs: Tensor, targets: Tensor, micro_batches: int) -> Iterator[Batch]:
        """As many on each rank, some of them empty perhaps: all wait for each other."""
        data, sequence = self.mesh["data"], self.mesh["sequence"]
        n = -(-micro_batches // data)
        each = (
            x.tensor_split(data)[self.row].tensor_split(sequence, 1)[self.column].tensor_split(n)
            for x in (inputs, targets)
        )
        return zip(*each, strict=True)


def new_groups(team: Team, size: int, backend: str | None = None) -> list[Any]:
    """Groups of so many ranks in a row, on torch's backend by default. All ranks make all."""
    members = [[*range(first, first + size)] for first in range(0, team.size, size)]
    return [dist.new_group(those, timeout=TIMEOUT, backend=backend) for those in members]
