"""A device that is lost, by an illegal access perhaps: what it costs, and what it does not."""

import os

import pytest
import torch

from experiments import kernel_errors
from experiments.harness.bench import errors
from experiments.harness.core import plan, record, runner
from experiments.harness.core.plan import DeviceLostError
from tests.experiments.command import ORIGIN, bare_session, smoke
from tests.parallel.pool import server

GPU = torch.device("cuda")


pytestmark = pytest.mark.usefixtures("forked")


def faulty(task):
    """A case that may lose the device, or its process, and the process's number."""
    if task == "lost":
        raise DeviceLostError("an illegal memory access was encountered")
    return [(task, os.getpid())]


@pytest.mark.slow
def test_a_fault_costs_its_own_case_and_no_other(monkeypatch):
    """Each case has a process that has seen no other, as on a GPU."""
    monkeypatch.setattr(errors, "START", "spawn")
    monkeypatch.setattr(errors, "get_context", lambda _: server())
    found = dict(errors.in_processes(faulty, ["a", "lost", "b"], 2, fresh=True))
    assert isinstance(found[1], DeviceLostError)
    ((a, first),), ((b, second),) = found[0], found[2]
    assert (a, b) == ("a", "b") and first != second != os.getpid()


def test_a_process_for_all_cases():
    found = dict(errors.in_processes(faulty, ["a", "lost", "b"], 1, fresh=False))
    assert isinstance(found[1], DeviceLostError)
    assert found[0][0][1] == found[2][0][1] != os.getpid()


def test_a_race_ends_at_once_where_the_device_is_lost(monkeypatch):
    """Else each of those that follow would fail, one by one, as if it were at fault."""

    def synchronize(device=None):
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nsecond line")

    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    session = bare_session(device=GPU)
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


@pytest.mark.slow
def test_correctness_goes_on_after_a_fault_and_where_it_was_left(monkeypatch):
    whole = errors.rows
    monkeypatch.setattr(errors, "measured", whole, raising=False)
    monkeypatch.setattr(errors, "rows", rows)
    monkeypatch.setattr(
        kernel_errors,
        "_answers",
        lambda work, cases, device: errors.in_processes(work, cases, 2, fresh=True),
    )
    (run,) = kernel_errors.runs("cpu", smoke=True)
    session = bare_session()
    first = kernel_errors.perform(run.config, session).tables
    assert set(first["rows"]["mode"]) == {"chunked", "recurrent"}
    assert sum("illegal memory access" in text for text in session.warnings) == 5

    monkeypatch.setattr(errors, "rows", whole)
    kept = {"provenance": {**ORIGIN, "warnings": session.warnings}, "tables": first}
    counted = []
    again = bare_session(kept=kept)
    again.show = lambda done, total, note: counted.append(done)
    everything = kernel_errors.perform(run.config, again).tables["rows"]
    assert counted == [11, 12, 13, 14, 15]
    assert everything["mode"].count("attention") and set(everything["mode"]) == {
        "chunked", "recurrent", "attention",
    }  # fmt: skip
    assert len({*zip(*everything.values(), strict=True)}) == len(everything["mode"])
    assert again.warnings == session.warnings and again.earlier == [ORIGIN]


def test_a_device_that_is_lost_ends_the_plan(tmp_path, monkeypatch, capsys):
    """Runs that follow would break off too, one by one."""

    def fault(*_):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr("experiments.mode_speed.measure_in_turns", fault)
    monkeypatch.setattr(runner, "is_lost", lambda device: True)
    assert smoke(tmp_path, "mode_speed", "sampling_speed") == 1
    said = capsys.readouterr().err
    assert "error: mode_speed b1-h1-d64: the device is lost to this process" in said
    assert not [*record.paths(tmp_path / "out", partial=False)]
