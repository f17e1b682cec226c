"""One core's figure: its limit is counted as the chapter counts, and nothing is said unmeasured."""

import pytest
import torch

from book.figures.lib.records import NotMeasuredError
from book.figures.three_modes import cpu_speed
from experiments import cpu_speed as experiment
from experiments.harness.core.plan import Session


@pytest.fixture
def record(tmp_path, monkeypatch):
    """A small run, as `have` would find it."""
    (run,) = experiment.runs("cpu", smoke=True)
    session = Session(
        device=torch.device("cpu"), corpus=lambda name: None, save=lambda tables: None,
        show=lambda *_: None, checkpoint=tmp_path / "none",
    )  # fmt: skip
    record = {
        "experiment": "cpu_speed", "name": run.name, "config": run.config, "complete": True,
        "path": "results/cpu_speed/one-thread.json",
        "tables": experiment.perform(run.config, session).tables,
        "provenance": {
            "commit": "0" * 40, "started": "2025-01-01T00:00:00+00:00",
            "device": {"kind": "cpu", "name": "A", "count": 1, "memory_bytes": 1},
        },
    }  # fmt: skip
    monkeypatch.setattr(cpu_speed, "have", lambda name: [record])
    return record


def test_the_limit_is_the_operations_of_chunks_at_the_speed_of_a_product(record):
    point = {"heads": 3, "width": 64, "length": 128, "matmul": 1e9}
    record["tables"]["limits"]["copy"] = [1e30]
    pairs, state = 2 * 64 * 65 / 2, 128 * 64
    products = 2 * 2 * 64 * (pairs + state)
    assert cpu_speed.limit(record, point) == pytest.approx(3 * products / 1e9, rel=0.02)
    record["tables"]["limits"]["copy"] = [1.0]
    assert cpu_speed.limit(record, point) == pytest.approx(3 * 4 * 4 * 64 * 128)


def test_a_small_run_is_drawn_and_its_steps_are_listed_slowest_first(record):
    assert cpu_speed.figure()
    drawn = {keys["implementation"] for keys, _ in cpu_speed._curves(record)}
    assert drawn == {*record["tables"]["rows"]["implementation"]}
    took = [point["seconds"] for _, point in cpu_speed.rows_of_steps(record)]
    assert took == sorted(took, reverse=True)
    assert "the limit" in repr(cpu_speed.steps())
    with pytest.raises(NotMeasuredError):
        cpu_speed.share(8192)


def test_without_a_run_the_command_stands_there(monkeypatch):
    monkeypatch.setattr(cpu_speed, "have", lambda name: [])
    command = "python -m experiments run cpu_speed"
    assert command in repr(cpu_speed.figure()) and command in repr(cpu_speed.steps())
    assert "core_share" in cpu_speed.numbers()
