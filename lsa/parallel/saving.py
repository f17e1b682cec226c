"""Gathering a sharded model's weights, to sample with and to store as one file.

A module of its own, because it imports torch's distributed checkpoints, which is slow.
"""

from __future__ import annotations

from os import PathLike
from typing import cast

import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict


def full_state_dict(model: nn.Module) -> dict[str, Tensor]:
    """The state_dict of a sharded model: plain tensors on the CPU, under the names before sharding.

    Every rank calls it; the first gets the weights, the others an empty dictionary.
    """
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    return cast("dict[str, Tensor]", get_model_state_dict(model, options=options))


def save_safetensors(model: nn.Module, path: str | PathLike[str]) -> None:
    """Write a sharded model's weights to a file. The first rank writes; every rank calls it.

    `GPT(config).load_state_dict(safetensors.torch.load_file(path))` reads it. Needs the package
    `safetensors`.
    """
    from safetensors.torch import save_file

    weights = full_state_dict(model)
    if not dist.is_initialized() or dist.get_rank() == 0:
        save_file({name: x.contiguous() for name, x in weights.items()}, path)
