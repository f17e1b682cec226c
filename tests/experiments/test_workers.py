"""Processes that are replaced: after a fault of the device, a death, or a task without an end."""

import os
import signal
import time

import pytest
import torch

from experiments import kernel_errors
from experiments.harness.bench import errors
from experiments.harness.core import plan, record, runner, workers
from experiments.harness.core.plan import Session
from experiments.harness.core.workers import DeviceLostError, Worker, in_parallel
from tests.experiments.command import smoke

CPU, GPU = torch.device("cpu"), torch.device("cuda")


pytestmark = pytest.mark.usefixtures("forked")


def faulty(task):
    """A task that may lose the device, or its process, and the process's number."""
    if task == "lost":
        raise DeviceLostError("an illegal memory access was encountered")
    if task == "dead":
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "wrong":
        raise ValueError("not for this shape\nsecond line")
    if task == "endless":
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        time.sleep(600)
    return task, os.getpid()


def test_a_fault_costs_its_own_task_and_no_other():
    tasks = ["a", "lost", "b", "dead", "wrong", "c", "d"]
    found = dict(in_parallel(faulty, tasks, CPU, 2))
    assert sorted(found) == [*range(len(tasks))]
    assert [found[i].value[0] for i in (0, 2, 5, 6)] == [*"abcd"]
    assert "illegal memory access" in found[1].problem and found[1].lost
    assert f"ended with {-signal.SIGKILL}" in found[3].problem and found[3].lost
    assert found[4].problem == "ValueError: not for this shape" and not found[4].lost


def test_a_process_is_kept_as_long_as_its_device_answers():
    worker = Worker(CPU)

    def ask(task):
        worker.give(faulty, task)
        return worker.answer(60)

    try:
        (_, first), (_, second) = ask("a").value, ask("b").value
        ask("wrong")
        assert first == second == ask("c").value[1]
        ask("lost")
        assert ask("d").value[1] != first
    finally:
        worker.end()


def test_what_does_not_end_when_asked_to_is_ended():
    worker = Worker(CPU)
    worker.give(faulty, "endless")
    assert worker.answer(0.2) is None
    began = time.monotonic()
    assert worker.stop(0.5).lost
    assert time.monotonic() - began < 30
    assert worker.process is None


def test_an_own_process_is_begun_anew(monkeypatch):
    """As on a GPU, where nothing but the code comes along."""
    monkeypatch.setattr(workers, "START", "spawn")
    ((_, answer),) = in_parallel(os.path.basename, ["a/b"], CPU, 1)
    assert answer.value == "b"


def test_a_race_ends_at_once_where_the_device_is_lost(tmp_path, monkeypatch):
    """Else each of those that follow would fail, one by one, as if it were at fault."""

    def synchronize(device=None):
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nsecond line")

    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    nothing = {"corpus": lambda name: None, "save": lambda _: None, "show": lambda *_: None}
    session = Session(device=GPU, checkpoint=tmp_path / "none", **nothing)
    with pytest.raises(plan.DeviceLostError, match="fla chunk"):
        session.attempt(lambda: 1, "fla chunk")
    assert session.warnings == [
        "fla chunk: RuntimeError: CUDA error: an illegal memory access was encountered"
    ]
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: None)

    def broken():
        raise ValueError("not for this shape")

    assert session.attempt(broken, "other") is None  # the device is as it was


def rows(case, **options):
    """`errors.rows` of a device that some cases lose."""
    if case[0] == "attention":
        raise DeviceLostError("an illegal memory access was encountered")
    return errors.measured(case, **options)


def test_correctness_goes_on_after_a_fault_and_where_it_was_left(tmp_path, monkeypatch):
    whole = errors.rows
    monkeypatch.setattr(errors, "measured", whole, raising=False)
    monkeypatch.setattr(errors, "rows", rows)
    parallel = kernel_errors.in_parallel
    monkeypatch.setattr(
        kernel_errors, "_answers", lambda work, cases, device: parallel(work, cases, device, 2)
    )
    (run,) = kernel_errors.runs("cpu", smoke=True)
    saved = {"corpus": lambda name: None, "save": lambda _: None, "show": lambda *_: None}
    session = Session(device=CPU, checkpoint=tmp_path / "none", **saved)
    first = kernel_errors.perform(run.config, session).tables
    assert set(first["rows"]["mode"]) == {"chunked", "recurrent"}
    assert sum("illegal memory access" in text for text in session.warnings) == 5

    monkeypatch.setattr(errors, "rows", whole)
    origin = {"commit": "0", "dirty": False, "started": "then", "seconds": 3.0}
    kept = {"provenance": {**origin, "warnings": session.warnings}, "tables": first}
    counted = []
    again = Session(device=CPU, checkpoint=tmp_path / "none", kept=kept, **saved)
    again.show = lambda done, total, note: counted.append(done)
    everything = kernel_errors.perform(run.config, again).tables["rows"]
    assert counted == [11, 12, 13, 14, 15]
    assert everything["mode"].count("attention") and set(everything["mode"]) == {
        "chunked", "recurrent", "attention",
    }  # fmt: skip
    assert len({*zip(*everything.values(), strict=True)}) == len(everything["mode"])
    assert again.warnings == session.warnings and again.earlier == [origin]


def test_a_device_that_is_lost_ends_the_plan(tmp_path, monkeypatch, capsys):
    """Runs that follow would break off too, one by one."""

    def fault(*_):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr("experiments.mode_speed.measure_in_turns", fault)
    monkeypatch.setattr(runner, "is_lost", lambda device: True)
    assert smoke(tmp_path, "mode_speed", "sampling_speed") == 1
    said = capsys.readouterr().err
    assert "the device is lost" in said and "broke off: mode_speed" in said
    assert not [*record.paths(tmp_path / "out", partial=False)]
