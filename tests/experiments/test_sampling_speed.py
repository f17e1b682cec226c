"""Sampling speed: ticks from Python, and captured ones, whose graph a tape of operations plays."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from experiments import sampling_speed
from experiments.harness.bench.timing import Timing
from experiments.harness.core.tables import check_declared
from lsa.gpt import GPT, gpt_config
from lsa.layers import KVCache
from tests.experiments.command import CPU, ORIGIN, bare_session, go_on

ATTENTIONS = ("softmax", "linear")


def flat(x):
    if isinstance(x, tuple | list):
        return [y for part in x for y in flat(part)]
    return [x] if isinstance(x, torch.Tensor) else []


class Tape(TorchDispatchMode):
    """What a CUDA graph does: it keeps operations with the addresses that they read and write.

    Captured, they have not happened. Replayed, they read what lies there by then.
    """

    def __init__(self, call):
        super().__init__()
        self.taken, self.before = [], []
        with self:
            call()
        for x, value in reversed(self.before):
            x.copy_(value)
        for _, args, _, made in self.taken:
            for y in self._new(args, made):
                y.fill_(float("nan") if y.is_floating_point() else 0)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten._local_scalar_dense.default:
            raise RuntimeError("operation not permitted when stream is capturing")
        kwargs = kwargs or {}
        if func._schema.is_mutable:
            self.before += [(x, x.clone()) for x in flat(args)]
        made = func(*args, **kwargs)
        self.taken.append((func, args, kwargs, made))
        return made

    @staticmethod
    def _new(args, made):
        """Results with memory of their own."""
        known = {x.untyped_storage().data_ptr() for x in flat(args)}
        return [y for y in flat(made) if y.untyped_storage().data_ptr() not in known]

    def replay(self):
        for func, args, kwargs, made in self.taken:
            again = func(*args, **kwargs)
            new = {id(y) for y in self._new(args, made)}
            for y, value in zip(flat(made), flat(again), strict=True):
                if id(y) in new:
                    y.copy_(value)


WARM_UP = 2  # calls before a capture


def taped(call):
    for _ in range(WARM_UP):
        call()
    tape = Tape(call)
    tape.replay()
    return tape


@pytest.fixture
def replaced_gpu(monkeypatch):
    monkeypatch.setattr(sampling_speed, "capture", taped)
    monkeypatch.setattr(sampling_speed, "captures", lambda device: True)


def machine_of(attention, device):
    torch.manual_seed(0)
    shape = {"n_layer": 2, "n_head": 2, "d_model": 16, "n_positions": 40, "vocab_size": 32}
    return GPT(gpt_config("nano", attention=attention, **shape)).to(device).eval().machine()


def likeliest(logits):
    return logits.argmax(-1)


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_replays_are_the_ticks_that_follow(attention, replaced_gpu, monkeypatch):
    monkeypatch.setattr(sampling_speed, "draw", likeliest)
    check_replays(attention, CPU)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="a graph is captured on a GPU")
@pytest.mark.parametrize("attention", ATTENTIONS)
def test_so_are_those_of_a_graph(attention, monkeypatch):
    monkeypatch.setattr(sampling_speed, "draw", likeliest)
    check_replays(attention, torch.device("cuda"))


@torch.no_grad()
def check_replays(attention, device):
    machine = machine_of(attention, device)
    prompt = torch.randint(32, (3, 6)).to(device)

    def read(room):
        given = sampling_speed.replaced(
            machine.initial_state, lambda x: KVCache(room=room) if isinstance(x, KVCache) else x
        )
        return machine.prefill(given, prompt)[0]

    state, token = read(16), torch.zeros(3, dtype=torch.long, device=device)
    tick = sampling_speed.capture_tick(machine, read(40), token)
    for n in range(WARM_UP + 4):
        after, logits = machine.step(state, token)
        token = likeliest(logits)
        if attention == "linear":  # a cache stays as long as it is, and so does the position
            state = (state[0], *after[1:])
        if n < WARM_UP:
            continue
        assert torch.equal(tick.token, token)
        if attention == "linear":
            held, wanted = (sampling_speed.tensors(each) for each in (tick.state, state))
            assert len(held) == 4
            assert all(torch.equal(x, y) for x, y in zip(held, wanted, strict=True))
        tick.graph.replay()
    # Then the state goes on from Python, without its cache being copied.
    after, logits = machine.step(tick.state, tick.token)
    assert logits.isfinite().all()
    caches = [
        (x.buffer, y.buffer)
        for x, y in zip(*(parts(state) for state in (tick.state, after)), strict=True)
        if isinstance(x, KVCache)
    ]
    assert len(caches) == (2 if attention == "softmax" else 0)
    assert all(x is y and x.filled == 6 + 2 for x, y in caches)


def parts(state):
    found = []
    sampling_speed.replaced(state, found.append)
    return found


def test_a_graph_waits_for_no_number():
    logits = torch.randn(2, 8)
    with pytest.raises(RuntimeError, match="not permitted"):
        Tape(lambda: sampling_speed.choose(logits))
    Tape(lambda: sampling_speed.draw(logits))


def test_tokens_are_drawn_as_often_as_they_are_likely():
    torch.manual_seed(0)
    likely = torch.tensor([0.5, 0.3, 0.15, 0.05])
    drawn = sampling_speed.draw(likely.log().expand(40000, 4))
    assert torch.bincount(drawn).div(40000) == pytest.approx(likely, abs=0.01)


def perform():
    (run,) = sampling_speed.runs("cpu", smoke=True)
    outcome = sampling_speed.perform(run.config, bare_session())
    assert outcome.complete
    experiment = sampling_speed.EXPERIMENT
    check_declared(outcome.tables, experiment.tables, experiment.units, complete=True)
    return outcome.tables


def test_on_a_cpu_ticks_are_called():
    assert [*perform()] == ["rows"]


def test_on_a_gpu_both_attentions_are_captured_at_each_position(replaced_gpu, monkeypatch):
    def replays(graphs, device):
        (tape,) = graphs.values()
        tape.replay()
        return {"": Timing(0.5, 0.5, 0.5, 7)}

    monkeypatch.setattr(sampling_speed, "replay_in_turns", replays)
    tables = perform()
    for name in ("attention", "position"):
        assert tables["rows"][name] == tables["eager"][name]
    assert tables["rows"]["attention"] == ["softmax"] * 2 + ["linear"] * 2
    assert set(tables["rows"]["seconds"]) == {0.5}
    assert max(tables["eager"]["seconds"]) < 0.5
    ticks = 4 + 1
    widths = 4 * 128 * 2 * 4  # of all layers, keys and values, in float32
    assert tables["rows"]["state"][:2] == [widths * ticks, widths * (63 + ticks)]


def test_a_run_goes_on_where_it_was_left(monkeypatch):
    (run,) = sampling_speed.runs("cpu", smoke=True)
    session = bare_session()
    whole = sampling_speed.perform(run.config, session).tables["rows"]
    assert whole["position"] == [1, 64] * 2
    go_on(session, {"rows": {name: values[:3] for name, values in whole.items()}})
    made = []
    model = sampling_speed.GPT
    monkeypatch.setattr(sampling_speed, "GPT", lambda shape: made.append(1) or model(shape))
    again = sampling_speed.perform(run.config, session).tables["rows"]
    assert again["attention"] == whole["attention"] and again["position"] == whole["position"]
    assert again["seconds"][:3] == whole["seconds"][:3] and len(made) == 1
    assert again["state"] == whole["state"]
    assert session.earlier == [ORIGIN]
