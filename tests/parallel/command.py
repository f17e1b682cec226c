"""The command, as each rank of torchrun runs it."""

import sys
from dataclasses import replace

import torch

from experiments import catalogue, loss_curves
from experiments.__main__ import main
from experiments.harness.core import run_files
from experiments.harness.learning import training
from lsa.gpt import SCALES

TEXT = {"context": 16, "span": 16, "spans": 4, "updates": 60, "validate_every": 50}


def run_command(out, saving=60.0):
    """One tiny training, saved every so many seconds. Exits with the command's status if not 0.

    saving: 0 for a checkpoint before each update.
    """
    torch.set_num_threads(1)
    SCALES["tiny"] = {"n_layer": 1, "n_head": 1, "d_model": 16}
    training.SAVE_EVERY = run_files.PARTIAL_EVERY = saving
    if not saving:
        training.SAVE_SHARE = 0
    run, *_ = loss_curves.runs("cpu", True)
    config = {**run.config, "scale": "tiny", "autocast": False, **TEXT}
    catalogue.EXPERIMENTS["loss_curves"] = replace(
        catalogue.EXPERIMENTS["loss_curves"],
        runs=lambda kind, smoke: [replace(run, name="tiny", config=config)],
    )
    if status := main(["run", "loss_curves", "--device", "cpu", "--out", out]):
        sys.exit(status)
