"""Scaling: sizes differ in their shape alone, and compute is what the layers count."""

import pytest

from experiments import scaling
from lsa.cost import update_flops
from lsa.gpt import GPT, gpt_config
from tests.experiments.command import performed


def parameters(size):
    return GPT(
        gpt_config("nano", vocab_size=256, n_positions=None, **scaling.SIZES[size])
    ).n_parameters


def test_sizes_are_what_they_are_called():
    for size in scaling.SIZES:
        assert parameters(size) / 1e6 == pytest.approx(float(size.removesuffix("M")), abs=0.06)
    counts = [parameters(size) for size in scaling.SIZES]
    assert counts == sorted(counts)
    assert sorted(scaling.ORDER) == sorted(scaling.SIZES)


def test_a_run_keeps_what_it_costs(made_corpus, tmp_path):
    (one,) = performed(tmp_path, "scaling", "attention=linear")
    config = one["config"]
    shape = gpt_config(
        config["scale"], vocab_size=256, n_positions=None, attention="linear", **config["shape"]
    )
    assert one["tables"]["model"]["parameters"] == [GPT(shape).n_parameters]
    assert one["tables"]["model"]["flops"] == [update_flops(shape, config["context"])]
    assert one["tables"]["validation"]["update"] == [0, 2, 3]
