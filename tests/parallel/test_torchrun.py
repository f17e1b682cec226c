"""The command under torchrun: a rank that is lost ends the others, and fewer or more go on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.harness.core import record
from tests.experiments.conftest import made_corpus as made_corpus

UPDATES = "60"
# What each rank does: a tiny training run, saved as often as can be.
SCRIPT = """
import sys
from dataclasses import replace
from pathlib import Path
import torch
torch.set_num_threads(1)
from lsa.gpt import SCALES
SCALES["tiny"] = {"n_layer": 1, "n_head": 1, "d_model": 16}
from experiments import catalogue, loss_curves
from experiments.__main__ import main
from experiments.harness.core import run_files
from experiments.harness.learning import training
training.SAVE_EVERY, run_files.PARTIAL_EVERY = map(float, sys.argv[1:3])
run, *_ = loss_curves.runs("cpu", True)
small = {**run.config, "scale": "tiny", "context": 16, "span": 16, "spans": 4,
         "updates": int(sys.argv[3]), "validate_every": 50, "autocast": False}
catalogue.EXPERIMENTS["loss_curves"] = replace(
    catalogue.EXPERIMENTS["loss_curves"],
    runs=lambda kind, smoke: [replace(run, name="tiny", config=small)],
)
sys.exit(main(["run", "loss_curves", "--device", "cpu", *sys.argv[4:]]))
"""


def start(tmp_path, out, ranks):
    """The script on so many ranks of torchrun, or as one process. It saves whenever it can."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    return subprocess.Popen(
        [sys.executable, *(torchrun if ranks > 1 else []), str(script), "0", "0", UPDATES,
         "--out", str(tmp_path / out)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip


def ended(process):
    """What it said on its way to the end."""
    try:
        _, error = process.communicate(timeout=240)
    finally:
        process.kill()
    assert process.returncode == 0, error


def wait_for(found, process):
    limit = time.monotonic() + 240
    while time.monotonic() < limit and process.poll() is None:
        if result := found():
            return result
        time.sleep(0.02)
    process.terminate()  # -9 would leave its ranks behind
    raise AssertionError(process.communicate()[1])


@pytest.mark.slow
def test_a_lost_rank_ends_the_others_and_another_number_goes_on(tmp_path, made_corpus):
    ended(start(tmp_path, "one", 1))
    (expected,) = record.load(results=tmp_path / "one")
    process = start(tmp_path, "several", 2)
    wait_for(lambda: [*tmp_path.glob("several/**/*.pt")], process)
    ranks = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(ranks[-1]), signal.SIGKILL)
    began = time.monotonic()
    _, error = process.communicate(timeout=120)
    assert time.monotonic() - began < 60
    assert process.returncode and "Signal 9 (SIGKILL)" in error and "rank      : 1" in error
    assert not any(Path(f"/proc/{rank}").exists() for rank in ranks)

    ended(start(tmp_path, "several", 3))
    (found,) = [one for one in record.load(results=tmp_path / "several") if one["complete"]]
    assert len(found["provenance"]["legs"]) == 2
    ranks = found["provenance"]["ranks"]
    assert (ranks["world_size"], ranks["mesh"]) == (3, {"data": 3, "sequence": 1, "shards": 1})
    for table, columns in expected["tables"].items():
        assert found["tables"][table]["update"] == columns["update"]
        pairs = zip(found["tables"][table]["loss"], columns["loss"], strict=True)
        assert max(abs(x - y) for x, y in pairs) < 1e-4
