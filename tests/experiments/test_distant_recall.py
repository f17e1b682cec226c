"""What is found again: every model is asked the same, from the state after each distance."""

import pytest
import torch

from experiments import distant_recall
from experiments.__main__ import main
from experiments.harness.core import record
from experiments.harness.learning.task_training import task_model
from experiments.harness.learning.tasks import draw


def test_models_differ_in_their_attention_alone_and_their_states_hold_as_much():
    runs = distant_recall.runs("cpu", smoke=False)
    assert len({run.name for run in runs}) == len(runs) == 3 * len(distant_recall.MODELS)
    varied = {"model", "attention", "attention_options", "distances", "seed"}
    same = [{k: v for k, v in run.config.items() if k not in varied} for run in runs]
    assert all(one == same[0] for one in same)
    first = [run.config for run in runs if run.config["seed"] == 0]
    numbers = {
        config["model"]: task_model(config).blocks[1].attn.state_numbers(1000) for config in first
    }
    states = [numbers[model] for model in numbers if model not in ("softmax", "no attention")]
    assert max(states) < 1.1 * min(states)


@pytest.mark.parametrize("model", ["softmax", "gated delta"])
def test_a_run_asks_for_every_key_at_every_distance(model, tmp_path):
    arguments = ["run", "distant_recall", "--smoke", "--device", "cpu", "--out", str(tmp_path)]
    assert main([*arguments, "--only", f"model={model}"]) == 0
    (one,) = record.load("distant_recall", tmp_path)
    test = one["tables"]["test"]
    assert test["distance"] == 2 * one["config"]["distances"]
    assert test["between"] == ["noise"] * 2 + ["pairs"] * 2
    assert set(test["questions"]) == {one["config"]["held_out"] * distant_recall.PAIRS}


@pytest.mark.parametrize("name", ["softmax", "delta"])
def test_a_state_is_asked_as_if_the_text_ended_there_and_stays_as_it_is(name):
    (run,) = [r for r in distant_recall.runs("cpu", smoke=True) if r.config["model"] == name]
    model = task_model(run.config)
    inputs, _ = draw("distant recall", seed=0, update=0, batch=2, length=40, pairs=8, vocab=128)
    machine = model.machine()
    state, _ = machine.read(machine.initial_state, inputs[:, :24])
    for question in (inputs[:, :1], inputs[:, 2:3]):
        _, logits = machine.read(state, question)
        whole = model(torch.cat([inputs[:, :24], question], dim=1))[:, -1]
        torch.testing.assert_close(logits, whole)
