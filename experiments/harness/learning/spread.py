"""Spreading a training over the ranks of a team: weights sharded, windows and text divided.

An update's windows are divided among ranks. If there are fewer windows than ranks, several ranks
share a window, each with a part of it, if its attention can be split so (`lsa.parallel`). The loss
is the mean over all tokens of the update, so any number of ranks makes the same step.
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
# With at most this many bytes of weights, gradients and moments, each rank stores all of them. One
# all-reduce of gradients an update costs less than gathering every block's weights twice.
REPLICATED = 10**9


class OneProcess:
    """A training in one process."""

    def __init__(self) -> None:
        self.mesh: dict[str, int] = {}
        self.recompute = False
        self.saving_group: Any = None  # for writing shards while training continues
        self.options: dict[str, Any] = {}

    def shard(self, model: GPT) -> GPT:
        """The model in the form in which it is trained."""
        return model

    def pieces(self, inputs: Tensor, targets: Tensor, micro_batches: int) -> Iterator[Batch]:
        """This process's parts of a batch, one after the other."""
        n = min(micro_batches, len(inputs))
        return zip(inputs.chunk(n), targets.chunk(n), strict=True)


class Ranked(OneProcess):
    """This rank's part of a training. Every rank constructs it, at the same moment.

    Blocks are computed again for their gradients if these would not fit otherwise. Raises
    UsageError if there are more ranks than an update's windows can be divided among.
    """

    def __init__(
        self, team: Team, model: GPT, config: dict[str, Any], device: torch.device
    ) -> None:
        super().__init__()
        data, sequence = layout(config, team.size)
        self.team, self.kind = team, device.type
        # The first rank decides, because recomputed blocks contain exchanges.
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

        For a small model each rank has everything, as FSDP2 with shards of one rank.
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
        """Equally many parts on each rank, some possibly empty: ranks wait for each other."""
        data, sequence = self.mesh["data"], self.mesh["sequence"]
        n = -(-micro_batches // data)
        each = (
            x.tensor_split(data)[self.row].tensor_split(sequence, 1)[self.column].tensor_split(n)
            for x in (inputs, targets)
        )
        return zip(*each, strict=True)


def new_groups(team: Team, size: int, backend: str | None = None) -> list[Any]:
    """Groups of so many consecutive ranks, on torch's backend by default. All ranks make all."""
    members = [[*range(first, first + size)] for first in range(0, team.size, size)]
    return [dist.new_group(those, timeout=TIMEOUT, backend=backend) for those in members]
