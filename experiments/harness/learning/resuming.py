"""Checkpoints from which a stopped training continues, on any number of ranks.

One process stores everything in one file. The ranks of a team each write their shards, with
`torch.distributed.checkpoint`, into a folder named by the update, while training continues. When
the shards are complete, a file beside them names the folder. A team can continue from the file of
one process, and one process from the shards of a team.
"""

from __future__ import annotations

import copy
import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..core import checkpoint
from ..core.checkpoint import CheckpointError
from ..core.plan import Leg

if TYPE_CHECKING:
    from .training import Training


def save(training: Training, path: Path, legs: Sequence[Leg] = (), *, wait: bool = True) -> None:
    """Write a checkpoint of a training at `path`. Every rank calls it. Raises OSError.

    legs: of the run so far, this one last.
    wait: until it is complete. Otherwise several ranks only start it, and `finish` ends it.
    """
    contents: dict[str, Any] = {
        "config": training.config,
        "corpus": training.corpus.sha256,
        "tables": copy.deepcopy(training.tables),  # a copy: they grow while shards are written
        "legs": list(legs),
    }
    if training.team.size == 1:
        contents["model"] = training.model.state_dict()
        contents["optimizer"] = training.optimizer.state_dict()
        _mark(path, contents)
        return
    from torch.distributed.checkpoint.state_dict_saver import async_save

    finish(training)
    contents["shards"] = f"{training.updates:08d}"
    folder, group = checkpoint.shards(path) / contents["shards"], training.spread.saving_group
    started = async_save(_state(training), checkpoint_id=folder, process_group=group)
    training.saving = started, path, contents
    finish(training, wait=wait)


def finish(training: Training, *, wait: bool = True) -> None:
    """Complete a checkpoint that was started. Once the first rank's shards are written, all are.

    wait: for the shards, on every rank; else do nothing until they are written. Raises OSError.
    """
    if training.saving is None or not (wait or training.saving[0].done()):
        return
    from torch.distributed.checkpoint.api import CheckpointException

    (shards, path, contents), training.saving = training.saving, None
    try:
        shards.result()
    except CheckpointException as error:
        raise OSError(28, "a rank could not write its shards", str(path)) from error
    if training.team.leads:
        _mark(path, contents)


def _mark(path: Path, contents: dict[str, Any]) -> None:
    """Record which checkpoint is the last, and remove older ones."""
    checkpoint.save(path, contents)
    folder = checkpoint.shards(path)
    for one in folder.iterdir() if folder.is_dir() else ():
        if one.name != contents.get("shards"):
            shutil.rmtree(one, ignore_errors=True)


def _state(training: Training) -> dict[str, Any]:
    """Weights and moments by the weights' names; before the first update, only weights."""
    from torch.distributed.checkpoint import state_dict as dcp

    state: dict[str, Any] = {"model": dcp.get_model_state_dict(training.model)}
    if training.updates:
        optimizer = dcp.get_optimizer_state_dict(training.model, training.optimizer)
        state["optimizer"] = optimizer
    return state


def resume(training: Training, path: Path) -> list[Leg] | None:
    """Continue from a checkpoint; returns its legs, or None if there is no checkpoint.

    Every rank calls it. Raises CheckpointError, and changes nothing, if it belongs to another run.
    """
    if not path.exists():
        return None
    kept = checkpoint.load(path, training.device)
    _check(training, kept)
    before, training.tables = training.tables, kept["tables"]
    try:
        if "shards" in kept:
            _load_shards(training, checkpoint.shards(path) / kept["shards"])
        elif training.team.size > 1:
            _load_whole(training, kept)
        else:
            training.model.load_state_dict(kept["model"])
            training.optimizer.load_state_dict(kept["optimizer"])
    except BaseException:
        training.tables = before
        raise
    training.earlier = training.updates
    return kept["legs"]


def _load_shards(training: Training, folder: Path) -> None:
    from torch.distributed.checkpoint.state_dict_loader import load

    state = _state(training)
    try:
        alone, group = training.team.size == 1, training.team.group
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "torch.distributed is disabled")  # one process
            load(state, checkpoint_id=folder, process_group=group, no_dist=alone)
    except Exception as error:  # any error in the files of one rank
        raise CheckpointError(f"its shards cannot be read ({type(error).__name__})") from error
    _give(training, state)


def _load_whole(training: Training, kept: dict[str, Any]) -> None:
    """Load weights and moments that one process stored; each rank takes its shard."""
    state: dict[str, Any] = {"model": kept["model"]}
    if training.updates:
        named = {id(p): name for name, p in training.model.named_parameters()}
        groups = training.optimizer.param_groups
        names = [named[id(p)] for group in groups for p in group["params"]]
        moments = kept["optimizer"]
        state["optimizer"] = {
            "state": {names[i]: one for i, one in moments["state"].items()},
            "param_groups": [
                {**group, "params": [names[i] for i in group["params"]]}
                for group in moments["param_groups"]
            ],
        }
    _give(training, state, full_state_dict=True)


def _give(training: Training, state: dict[str, Any], **options: Any) -> None:
    from torch.distributed.checkpoint import state_dict as dcp

    how = dcp.StateDictOptions(**options)
    dcp.set_model_state_dict(training.model, state["model"], options=how)
    if "optimizer" in state:
        dcp.set_optimizer_state_dict(
            training.model, training.optimizer, state["optimizer"], options=how
        )


def _check(training: Training, kept: dict[str, Any]) -> None:
    """Raise CheckpointError unless a checkpoint is of this training."""
    if kept.get("config") != training.config:
        raise CheckpointError("of another configuration")
    if kept["corpus"] != training.corpus.sha256:
        raise CheckpointError("of another text")
    if "model" in kept and _shapes(kept["model"]) != _shapes(training.model.state_dict()):
        raise CheckpointError("of a model with other parameters")


def _shapes(state: dict[str, torch.Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in state.items()}
