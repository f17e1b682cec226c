"""State size: runs differ in what they name, and what is measured of weights is what they are."""

import math

import pytest
import torch

from experiments import state_size
from experiments.harness.learning import probes
from experiments.harness.learning.corpora import load_corpus
from tests.experiments.command import CPU, nano, performed

NAMED = {"weights", "heads", "change", "seed", "shape", "attention", "attention_options"}


def test_a_run_differs_in_what_it_names_and_nothing_else():
    runs = state_size.runs("cpu", smoke=False)
    assert len(runs) == 3 * len(state_size.ARMS)
    for config in (run.config for run in runs):
        expected = {**state_size.BASE, **state_size.RECIPES[config["recipe"]]}
        expected |= state_size.CHANGES[config["change"]]
        rest = {key: value for key, value in config.items() if key not in NAMED | {"recipe"}}
        assert rest == expected
        fades = config["attention_options"].get("log_decay", [])
        wanted = config["recipe"] == "fades" or config["change"] == "a head fades"
        if config["attention"] != "none":
            near = config["heads"] // (1 if config["change"] == "near only" else 2)
            assert sum(slope < 0 for slope in fades) == (near if wanted else 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("only", "heads"), [("weights=elu + 1", 2), ("weights=Taylor 2", 8), ("weights=none", 0)]
)
def test_a_run_keeps_its_curve_its_size_and_how_many_tokens_it_weighs(
    only, heads, made_corpus, tmp_path
):
    (one,) = performed(tmp_path, "state_size", only)
    tables = one["tables"]
    assert tables["end"] == {"ending": ["finished"], "updates": [3]}
    assert tables["validation"]["update"] == [0, 2, 3]
    (state,) = tables["model"]["state"]
    K = 128 // heads if heads else 0
    features = {0: 0, 2: K, 8: math.comb(K + 2, 2)}[heads]
    assert state == 4 * heads * features * (K + 1)
    if heads:
        looked = tables["attended"]
        assert looked["update"] == [0] * 4 * heads + [3] * 4 * heads
        assert all(1 <= n <= 64 for n in looked["effective"])
        fades = [alike < 20 for alike in looked["alike"]]
        assert fades == ([True] * (heads // 2) + [False] * (heads // 2)) * 8


@pytest.mark.parametrize("attention", ["softmax", "linear", "taylor", "power"])
def test_equal_scores_weigh_every_token_alike(attention, made_corpus):
    """With keys of zero, or no terms of the sum but the first, weights are known beforehand."""
    model = nano(attention, {"log_decay": [-1.0, 0.0]}, n_layer=1, d_model=16)
    with torch.no_grad():
        model.h[0].attn.c_attn.weight[:32] = 0
        model.h[0].attn.c_attn.bias[:32] = 1
    near, far = probes.attended(model, load_corpus("novels"), context=32, device=CPU)
    assert near["moved"] == far["moved"] == pytest.approx(0, abs=1e-5)
    alike = math.exp(sum(math.log(n) for n in range(17, 33)) / 16)
    assert far["effective"] == far["alike"] == pytest.approx(alike, rel=1e-3)
    p = [(1 - math.exp(-1)) * math.exp(-i) for i in range(40)]
    assert near["effective"] == pytest.approx(math.exp(-sum(x * math.log(x) for x in p)), rel=1e-3)


def test_a_head_that_weighs_one_token_moves_all_others(made_corpus):
    class Last(torch.nn.Module):
        n_heads, log_decay = 1, None
        faded = staticmethod(torch.tril)

        def weights(self, x):
            return torch.eye(x.shape[1])[None, None]

        def forward(self, x):
            return x

    model = nano("softmax", n_layer=1, d_model=16)
    model.h[0].attn = Last()
    (row,) = probes.attended(model, load_corpus("novels"), context=32, device=CPU)
    assert row["effective"] == pytest.approx(1)
    assert row["moved"] == pytest.approx(1 - sum(1 / n for n in range(17, 33)) / 16, abs=1e-4)


def test_nothing_is_said_of_weights_that_may_be_negative(made_corpus):
    options = {"feature_map": "identity"}
    for attention, given in (("linear", options), ("none", {})):
        model = nano(attention, given, n_layer=1, d_model=16)
        assert probes.attended(model, load_corpus("novels"), context=32, device=CPU) == []
