"""Mode speed: its three tables, and timing in turns."""

import pytest
import torch

from experiments import mode_speed
from experiments.harness.bench import timing
from tests.experiments.command import bare_session

CPU = torch.device("cpu")


@pytest.fixture
def tables():
    (run,) = mode_speed.runs("cpu", smoke=True)
    outcome = mode_speed.perform(run.config, bare_session())
    assert outcome.complete
    return run.config, outcome.tables


def test_a_run_measures_the_machine_the_modes_and_the_chunks(tables):
    config, found = tables
    assert list(found) == ["limits", "rows", "chunks"]
    for column in ("copy", "matmul", "call"):
        (value,) = found["limits"][column]
        assert value > 0
    assert found["limits"]["call"][0] < 1e-3
    assert set(found["rows"]["mode"]) == set(mode_speed.IMPLEMENTATIONS)
    chunks = found["chunks"]
    assert chunks["chunk_size"] == config["chunk_sizes"] * 2
    assert {"seconds", "low", "high", "repeats"} <= set(chunks)
    assert all(low <= high for low, high in zip(chunks["low"], chunks["high"], strict=True))
    columns = {name for table in found.values() for name in table}
    assert columns <= set(mode_speed.EXPERIMENT.units)


def test_a_gpu_sweeps_no_chunks():
    for run in mode_speed.runs("cuda", smoke=False):
        assert run.config["chunk_sizes"] == []


def test_calls_take_turns():
    order = []
    calls = {name: lambda name=name: order.append(name) for name in "abc"}
    timings = timing.measure_in_turns(calls, CPU)
    assert list(timings) == [*"abc"]
    warm, rounds = order[:6], order[6:]
    assert warm == [*"aabbcc"]
    assert rounds == [*"abc"] * (len(rounds) // 3)
    assert all(timings[name].repeats == len(rounds) // 3 for name in "abc")
