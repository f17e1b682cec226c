"""The command, as a test runs it."""

import sys
from multiprocessing import get_context
from pathlib import Path

import torch

from experiments.__main__ import main
from experiments.harness.core import record
from experiments.harness.core.plan import Session

ORIGIN = {"commit": "0", "dirty": False, "started": "then", "seconds": 3.0}


def bare_session(checkpoint=Path("none"), **changes):
    """What a run is given that is not kept: on the CPU, without a text or a bar."""
    given = {"device": torch.device("cpu"), "corpus": lambda name: None, "checkpoint": checkpoint}
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
