"""A GPU for a few minutes, rehearsed on a CPU: what is run, packed, brought home and told."""

import json
import multiprocessing
import os
import pickle
import random
import signal
import tarfile
import threading
import time

import pytest

from experiments import __main__ as command
from experiments.catalogue import EXPERIMENTS
from experiments.harness.bench import errors
from experiments.harness.core import lease, record, runner
from experiments.harness.core.collect import collect
from experiments.harness.core.plan import DeviceLostError, Experiment, Outcome, Run
from experiments.harness.core.stopping import Interrupted
from experiments.harness.core.tables import Column, Table
from experiments.harness.learning.corpora import opener
from lsa.gpt import GPTConfig
from tests.experiments.command import CPU, gpu
from tests.experiments.test_checking import one

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("forked")]


def test_what_a_lease_made_comes_home_in_one_archive(two, tmp_path, capsys):
    assert gpu(tmp_path / "made", "--minutes", "1") == 0
    said = capsys.readouterr().out
    assert "kernel_errors float32: whole" in said and "0 runs left" in said
    archive = tmp_path / "made" / lease.ARCHIVE
    collect(EXPERIMENTS, archive, tmp_path / "home")
    made, home = (
        {one["experiment"]: one["digest"] for one in record.load(results=tmp_path / where)}
        for where in ("made", "home")
    )
    assert made == home and set(made) == {"kernel_errors", "taylor_error"}


def endless(config, session):
    """A run that looks at no clock, and at no signal either where it is `deaf`."""
    session.save({"rows": {"n": [1]}})
    if config["how"] == "fault" and (session.kept is None or config["still"]):
        keep = session.go_on() or {"rows": {"n": []}}
        keep["rows"]["n"].append(len(keep["rows"]["n"]))
        session.save(keep)
        raise DeviceLostError("an illegal memory access was encountered")
    if config["how"] == "deaf":
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    if config["how"] in ("deaf", "asleep"):
        time.sleep(600)
    return Outcome({"rows": {"n": [1, 2]}})


def planned(kind, smoke):
    return []


def made(name, **config):
    return Run("toy", name, {"still": False, **config}, 1)


@pytest.fixture
def hold(tmp_path, monkeypatch):
    """Goes through runs of `endless`, in far fewer seconds than a lease has."""
    monkeypatch.setattr(lease, "TOLD", 0.3)
    monkeypatch.setattr(lease, "STOPPED", 2.0)
    monkeypatch.setattr("experiments.harness.core.run_files.PARTIAL_EVERY", 0.0)
    toy = Experiment("toy", "", {"rows": Table({"n": Column("number", "")})}, planned, endless)

    def go(runs, seconds):
        deadline = time.monotonic() + seconds
        every = {"toy": toy}
        return lease.go_through(every, runs, CPU, tmp_path, deadline=deadline, corpus=print)

    return go


def stored(tmp_path):
    return {one["name"]: one["complete"] for one in record.load(results=tmp_path)}


@pytest.mark.parametrize("how", ["asleep", "deaf"])
def test_a_step_without_an_end_is_ended_and_what_it_had_is_kept(how, hold, tmp_path):
    began = time.monotonic()
    assert hold([made("quick", how="quick"), made("long", how=how)], 1.0)  # no fault of a run
    assert time.monotonic() - began < 8
    assert stored(tmp_path) == {"quick": True, "long": False}


def test_a_run_that_loses_the_device_goes_on_in_a_fresh_process(hold, tmp_path, capfd):
    runs = [made("fault", how="fault"), made("always", how="fault", still=True)]
    assert not hold([*runs, made("quick", how="quick")], 60)
    assert stored(tmp_path) == {"fault": True, "quick": True, "always": False}
    assert "illegal memory access" in capfd.readouterr().err


def test_a_signal_stores_what_there_is_and_ends_all(hold, tmp_path):
    timer = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    with pytest.raises(Interrupted):
        hold([made("long", how="asleep"), made("quick", how="quick")], 60)
    timer.join()
    assert stored(tmp_path) == {"long": False}
    assert not multiprocessing.active_children()


def test_time_that_is_over_leaves_a_whole_archive(two, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(lease, "TOLD", 0.1)
    assert gpu(tmp_path, "--minutes", "0.3334") == 0
    said = capfd.readouterr().out
    assert "2 runs left" in said
    assert (tmp_path / lease.ARCHIVE).is_file()


def test_the_next_lease_goes_on_where_the_last_one_ended(two, tmp_path, capsys):
    """On a machine that has nothing but the archive of the last, or results that came home."""
    assert gpu(tmp_path / "first", "--minutes", "1") == 0
    archive = tmp_path / "first" / lease.ARCHIVE
    capsys.readouterr()
    assert gpu(tmp_path / "second", "--minutes", "1", "--from", str(archive)) == 0
    said = capsys.readouterr().out
    assert "2 runs, 2 of them stored already" in said and "[1/" not in said
    digests = [
        sorted(one["digest"] for one in record.load(results=tmp_path / place))
        for place in ("first", "second")
    ]
    assert digests[0] == digests[1]
    with tarfile.open(tmp_path / "second" / lease.ARCHIVE) as packed:
        assert len(packed.getnames()) == 2


def test_what_is_stored_at_home_is_not_measured_again(two, tmp_path, capsys, monkeypatch):
    home = tmp_path / "home"
    assert gpu(home, "--minutes", "1") == 0
    monkeypatch.setattr(record, "RESULTS", home)
    (whole,) = (home / "taylor_error").rglob("*.json")
    whole.unlink()
    capsys.readouterr()
    assert gpu(tmp_path / "out", "--minutes", "1") == 0
    assert "2 runs, 1 of them stored already" in capsys.readouterr().out
    assert {one["experiment"] for one in record.load(results=tmp_path / "out")} == {"taylor_error"}


def test_what_a_lease_gives_to_its_process_can_be_sent():
    """CUDA does not survive a fork, as which these tests begin it: on a GPU all is pickled."""
    runs = runner.plan(EXPERIMENTS, [], "cuda")
    sent = pickle.loads(pickle.dumps((EXPERIMENTS, runs, CPU, opener(None))))
    assert sent[0].keys() == EXPERIMENTS.keys() and sent[1] == runs


def test_weights_are_left_where_all_would_be_too_large_and_come_home_otherwise(tmp_path):
    from experiments.harness.learning.weights import WEIGHTS, pack_weights
    from lsa import GPT

    made = tmp_path / "made"
    command.main(["run", "taylor_error", "--device", "cpu", "--smoke", "--out", str(made)])
    (result,) = (path for path in made.rglob("*.json") if not path.name.startswith("."))
    model = GPT(GPTConfig(vocab_size=8, n_positions=4, n_layer=1, n_head=1, d_model=64))
    weights = result.with_suffix(WEIGHTS)
    weights.write_bytes(pack_weights(model))
    archive, left = lease.pack(made, most=20_000)
    assert left == [f"{weights.relative_to(made)}: too large, with all else"]
    archive, left = lease.pack(made)
    assert left == []
    collect(EXPERIMENTS, archive, tmp_path / "home")
    assert [*(tmp_path / "home").rglob(f"*{WEIGHTS}")]


def test_packing_compresses_every_file_once(tmp_path, monkeypatch):
    """Twelve files of noise, too large together: what fits is found without trying over again."""
    compressed = []
    whole = lease.lzma.compress

    def compress(data, **options):
        compressed.append(len(data))
        return whole(data, **options)

    monkeypatch.setattr(lease.lzma, "compress", compress)
    noise = random.Random(0)
    for i in range(12):
        (tmp_path / f"{i:02d}.npz").write_bytes(noise.randbytes(50_000))
    small = tmp_path / "small.json"
    small.write_text(json.dumps(record.sign(one())))
    archive, left = lease.pack(tmp_path, most=310_000)
    assert archive.stat().st_size <= 310_000
    assert left == [f"{i:02d}.npz: too large, with all else" for i in range(6, 12)]
    assert sum(compressed) < 7 * 60_000
    with tarfile.open(archive) as packed:
        assert packed.getnames() == ["small.json", *(f"{i:02d}.npz" for i in range(6))]
        packed.extractall(tmp_path / "home", filter="data")
    assert all(
        (tmp_path / "home" / path.name).read_bytes() == path.read_bytes()
        for path in tmp_path.glob("0[0-5].npz")
    )
    compressed.clear()
    small.write_text(json.dumps(record.sign(one(provenance__seconds=7.0))))
    lease.pack(tmp_path, most=310_000)
    assert sum(compressed) < 10_000  # nothing but what has changed
    lease.pack(tmp_path, kinds=[".json"])
    with tarfile.open(archive) as packed:
        assert packed.getnames() == ["small.json", "home/small.json"]


def test_an_error_beyond_its_bound_is_told_and_stored(tmp_path, monkeypatch):
    monkeypatch.setattr(errors, "BOUNDS", {"float32": 1e-9})
    command.main(["run", "kernel_errors", "--device", "cpu", "--smoke", "--out", str(tmp_path)])
    (stored,) = record.load("kernel_errors", tmp_path)
    assert any("beyond 1e-09: o " in text for text in stored["provenance"]["warnings"])
    rows = stored["tables"]["rows"]
    assert {"o", "S", "z", "dq", "dk", "dv", "dS", "dz", "dg", "rounded"} == set(rows["tensor"])
    assert 0 < max(rows["error"]) <= 2e-6
