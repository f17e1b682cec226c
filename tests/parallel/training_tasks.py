"""Trainings that the workers of the pool share, and what they leave."""

import os
from pathlib import Path

import torch

from experiments.harness.core.team import Team
from experiments.harness.learning import resuming, spread, training
from experiments.harness.learning.corpora import load_corpus
from lsa import gpt
from tests.parallel.pool import GROUPS, SAVING


class Exact(training.Training):
    """A training that keeps its losses as they are, not rounded."""

    def _gradients(self, update):
        loss = super()._gradients(update)
        self.exact = [*getattr(self, "exact", []), loss.item()]
        return loss


def replicated(group, *args):
    """The same where each rank has all weights."""
    return train(group, *args, replicated=True)


def recompute(group, *args):
    """The same where memory is short, and how often a block was computed."""
    computed = []
    given = spread.memory_of_rank, gpt.Block._whole
    spread.memory_of_rank = lambda device: 0
    gpt.Block._whole = lambda *args: computed.append(1) or given[1](*args)
    try:
        return *train(group, *args), len(computed)
    finally:
        spread.memory_of_rank, gpt.Block._whole = given


def train(group, cache, config, dtype, updates, checkpoint=None, keep_at=None, *, replicated=False):
    """Losses of each update, after going on from a checkpoint if there is one, and the mesh.

    keep_at: the update after which a checkpoint is written. group: None, this process alone.
    """
    spread.REPLICATED = 10**9 if replicated else 0
    os.environ["LSA_CACHE"] = cache
    team = Team() if group is None else Team(group.rank(), group.size(), group)
    training.here = lambda: team
    spread.new_groups = lambda team, size, backend=None: [
        (GROUPS if backend is None else SAVING)[tuple(range(first, first + size))]
        for first in range(0, team.size, size)
    ]
    torch.set_default_dtype(dtype)
    try:
        one = Exact(config, load_corpus("novels"), torch.device("cpu"))
        if checkpoint is not None:
            resuming.resume(one, Path(checkpoint))
        while one.updates < updates:
            one.update()
            if one.updates == keep_at:
                # The next update changes the weights.
                resuming.save(one, Path(checkpoint), wait=False)
        validation = one.validate()
        resuming.finish(one)
    finally:
        torch.set_default_dtype(torch.float32)
    return one.exact, validation, one.spread.mesh
