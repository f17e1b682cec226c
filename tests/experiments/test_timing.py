"""How calls and graphs are timed, with the GPU's part replaced."""

from types import SimpleNamespace

import pytest
import torch

from experiments import kernel_speed
from experiments.harness.bench import graphs, timing
from tests.experiments.command import CPU, bare_session


def test_the_limit_is_a_copy_of_bytes_that_differ(monkeypatch):
    """Zeros can be packed, and cost a GPU less power: a copy of them would be too fast a limit."""
    copied = []

    def measured(call, device):
        copied.append(call())
        return timing.Timing(0.5, 0.5, 0.5, 1)

    monkeypatch.setattr(timing, "measure", measured)
    state = torch.get_rng_state()
    assert timing.copy_rate(CPU, 2**16) == 2**18
    assert torch.equal(torch.get_rng_state(), state)
    counts = torch.bincount(copied[0].int(), minlength=256)
    assert counts.numel() == 256 and counts.min() > 150 and counts.max() < 400


def test_the_cache_is_filled_before_each_call_and_not_timed(monkeypatch):
    order = []
    clock = iter(range(1000))
    monkeypatch.setattr(timing.time, "perf_counter", lambda: order.append("clock") or next(clock))
    calls = {name: lambda name=name: order.append(name) for name in "ab"}
    timings = timing.measure_in_turns(calls, CPU, lambda: order.append("fill"))
    warm, timed = order[:4], order[4:]
    assert warm == [*"aabb"]
    rounds = len(timed) // 8
    assert timed == ["fill", "clock", "a", "clock", "fill", "clock", "b", "clock"] * rounds
    assert {name: one.repeats for name, one in timings.items()} == {"a": rounds, "b": rounds}


def test_a_cache_filler_reads_twice_its_cache():
    """Nothing is written, for that would be carried to memory while the next call is timed."""
    filler = timing.cache_filler(CPU, 2**12)
    assert filler.__self__.nbytes == 2**13
    before = filler.__self__.clone()
    filler()
    assert torch.equal(filler.__self__, before)
    assert timing.cache_filler(CPU, 0)() == 0  # where a GPU does not say how large it is


@pytest.fixture
def gpu(monkeypatch):
    """A GPU whose clock goes on by a millisecond with each thing it does; what it did, in order."""
    done = []

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            done.append("clock")
            self.at = len(done)

        def elapsed_time(self, later):
            return later.at - self.at

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: done.append("wait"))
    return done


def test_replays_are_timed_one_by_one_with_the_cache_filled_before_each(gpu):
    made = {name: SimpleNamespace(replay=lambda name=name: gpu.append(name)) for name in ("a", "b")}
    device = torch.device("cuda")
    timings = graphs.replay_in_turns(made, device, lambda: gpu.append("fill"))
    each = [[*["fill", "clock", name, "clock"] * graphs.REPLAYS, "wait"] for name in ("a", "b")]
    rounds = timings["a"].repeats
    assert rounds >= graphs.FEWEST
    assert gpu == (each[0] + each[1]) * rounds
    assert all(one.median == pytest.approx(2e-3) for one in timings.values())


def test_a_race_fills_the_cache_for_both_kinds_of_launch(monkeypatch):
    found = []
    filler = object()
    monkeypatch.setattr(kernel_speed, "cache_filler", lambda device, cache: (cache, filler))
    monkeypatch.setattr(
        kernel_speed, "limits", lambda _: {"cache": 2**25, "copy": 1e10, "matmul": 1e11}
    )
    monkeypatch.setattr(
        kernel_speed, "implementations", lambda session: {"ours": kernel_speed.linear_attention}
    )
    monkeypatch.setattr(kernel_speed, "capture", lambda call: call)
    for name in ("measure_in_turns", "replay_in_turns"):
        monkeypatch.setattr(
            kernel_speed, name,
            lambda calls, device, between, name=name: found.append((name, between)) or {},
        )  # fmt: skip
    config = {"shape": [1, 17, 2, 16], "dtype": "bfloat16", "seed": 0}
    kernel_speed.perform(config, bare_session())
    both = [(name, (2**25, filler)) for name in ("measure_in_turns", "replay_in_turns")]
    assert found == both * 2
