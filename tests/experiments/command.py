"""The command, as a test runs it."""

import sys
from multiprocessing import get_context
from pathlib import Path

import torch

from experiments.__main__ import main
from experiments.harness.core import record
from experiments.harness.core.plan import Session
from experiments.harness.core.weights import read_arrays, read_weights
from lsa.gpt import GPT, gpt_config

CPU = torch.device("cpu")
ORIGIN = {"commit": "0", "dirty": False, "started": "then", "seconds": 3.0}


def bare_session(checkpoint=Path("none"), **changes):
    """What a run is given that is not kept: on the CPU, without a text or a bar."""
    given = {"device": CPU, "corpus": lambda name: None, "checkpoint": checkpoint}
    given |= {"save": lambda tables: None, "show": lambda *_: None}
    return Session(**given | changes)


def go_on(session, tables):
    """Gives a session what an earlier attempt with the same code has left."""
    session.kept = {"provenance": ORIGIN, "tables": tables}
    return session


def smoke(tmp_path, *arguments):
    return main(["run", *arguments, "--smoke", "--device", "cpu", "--out", str(tmp_path / "out")])


def performed(tmp_path, experiment, *only):
    """The records of an experiment's small runs."""
    assert smoke(tmp_path, experiment, *(f"--only={one}" for one in only)) == 0
    return record.load(experiment, tmp_path / "out")


def nano(attention="linear", options=None, **changes):
    """A GPT of bytes without a table of positions, by default of the smallest size."""
    torch.manual_seed(0)
    shape = {"vocab_size": 256, "n_positions": None, "attention_options": options or {}}
    return GPT(gpt_config("nano", attention=attention, **shape | changes))


def with_arrays(tmp_path, experiment):
    """The record of an experiment's one small run, and the arrays that it left beside it."""
    (found,) = performed(tmp_path, experiment)
    (path,) = record.paths(tmp_path / "out", experiment)
    return found, read_arrays(read_weights(path, found))


def gpu(out, *more):
    return main(["gpu", "--device", "cpu", "--smoke", "--out", str(out), *more])


def forked(said, *arguments):
    """The command in a process that begins as a copy of this one, and so imports nothing again.

    What it says goes to a file.
    """

    def run():
        sys.stdout = sys.stderr = said.open("a", buffering=1)
        sys.exit(main(arguments))

    process = get_context("fork").Process(target=run)
    process.start()
    return process
