"""The command under torchrun: a rank that is lost ends the others, and fewer or more go on."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from experiments.harness.core import checkpoint, record
from experiments.harness.core.team import exchanging
from tests.experiments.conftest import made_corpus as made_corpus
from tests.parallel.command import run_command
from tests.parallel.pool import PRELOADED

FORK = get_context("fork")
SCRIPT = "import sys\nfrom tests.parallel.command import run_command\n"
SCRIPT += "run_command(sys.argv[1], saving=0.0)\n"


@pytest.fixture(scope="module", autouse=True)
def _imported():
    """Once, instead of by each rank that begins as a copy of this process."""
    for name in PRELOADED:
        import_module(name)


def torchrun(arguments, ranks):
    """A script on so many ranks."""
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", "--standalone",
         f"--nproc-per-node={ranks}", *arguments],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip


def ranks_of(process):
    """The processes that torchrun has started, in order."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(one) for one in children.split()]


def launch(target, ranks, *args):
    """What torchrun does with a script, of ranks that begin as copies of this process."""
    where = {"rdzv_backend": "c10d", "rdzv_endpoint": "localhost:0", "start_method": "fork"}
    config = LaunchConfig(1, 1, ranks, run_id="tiny", max_restarts=0, **where)
    elastic_launch(config, target)(*args)


def ended(target, *args):
    """Waits for the end of a copy of this process, which imports nothing again."""
    process = FORK.Process(target=target, args=args)
    process.start()
    process.join(240)
    process.kill()
    assert process.exitcode == 0


def updates_kept(out):
    """The update of the last whole checkpoint of several ranks, and 0 before the first."""
    for path in out.glob("**/.checkpoints/tiny.pt"):
        with suppress(checkpoint.CheckpointError):  # it may be replaced by the next
            return int(checkpoint.load(path, torch.device("cpu"))["shards"])
    return 0


def wait_for(found, process, is_alive):
    limit, running = time.monotonic() + 240, True
    while not found():
        if not running:
            process.terminate()  # -9 would leave its ranks behind
            raise AssertionError("what was waited for did not come")
        running = is_alive() and time.monotonic() < limit
        time.sleep(0.2)  # what is waited for needs the processors


@pytest.mark.slow
def test_a_lost_rank_ends_the_others_and_another_number_goes_on(tmp_path, made_corpus):
    one, several = tmp_path / "one", tmp_path / "several"
    ended(run_command, str(one))
    (expected,) = record.load(results=one)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    process = torchrun([str(script), str(several)], 2)
    middle = lambda: updates_kept(several) >= 5  # noqa: E731
    wait_for(middle, process, lambda: process.poll() is None)
    ranks = ranks_of(process)
    os.kill(ranks[-1], signal.SIGKILL)
    began = time.monotonic()
    _, error = process.communicate(timeout=120)
    assert time.monotonic() - began < 60
    assert process.returncode and "Signal 9 (SIGKILL)" in error and "rank      : 1" in error
    assert not any(Path(f"/proc/{rank}").exists() for rank in ranks)
    kept = updates_kept(several)
    assert 5 <= kept < 60

    ended(launch, run_command, 3, str(several))
    (found,) = [one for one in record.load(results=several) if one["complete"]]
    assert len(found["provenance"]["legs"]) == 2
    ranks = found["provenance"]["ranks"]
    assert (ranks["world_size"], ranks["mesh"]) == (3, {"data": 3, "sequence": 1, "shards": 1})
    tokens, seconds = 4 * 16 * (60 - kept), sum(found["tables"]["train"]["seconds"][kept:])
    assert ranks["tokens_per_second"] == pytest.approx(tokens / 3 / seconds, rel=1e-3)
    for table, columns in expected["tables"].items():
        assert found["tables"][table]["update"] == columns["update"]
        pairs = zip(found["tables"][table]["loss"], columns["loss"], strict=True)
        assert max(abs(x - y) for x, y in pairs) < 1e-4


def test_torchs_error_about_a_lost_rank_is_one_line():
    """What gloo said of a killed rank and of a stopped one; another error stays as it is."""
    killed = "[gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:9111. This is"
    stopped = "[gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 3000ms for recv"
    other = "sizes do not match"
    for said, error in ((killed, OSError), (stopped, OSError), (other, RuntimeError)):
        with pytest.raises(error) as found, exchanging():
            raise RuntimeError(said)
        lost = "an exchange broke off: another rank was lost, or hangs"
        assert str(found.value) == (said if said == other else lost)
