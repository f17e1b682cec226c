"""Gates start where they are told to, and nothing else of a model changes."""

import pytest
import torch

from experiments import gate_starts, made_up_tasks
from experiments.harness.learning.task_training import task_model
from tests.experiments.command import performed


def test_models_are_those_of_the_made_up_tasks():
    for run in gate_starts.runs("cpu", smoke=False):
        config = dict(run.config)
        assert config.pop("half_life") in gate_starts.HALF_LIVES
        theirs = made_up_tasks._run("recall", config["model"], 3e-3, config["seed"]).config
        assert config == {key: value for key, value in theirs.items() if key in config}
        assert theirs.keys() - config.keys() == {"lengths", "distances"}
    assert not gate_starts.runs("cuda", smoke=False)


@pytest.mark.parametrize("model", gate_starts.MODELS)
@pytest.mark.parametrize("tokens", gate_starts.HALF_LIVES)
def test_a_gate_starts_with_its_half_life(model, tokens):
    [run] = [
        run
        for run in gate_starts.runs("cpu", smoke=False)
        if run.name == f"{model}-half-life-{tokens}-seed1"
    ]
    drawn, made = task_model(run.config), task_model(run.config)
    gate_starts.start(made, tokens)
    assert gate_starts.half_life(made) == pytest.approx(tokens, rel=1e-4)
    changed = [
        name
        for (name, one), other in zip(made.named_parameters(), drawn.parameters(), strict=True)
        if not torch.equal(one, other)
    ]
    assert len(changed) == 1 and changed[0].endswith("gate.proj.bias")


def test_a_run_is_stored(tmp_path):
    (one,) = performed(tmp_path, "gate_starts")
    assert one["tables"]["end"]["half_life"][0] > 0
    assert len(one["tables"]["test"]["accuracy"]) == 1
