"""A training run that is stopped, by whatever, goes on: nothing is lost and no curve is changed."""

import contextlib
import errno
import os
import random
import signal
import time
from dataclasses import replace
from functools import partial

import pytest
import torch

from experiments import loss_curves
from experiments.__main__ import main
from experiments.catalogue import EXPERIMENTS
from experiments.harness.core import checkpoint, files, record, run_files
from experiments.harness.core.plan import Run
from experiments.harness.core.runner import perform, run_all
from experiments.harness.core.stopping import Interrupted
from experiments.harness.learning import training
from experiments.harness.learning.corpora import load_corpus
from lsa.gpt import SCALES
from tests.experiments.command import CPU, bare_session, forked, smoke

TINY = {"n_layer": 1, "n_head": 1, "d_model": 16}


@pytest.fixture(autouse=True)
def _tiny(monkeypatch, made_corpus):
    monkeypatch.setitem(SCALES, "tiny", TINY)


def config(**changes):
    run, *_ = loss_curves.runs("cpu", True)
    shape = {"scale": "tiny", "context": 16, "span": 16, "spans": 4}
    return {**run.config, **shape, "updates": 12, "validate_every": 5, **changes}


def session(tmp_path, **changes):
    return bare_session(tmp_path / "run.pt", corpus=load_corpus, **changes)


def stop_after(monkeypatch, updates, act):
    """Call `act` at the end of one update of every training."""
    whole = training.Training.update

    def update(self):
        whole(self)
        if self.updates == updates:
            act()

    monkeypatch.setattr(training.Training, "update", update)


def curves(tables):
    return {name: {k: v for k, v in t.items() if k != "seconds"} for name, t in tables.items()}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_update_and_keeps_everything(tmp_path, monkeypatch, number):
    contents = config()
    expected = loss_curves.perform(contents, session(tmp_path)).tables
    run = Run("loss_curves", "tiny", contents, 0)
    out = tmp_path / "out"
    catalogue = {"loss_curves": loss_curves.EXPERIMENT}
    # Whoever runs the tests in the background may have had these ignored, and so would the run.
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with monkeypatch.context() as patch:
            stop_after(patch, 7, lambda: os.kill(os.getpid(), number))
            with pytest.raises(Interrupted) as caught:
                run_all(catalogue, [run], CPU, out, corpus=load_corpus)
    finally:
        signal.signal(number, before)
    assert caught.value.number == number
    (partial,) = record.load(results=out)
    assert not partial["complete"] and len(partial["tables"]["train"]["loss"]) == 7
    # The other leg runs under other code, and the clock of the first is counted.
    monkeypatch.setattr("experiments.harness.core.run_files.provenance", _at_another_commit)
    assert run_all(catalogue, [run], CPU, out, corpus=load_corpus) == 1
    (whole,) = record.load(results=out)
    assert curves(whole["tables"]) == curves(expected)
    first, second = whole["provenance"]["legs"]
    assert (first["commit"], second["commit"]) == (partial["provenance"]["commit"], "f" * 40)
    assert whole["provenance"]["seconds"] == round(first["seconds"] + second["seconds"], 1)
    assert whole["provenance"]["started"] == first["started"]
    assert [path.name for path in out.rglob("*") if path.is_file()] == ["tiny.json"]


def _at_another_commit(*run, provenance=run_files.provenance):
    return {**provenance(*run), "commit": "f" * 40}


@pytest.mark.slow
def test_any_number_of_threads_continues(tmp_path, monkeypatch, capsys):
    """torchrun gives each of several ranks one thread, and a single process has several."""
    wanted = "loss_curves", "--only", "attention=linear"
    with monkeypatch.context() as patch:
        stop_after(patch, 2, lambda: os.kill(os.getpid(), signal.SIGINT))
        assert smoke(tmp_path, *wanted) == 130
    (found,) = record.load(results=tmp_path / "out")
    assert not found["complete"] and found["tables"]["train"]["update"] == [1, 2]
    threads = torch.get_num_threads()
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads + 1)
    listing = "list", *wanted, "--device", "cpu", "--smoke", "--out", str(tmp_path / "out")
    capsys.readouterr()
    assert main([*listing]) == 0
    assert capsys.readouterr().out.split()[1] == "partial"
    assert smoke(tmp_path, *wanted) == 0
    (found,) = [one for one in record.load(results=tmp_path / "out") if one["complete"]]
    assert found["tables"]["train"]["update"] == [1, 2, 3]
    assert len(found["provenance"]["legs"]) == 2


def test_two_numbers_of_threads_do_not_train_one_run_at_once(tmp_path, monkeypatch, capsys):
    """They would write one checkpoint."""
    wanted = "loss_curves", "--only", "attention=linear"
    threads = torch.get_num_threads()

    def again():
        with monkeypatch.context() as patch:
            patch.setattr(torch, "get_num_threads", lambda: threads + 1)
            assert smoke(tmp_path, *wanted) == 0

    stop_after(monkeypatch, 2, again)
    assert smoke(tmp_path, *wanted) == 0
    said = capsys.readouterr().out
    assert said.count("another process is running it") == 1 and "\n0 new results" in said
    assert len(record.load(results=tmp_path / "out")) == 1
    assert not list(tmp_path.rglob("*.lock"))


def test_a_further_partial_record_is_never_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(run_files, "PARTIAL_EVERY", 0.0)
    run = Run("loss_curves", "tiny", config(updates=1000), 0)

    def train(until, **rest):
        with monkeypatch.context() as patch:
            done = session(tmp_path).stop
            stop_after(patch, until, lambda: setattr(done, "number", signal.SIGTERM))
            with pytest.raises(Interrupted):
                where = (CPU, tmp_path / "out", "x", None, load_corpus)
                perform(loss_curves.EXPERIMENT, run, *where, stop=done, **rest)
        (kept,) = record.load(results=tmp_path / "out")
        return len(kept["tables"]["train"]["loss"])

    assert train(9) == 9
    (saved,) = tmp_path.rglob("*.pt")
    saved.unlink()  # killed before its first checkpoint: the next attempt begins anew
    assert train(4) == 9
    assert train(6, force=True) == 9


def test_a_run_that_is_performed_again_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    run, out = Run("loss_curves", "tiny", config(updates=8), 0), tmp_path / "out"
    assert run_all({"loss_curves": loss_curves.EXPERIMENT}, [run], CPU, out, corpus=load_corpus)
    for until in (3, 6):
        with monkeypatch.context() as patch:
            stop = session(tmp_path).stop
            stop_after(patch, until, partial(setattr, stop, "number", signal.SIGTERM))
            with pytest.raises(Interrupted):
                where = (CPU, out, "x", None, load_corpus)
                perform(loss_curves.EXPERIMENT, run, *where, stop=stop, force=True)
    whole, part = (record.read(next(out.rglob(f"tiny{end}"))) for end in (".json", ".partial.json"))
    assert whole["complete"] and len(whole["tables"]["train"]["loss"]) == 8
    assert len(part["tables"]["train"]["loss"]) == 6 and len(part["provenance"]["legs"]) == 2


def spoil(path, how):
    raw = path.read_bytes()
    if how == "cut":
        path.write_bytes(raw[: len(raw) // 2])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "flipped bytes":
        path.write_bytes(raw[:5000] + bytes([raw[5000] ^ 1]) + raw[5001:])
    else:
        kept = checkpoint.load(path, CPU)
        if how == "wrong shape":
            kept["model"] = {name: tensor[..., :-1] for name, tensor in kept["model"].items()}
        elif how == "another configuration":
            kept["config"] = config(updates=13)
        else:
            kept["corpus"] = "0" * 64
        checkpoint.save(path, kept)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("cut", "not as it was written"),
        ("empty", "not as it was written"),
        ("flipped bytes", "not as it was written"),
        ("wrong shape", "of a model with other parameters"),
        ("another configuration", "of another configuration"),
        ("another text", "of another text"),
    ],
)
def test_a_bad_checkpoint_is_set_aside_and_the_run_goes_on(tmp_path, capsys, how, said):
    fresh = loss_curves.perform(config(), session(tmp_path)).tables
    early = session(tmp_path)
    early.show = lambda done, *_: done >= 6 and setattr(early.stop, "number", signal.SIGTERM)
    assert not loss_curves.perform(config(), early).complete
    spoil(tmp_path / "run.pt", how)
    spoiled = (tmp_path / "run.pt").read_bytes()
    capsys.readouterr()
    again = session(tmp_path)
    assert curves(loss_curves.perform(config(), again).tables) == curves(fresh)
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert again.warnings and not again.earlier
    assert (tmp_path / "run.pt.aside-1").read_bytes() == spoiled


def test_a_full_disk_warns_once_and_training_goes_on(tmp_path, monkeypatch, capsys):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(training, "SAVE_EVERY", 0.0)
    monkeypatch.setattr(training, "SAVE_SHARE", 0)
    monkeypatch.setattr(run_files, "PARTIAL_EVERY", 0.0)
    run = Run("loss_curves", "tiny", config(), 0)
    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", full)
        stop_after(patch, 11, patch.undo)
        assert perform(loss_curves.EXPERIMENT, run, CPU, tmp_path, "x", corpus=load_corpus)
    error = capsys.readouterr().err
    assert error.count("No space left on device") == 2  # the checkpoint, the partial record
    (whole,) = record.load(results=tmp_path)
    assert len(whole["provenance"]["warnings"]) == 2
    assert len(whole["tables"]["train"]["loss"]) == 12
    assert not list(tmp_path.rglob("*.tmp"))


def start(out, saving=0.0, updates=400):
    """A tiny training in a process of its own, saved every so many seconds, and what it says."""
    small = {**config(updates=updates, validate_every=50), "spans": 4}
    runs = [Run("loss_curves", "tiny", small, 0)]
    one = replace(EXPERIMENTS["loss_curves"], runs=lambda kind, smoke: runs)
    said = out.parent / f"{out.name}-{time.monotonic_ns()}.txt"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(EXPERIMENTS, "loss_curves", one)
        patch.setattr(training, "SAVE_EVERY", saving)
        patch.setattr(run_files, "PARTIAL_EVERY", saving)
        return forked(said, "run", "loss_curves", "--device", "cpu", "--out", str(out)), said


@pytest.mark.slow
def test_kills_at_random_moments_leave_the_curve_as_it_is(tmp_path):
    """LSA_KILLS=50 python -m pytest --timeout 3600 THIS -k kills: as many as one has time for."""
    kills = int(os.environ.get("LSA_KILLS", "2"))
    updates = max(400, 40 * kills)
    process, said = start(tmp_path / "whole", saving=1.0, updates=updates)
    process.join(600)
    assert process.exitcode == 0, said.read_text()
    (expected,) = record.load(results=tmp_path / "whole")

    out = tmp_path / "killed"
    rng, furthest = random.Random(0), 0
    for kill in range(kills):
        before = _times(out)
        process, said = start(out, saving=0.05, updates=updates)
        limit = time.monotonic() + 60
        while kill and _times(out) == before and time.monotonic() < limit:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.2))
        os.kill(process.pid, [signal.SIGKILL, signal.SIGTERM][kill % 2])
        process.join(60)
        for one in record.load(results=out):
            rows = len(one["tables"]["train"]["loss"])
            assert rows >= furthest
            furthest = rows
    process, said = start(out, saving=1.0, updates=updates)
    process.join(600)
    assert process.exitcode == 0, said.read_text()
    (whole,) = record.load(results=out)
    assert curves(whole["tables"]) == curves(expected["tables"])
    assert len(whole["provenance"]["legs"]) > 1
    assert [path.name for path in out.rglob("*") if path.is_file()] == ["tiny.json"]


def _times(folder):
    """When the checkpoints in it were written; a name may be gone between listing and looking."""
    with contextlib.suppress(FileNotFoundError):
        return [path.stat().st_mtime_ns for path in folder.rglob("*.pt")]
    return []
