"""The race: what differs between its runs, what is kept of a trained model, and that it resumes."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments import race
from experiments.__main__ import main
from experiments.harness.core import record
from experiments.harness.learning import probes, weights
from experiments.harness.learning.corpora import load_corpus
from lsa.gpt import GPT, gpt_config

NANO = {"vocab_size": 256, "n_positions": None, "n_layer": 2, "n_head": 2, "d_model": 16}


def model(attention="linear", **options):
    torch.manual_seed(0)
    shape = gpt_config("nano", **NANO, attention=attention, attention_options=options)
    return GPT(shape)


def test_runs_at_a_context_differ_in_attention_and_seed_alone():
    runs = race.runs("cpu", smoke=False)
    for context in race.UPDATES:
        found = [
            r.config for r in runs if r.config["context"] == context and "rounds" not in r.config
        ]
        assert len(found) == len(race.MODELS) * len(race.SEEDS)
        varied = {"model", "attention", "attention_options", "seed", "film", "window"}
        same = [{k: v for k, v in config.items() if k not in varied} for config in found]
        assert all(one == same[0] for one in same)
    assert len({run.name for run in runs}) == len(runs)


def test_every_model_is_timed_in_turn(made_corpus, tmp_path):
    arguments = ["run", "race", "--smoke", "--device", "cpu", "--out", str(tmp_path / "out")]
    assert main([*arguments, "--only", "model=all"]) == 0
    (one,) = record.load("race", tmp_path / "out")
    assert one["tables"]["speed"]["model"] == list(race.MODELS)


@pytest.mark.parametrize("attention", ["linear", "conv", "none"])
def test_a_run_keeps_its_curve_its_film_and_its_losses_by_position(
    attention, made_corpus, tmp_path, monkeypatch
):
    names = {"linear": "linear", "conv": "two bytes", "none": "no attention"}
    only = f"model={names[attention]}"
    arguments = ["run", "race", "--smoke", "--device", "cpu", "--out", str(tmp_path / "out")]
    assert main([*arguments, "--only", only]) == 0
    (one,) = record.load("race", tmp_path / "out")
    assert one["tables"]["samples"]["update"] == [0, 0, 2, 2]
    positions = one["tables"]["positions"]
    own = [i for i, reading in enumerate(positions["reading"]) if reading == "own"]
    last = [1, 3, 7, 15, 31, 63, 64]
    assert [positions["last"][i] for i in own] == last
    # Without a table of positions each span is read as one text too.
    assert positions["last"][len(own) :] == [*last[:-1], 127, 255, 256]
    assert sum(positions["tokens"][i] for i in own) == 5 * one["config"]["validation_span"]
    whole = zip(positions["loss"], positions["tokens"], positions["reading"], strict=True)
    mean = sum(loss * n for loss, n, reading in whole if reading == "own") / (5 * 256)
    assert mean == pytest.approx(one["tables"]["validation"]["loss"][-1], abs=1e-3)
    weights = list((tmp_path / "out").rglob("*.weights.npz"))
    assert len(weights) == (attention == "linear")


@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_what_a_model_looks_at_makes_its_output(attention):
    """The weights kept for the film are those that the layer mixes its values with."""
    layer = model(attention, log_decay=[-0.2, 0.0]).h[0].attn
    x = torch.randn(1, 9, 16)
    A = layer.weights(x)
    torch.testing.assert_close(A.sum(-1), torch.ones(1, 2, 9))
    v = layer.qkv(x)[2].transpose(1, 2)
    torch.testing.assert_close(layer.out((A @ v).transpose(1, 2)), layer(x), rtol=1e-4, atol=1e-5)


def test_kept_weights_are_the_model_rounded():
    first, second = model(), model()
    packed = weights.pack_weights(first)
    second.load_state_dict(weights.unpack_weights(packed))
    for (name, before), after in zip(first.named_parameters(), second.parameters(), strict=True):
        bound = before.abs().amax(-1, keepdim=True) / 127 / 2 * (before.dim() > 1) + 1e-7
        assert ((before - after).abs() <= bound).all(), name
    with pytest.raises(ValueError, match="packed: expected what pack_weights writes"):
        weights.unpack_weights(packed[: len(packed) // 2])


def test_losses_by_position_need_a_corpus_long_enough(made_corpus):
    with pytest.raises(ValueError, match="span: no document is longer than 16384"):
        probes.loss_by_position(
            model(), load_corpus("novels"), context=64, device=torch.device("cpu")
        )


@settings(max_examples=30)
@given(st.integers(1, 70), st.sampled_from([8, 16, 32]))
def test_windows_leave_out_only_what_cannot_be_seen(length, window):
    """A head that fades by 2^-100 within a window: losses and gradients as without windows."""
    options = {"log_decay": [-70 / window, -80 / window]}
    config = {"attention": "softmax", "attention_options": options}
    whole = model("softmax", **options).double()
    limited = race.windowed({**config, "window": window})
    windowed = model(limited["attention"], **limited["attention_options"]).double()
    tokens = torch.randint(256, (2, length + 1))
    found = []
    for one in (whole, windowed):
        loss = one(tokens[:, :-1]).square().mean()
        loss.backward()
        found.append([loss, *(p.grad for p in one.parameters())])
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-12)


def test_every_window_is_one_in_which_every_head_fades():
    """What is left out would have to score 69 nats above everything near to be seen at all."""
    windows = [run.config for run in race.runs("cpu", smoke=False) if "window" in run.config]
    assert windows
    for config in windows:
        slowest = max(config["attention_options"]["log_decay"])
        assert slowest * config["window"] <= -100 * math.log(2)
        assert config["attention"] == "softmax"
