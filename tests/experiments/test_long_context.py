"""A long past: the gain from having met a passage is measured on a model that can look back."""

import pytest
import torch

from experiments import long_context, race, whole_novels
from experiments.harness.core import record
from experiments.harness.core.weights import WEIGHTS, describe_weights
from experiments.harness.learning.weights import pack_weights
from experiments.recipes import stored_models
from lsa.gpt import GPT
from tests.experiments.command import nano
from tests.experiments.distilled import Copier
from tests.experiments.test_checking import one, put


def test_a_model_that_looks_back_gains_at_its_own_distance_alone():
    text, other = torch.randint(256, (2, 1000))
    with_it, without = long_context.met_before(Copier(300), text, other, 300)
    assert with_it < 0.01 < 5 < without
    with_it, without = long_context.met_before(Copier(300), text, other, 200)
    assert with_it == pytest.approx(without, abs=0.5)


def test_the_bytes_to_predict_are_the_same_whatever_is_given():
    text = torch.arange(200)
    seen = []

    class Spy(torch.nn.Module):
        def forward(self, tokens):
            seen.append(tokens[0].tolist())
            return torch.zeros(*tokens.shape, 256)

    for given in (16, 64):
        found = long_context.losses(Spy(), text[-given - long_context.PASSAGE :], 64)
        assert found.shape == (64,)
    assert [len(one) for one in seen] == [16 + 63, 64 + 63]
    assert seen[0] == seen[1][-len(seen[0]) :]


@pytest.mark.parametrize("asking", [long_context, whole_novels])
def test_only_models_that_the_race_keeps_are_asked(asking):
    trained = {run.name: run.config for run in race.runs("cpu", smoke=False)}
    planned = [run for run in asking.runs("cpu", smoke=False) if "trained" in run.config]
    for run in planned:
        config = trained[run.config["trained"]]
        model = (config["model"], config["context"], config["seed"])
        assert model in stored_models([config["context"]], [config["seed"]])
        for key in ("attention", "attention_options", "context", "seed"):
            assert run.config[key] == config[key]
    asked = {run.config["trained"] for run in planned}
    assert "linear-4096-seed2" in asked
    assert "linear-16384-seed2" not in asked


def test_it_reads_the_weights_that_the_race_left(tmp_path):
    config = next(run.config for run in long_context.runs("cpu", smoke=False))
    with pytest.raises(FileNotFoundError, match="experiments run race"):
        long_context.model_of(config, [tmp_path], torch.device("cpu"))
    model = nano(config["attention"], config["attention_options"])
    packed = pack_weights(model)
    told = record.sign({**one(), "weights": describe_weights(packed)})
    weights = put(tmp_path, told, f"{config['trained']}.json", "race/cpu").with_suffix(WEIGHTS)
    weights.write_bytes(packed)
    apart = tmp_path / "apart"
    found, sha256 = long_context.model_of(config, [apart, tmp_path], torch.device("cpu"))
    assert len(sha256) == 64
    tokens = torch.randint(256, (1, 30))
    torch.testing.assert_close(found(tokens), model(tokens), atol=0.05, rtol=0.05)
    weights.write_bytes(pack_weights(GPT(model.config)))
    with pytest.raises(record.RecordError, match="not the weights that the record describes"):
        long_context.model_of(config, [tmp_path], torch.device("cpu"))
