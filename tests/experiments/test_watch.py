"""Who hangs is named: a rank that is silent, or the one whose own work does not get on."""

import threading
import time

import pytest
import torch.distributed as dist

from experiments.harness.core import watch
from experiments.harness.core.watch import Watch

BEAT = 0.01


@pytest.fixture
def store(monkeypatch):
    monkeypatch.setattr(watch, "BEAT", BEAT)
    monkeypatch.setattr(watch, "SILENT", 50 * BEAT)
    monkeypatch.setattr(watch, "OVERDUE", 20 * BEAT)
    monkeypatch.setattr(watch, "TIMES", 0)
    return dist.HashStore()


def started(store, rank, size=2):
    """A rank's watch, and a list that gets what it says in the end."""
    said = []
    found = Watch(store, rank, size, leave=said.append)
    found.start()
    return found, said


def wait_for(said):
    limit = time.monotonic() + 20
    while not said and time.monotonic() < limit:
        time.sleep(BEAT)
    assert said
    return said


def test_a_rank_without_a_sign_of_life_is_named_by_the_one_before_it(store):
    first, said = started(store, 0)
    second, other = started(store, 1)
    time.sleep(70 * BEAT)
    assert not said and not other
    second._ended.set()  # as a process that is stopped
    (line,) = wait_for(said)
    assert line.startswith("rank 1 hangs: no sign of life for ") and not other
    first.stop()


def test_a_rank_that_is_done_alarms_nobody(store):
    first, said = started(store, 0)
    second, _ = started(store, 1)
    time.sleep(5 * BEAT)
    second.stop()
    time.sleep(70 * BEAT)
    assert first.thread.is_alive() and not said
    first.stop()


def hang(said):
    while not said:
        time.sleep(BEAT)


def test_work_that_does_not_get_on_is_named_with_its_place(store):
    one, said = started(store, 0, size=1)
    with one.expecting("a"):  # of the first, nobody knows how long it takes
        time.sleep(70 * BEAT)
    assert not said
    with one.expecting("a"):
        hang(said)
    (line,) = said
    assert line.startswith("rank 0 hangs: for 0 s in tests.experiments.test_watch, line ")
    assert line.endswith("of hang")


def test_another_kind_of_work_may_take_longer(store):
    one, said = started(store, 0, size=1)
    for kind in "ab":
        with one.expecting(kind):
            time.sleep(70 * BEAT)
    assert not said
    one.stop()


@pytest.mark.parametrize("module", ["torch.distributed.fsdp", "lsa.parallel.collectives"])
def test_a_rank_that_waits_for_others_does_not_hang(store, module):
    one, said = started(store, 0, size=1)
    inner = {"__name__": "torch._ops", "sleep": time.sleep}
    exec("def call(seconds):\n    sleep(seconds)\n", inner)
    outer = {"__name__": module, "call": inner["call"]}
    exec("def wait(seconds):\n    call(seconds)\n", outer)
    for _ in range(2):
        with one.expecting("a"):
            outer["wait"](70 * BEAT)
    assert not said
    one.stop()


def test_a_rank_whose_device_is_busy_does_not_hang(store):
    said = []
    one = Watch(store, 0, 1, busy=lambda: True, leave=said.append)
    one.start()
    for _ in range(2):
        with one.expecting("a"):
            time.sleep(70 * BEAT)
    assert not said
    one.stop()


def test_a_lost_store_is_told():
    class Lost:
        def set(self, key, value):
            raise RuntimeError("Broken pipe")

    said = []
    one = Watch(Lost(), 3, 4, leave=said.append)
    one._ended = Now()
    one._run()
    assert said == ["rank 3: torchrun was lost: its store does not answer"]


class Now(threading.Event):
    """An event that nobody waits for."""

    def wait(self, timeout=None):
        return False


def test_one_process_is_not_watched():
    with watch.expecting("a"):
        assert not watch._watches
