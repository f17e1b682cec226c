"""The command under torchrun: a rank that is lost ends the others, and fewer or more go on."""

import os
import signal
import subprocess
import sys
import time
from multiprocessing import get_context
from pathlib import Path

import pytest
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from experiments.harness.core import record
from tests.experiments.conftest import made_corpus as made_corpus
from tests.parallel.command import run_command

SCRIPT = "import sys\nfrom tests.parallel.command import run_command\n"
SCRIPT += "run_command(sys.argv[1], saving=0.0)\n"


def torchrun(tmp_path, out, ranks):
    """The command on so many ranks. It saves whenever it can."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", "--standalone",
         f"--nproc-per-node={ranks}", str(script), str(out)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip


def launch(out, ranks):
    """What torchrun does with a script, of ranks that begin as copies of this process."""
    where = {"rdzv_backend": "c10d", "rdzv_endpoint": "localhost:0", "start_method": "fork"}
    config = LaunchConfig(1, 1, ranks, run_id="tiny", max_restarts=0, **where)
    elastic_launch(config, run_command)(str(out), 0.0)


def ended(target, *args):
    """Waits for the end of a copy of this process, which imports nothing again."""
    process = get_context("fork").Process(target=target, args=args)
    process.start()
    process.join(240)
    process.kill()
    assert process.exitcode == 0


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
    one, several = tmp_path / "one", tmp_path / "several"
    ended(run_command, str(one))
    (expected,) = record.load(results=one)
    process = torchrun(tmp_path, several, 2)
    wait_for(lambda: [*several.glob("**/*.pt")], process)
    ranks = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(ranks[-1]), signal.SIGKILL)
    began = time.monotonic()
    _, error = process.communicate(timeout=120)
    assert time.monotonic() - began < 60
    assert process.returncode and "Signal 9 (SIGKILL)" in error and "rank      : 1" in error
    assert not any(Path(f"/proc/{rank}").exists() for rank in ranks)

    ended(launch, several, 3)
    (found,) = [one for one in record.load(results=several) if one["complete"]]
    assert len(found["provenance"]["legs"]) == 2
    ranks = found["provenance"]["ranks"]
    assert (ranks["world_size"], ranks["mesh"]) == (3, {"data": 3, "sequence": 1, "shards": 1})
    for table, columns in expected["tables"].items():
        assert found["tables"][table]["update"] == columns["update"]
        pairs = zip(found["tables"][table]["loss"], columns["loss"], strict=True)
        assert max(abs(x - y) for x, y in pairs) < 1e-4
