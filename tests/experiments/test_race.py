"""The race: what differs between its runs, what is kept of a trained model, and that it resumes."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments import race
from experiments.harness.learning import probes, weights
from experiments.harness.learning.corpora import load_corpus
from tests.experiments.command import nano, performed


def model(attention="linear", **options):
    return nano(attention, options, n_layer=2, n_head=2, d_model=16)


@pytest.mark.slow
def test_every_model_is_timed_in_turn(made_corpus, tmp_path):
    (one,) = performed(tmp_path, "race", "model=all")
    assert one["tables"]["speed"]["model"] == list(race.MODELS)


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["linear", "conv", "none"])
def test_a_run_keeps_its_curve_its_film_and_its_losses_by_position(
    attention, made_corpus, tmp_path
):
    names = {"linear": "linear", "conv": "two bytes", "none": "no attention"}
    (one,) = performed(tmp_path, "race", f"model={names[attention]}")
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


def test_kept_weights_are_the_model_rounded():
    first, second = model(), model()
    packed = weights.pack_weights(first)
    second.load_state_dict(weights.unpack_weights(packed))
    for (name, before), after in zip(first.named_parameters(), second.parameters(), strict=True):
        bound = before.abs().amax(-1, keepdim=True) / 127 / 2 * (before.dim() > 1) + 1e-7
        assert ((before - after).abs() <= bound).all(), name


def test_weights_that_are_kept_are_those_of_a_token_and_its_past():
    for row in probes.attention_weights(model(), torch.device("cpu")):
        shares = [*map(int, row["weights"].split())]
        assert len(shares) == row["token"] + 1
        assert sum(shares) == pytest.approx(1000, abs=len(shares) / 2)


def test_losses_by_position_need_a_corpus_long_enough(made_corpus):
    with pytest.raises(ValueError, match="span: no document is longer than 16384"):
        probes.loss_by_position(
            model(), load_corpus("novels"), context=64, device=torch.device("cpu")
        )


@pytest.mark.slow
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
