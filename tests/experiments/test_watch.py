"""Who hangs is named: a rank that is silent, or the one whose own work does not get on."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
import torch
import torch.distributed as dist

from experiments.harness.core import watch
from experiments.harness.core.watch import Signs, Watch

BEAT = 0.01


@pytest.fixture
def store(monkeypatch):
    monkeypatch.setattr(watch, "BEAT", BEAT)
    monkeypatch.setattr(watch, "SILENT", 50 * BEAT)
    monkeypatch.setattr(watch, "OVERDUE", 20 * BEAT)
    monkeypatch.setattr(watch, "TIMES", 0)
    return dist.HashStore()


def started(store, rank, size=2, **given):
    """A rank's watch, and a list that gets what it says in the end."""
    said = []
    found = Watch(store, rank, size, leave=said.append, **given)
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
        time.sleep(40 * BEAT)
    assert not said
    with one.expecting("a"):
        hang(said)
    (line,) = said
    assert line.startswith("rank 0 hangs: for 0 s in tests.experiments.test_watch, line ")
    assert line.endswith("of hang")


def waiter(module):
    """A function of a module that calls torch, which waits for so many seconds."""
    inner = {"__name__": "torch._ops", "sleep": time.sleep}
    exec("def call(seconds):\n    sleep(seconds)\n", inner)
    outer = {"__name__": module, "call": inner["call"]}
    exec("def wait(seconds):\n    call(seconds)\n", outer)
    return outer["wait"]


def idle():
    """Nothing of a process runs."""
    return False


QUIET = {
    # To read a text, or to compile: of the first update, nobody knows how long it takes.
    "long work runs": ({"runs": lambda: True}, time.sleep, [None]),
    "another kind of work may take longer": ({}, time.sleep, "ab"),
    "it waits for weights": ({"runs": idle}, waiter("torch.distributed.fsdp"), "aa"),
    "it waits for states": ({"runs": idle}, waiter("lsa.parallel.collectives"), "aa"),
    "its device is busy": ({"busy": lambda: True, "runs": lambda: True}, time.sleep, "aa"),
    "it idles beside its device": ({"busy": lambda: True, "runs": idle}, time.sleep, "aa"),
}


@pytest.mark.parametrize("why", QUIET)
def test_a_rank_that_does_not_hang_alarms_nobody(store, why):
    given, work, kinds = QUIET[why]
    one, said = started(store, 0, size=1, **given)
    for kind in kinds:
        with one.expecting(kind) if kind else nullcontext():
            work(40 * BEAT)
    assert not said
    one.stop()


def test_a_rank_that_was_waited_for_is_late_and_does_not_hang(store):
    """Others that waited for it have been in their update for as long, and go on."""
    one, said = started(store, 0, size=1)
    with one.expecting("a"):
        pass
    with one.expecting("a"):
        waiter("torch.distributed.fsdp")(40 * BEAT)
        time.sleep(8 * BEAT)
    assert not said
    one.stop()


def test_a_rank_may_wait_for_the_thread_that_writes_its_checkpoint(store):
    """As others do for theirs."""
    one, said = started(store, 0, size=1, runs=idle)
    with ThreadPoolExecutor(1) as threads:
        threads.submit(waiter("torch.distributed.distributed_c10d"), 40 * BEAT).result()
    assert not said
    one.stop()


def test_a_checkpoint_whose_files_do_not_answer_hangs(store):
    one, said = started(store, 0, size=1, runs=idle)
    waiter("torch.distributed.checkpoint.filesystem")(40 * BEAT)
    assert wait_for(said)[0].startswith("rank 0 hangs: for 0 s in torch._ops, line ")
    one.thread.join()


def test_a_rank_of_which_nothing_runs_is_named_wherever_it_is(store):
    one, said = started(store, 0, size=1, runs=idle)
    hang(said)
    (line,) = said
    assert line.startswith("rank 0 hangs: for 0 s in tests.experiments.test_watch, line ")
    one.thread.join()


def answers(*, runs, spins=False):
    """Whether anything runs in this process, as a thread is told that asks several times.

    Asks until the last answers are as expected, since a busy machine schedules threads late.
    spins: the main thread runs.
    """
    signs, found = Signs(), []

    def ask():
        limit = time.monotonic() + 20
        while len(found) < 8 or (any(found[-5:]) != runs and time.monotonic() < limit):
            time.sleep(0.04)
            found.append(signs())

    thread = threading.Thread(target=ask)
    thread.start()
    while spins and thread.is_alive():
        pass
    thread.join()
    return any(found[-5:])  # the first answers include work from before


linux = pytest.mark.skipif(sys.platform != "linux", reason="the system has to count")


@linux
@pytest.mark.parametrize("spins", [True, False])
def test_the_main_thread_counts_while_it_runs(spins):
    assert answers(runs=spins, spins=spins) == spins


SPINS = "print(flush=True)\nwhile True: pass"
SLEEPS = "import sys\nprint(flush=True)\nsys.stdin.read()"


@linux
@pytest.mark.parametrize("runs", [True, False])
def test_a_process_that_was_started_counts_while_it_runs(runs):
    command = [sys.executable, "-S", "-c", SPINS if runs else SLEEPS]
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **piped) as process:
        process.stdout.readline()
        assert answers(runs=runs) == runs
        process.kill()


@linux
def test_another_thread_counts():
    ended = threading.Event()
    thread = threading.Thread(target=lambda: [torch.rand(99) for _ in iter(ended.is_set, True)])
    thread.start()
    found = answers(runs=True)
    ended.set()
    thread.join()
    assert found


@linux
@pytest.mark.parametrize("state", ["D", "S"])
def test_a_disk_that_is_waited_for_counts(tmp_path, monkeypatch, state):
    """Of a process that this one has started, and of one that has ended nothing is known."""
    monkeypatch.setattr(watch, "PROCESSES", tmp_path)
    own = tmp_path / str(watch.os.getpid()) / "task"
    for place, children in ((own / "1", "7 8 "), (tmp_path / "7/task/7", "")):
        place.mkdir(parents=True)
        (place / "children").write_text(children)
        (place / "stat").write_text("1 (a ) name) S 0 0")
    (tmp_path / "7/task/7/stat").write_text(f"7 (a) {state} 0 0")
    assert watch.started(watch.os.getpid()) == [7, 8]
    assert watch._waits_for_disk() == (state == "D")


def test_a_minute_has_room_for_what_torchrun_gives_a_stopped_process():
    assert max(watch.SILENT, watch.OVERDUE) + 2 * watch.BEAT + 30 < 60


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
