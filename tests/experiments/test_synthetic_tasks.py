"""Training on made-up texts: what differs between runs, how one ends, and what it answers."""

import pytest
import torch

from experiments import synthetic_tasks
from experiments.__main__ import main
from experiments.harness.core import record
from experiments.harness.core.plan import Session
from experiments.harness.learning.task_training import (
    TaskTraining,
    ask_at_length,
    state_bytes,
    task_model,
)
from experiments.harness.learning.tasks import draw
from lsa.layers import LAYERS

RUNS = synthetic_tasks.runs("cpu", smoke=False)


def small(task, layer):
    """A layer's smallest run at a task."""
    return synthetic_tasks._run(task, layer, 1, {}, 0, 0, synthetic_tasks.SMOKE).config


def session(**changes):
    return Session(
        device=torch.device("cpu"), corpus=None, save=lambda tables: None,
        show=lambda *told: None, checkpoint=None, **changes,
    )  # fmt: skip


def test_the_plan_holds_every_layer_at_every_task_and_differs_in_nothing_else():
    assert set(synthetic_tasks.ORDER) == set(LAYERS)
    assert len({run.name for run in RUNS}) == len(RUNS)
    varied = {"attention", "attention_options", "n_head", "seed", "lengths"}
    for task in synthetic_tasks.TASKS:
        found = [run.config for run in RUNS if run.config["task"] == task]
        assert {config["attention"] for config in found} == set(LAYERS)
        same = [{k: v for k, v in config.items() if k not in varied} for config in found]
        assert all(one == same[0] for one in same)
    # A plan that is cut short has every layer's first seed before any second.
    ordered = [run.config["seed"] for run in sorted(RUNS, key=lambda run: run.priority)]
    assert ordered == sorted(ordered)


def test_states_are_of_one_size_where_it_can_be_chosen():
    chosen = [
        state_bytes(task_model(run.config), 64)
        for run in RUNS
        if run.config["task"] == "recall" and run.config["seed"] == 0
        and run.config["attention"] in ("linear", "delta", "gated", "s6", "s4", "s4d", "mamba")
        and not any(part in run.name for part in ("heads", "-n"))
    ]  # fmt: skip
    assert len(chosen) == 7
    assert max(chosen) < 1.5 * min(chosen)


@pytest.mark.parametrize("layer", ["delta", "s6", "rwkv"])
def test_a_run_keeps_its_rates_its_curve_and_its_answers(layer, tmp_path):
    arguments = ["run", "synthetic_tasks", "--smoke", "--device", "cpu", "--out", str(tmp_path)]
    assert main([*arguments, "--only", f"attention={layer}"]) == 0
    (one,) = record.load("synthetic_tasks", tmp_path)
    rates, curve, test = (one["tables"][table] for table in ("rates", "curve", "test"))
    assert rates["rate"] == one["config"]["learning_rates"]
    assert rates["chosen"].count("yes") == 1
    chosen = rates["chosen"].index("yes")
    assert rates["updates"] == [4 if i == chosen else 2 for i in range(3)]
    probed = [
        loss for update, loss in zip(curve["update"], curve["loss"], strict=True) if update == 2
    ]
    assert probed[chosen] == min(probed)
    asked = one["config"]["lengths"] or [case["length"] for case in one["config"]["cases"]]
    assert test["length"] == asked[: len(test["length"])]


def test_training_ends_when_texts_are_answered_and_before_a_loss_that_is_not_finite():
    config = {**small("recall", "softmax"), "solved": 0.0}
    training = TaskTraining(config, 1e-3)
    assert training.train_to(100, session())
    assert (training.updates, training.told(chosen=True)["ending"]) == (2, "solved")
    training = TaskTraining({**config, "solved": 1.0}, 1e-3)
    with torch.no_grad():
        training.model.wte.weight.fill_(torch.inf)
    assert training.train_to(100, session())
    assert (training.updates, training.told(chosen=False)["ending"]) == (0, "not finite")
    assert training.held_out_loss == float("inf")
    assert not TaskTraining(config, 1e-3).train_to(1, session(deadline=0.0))


@pytest.mark.parametrize("layer", ["softmax", "linear", "s6"])
def test_a_long_text_is_read_in_pieces_as_if_at_once(layer, monkeypatch):
    monkeypatch.setattr("experiments.harness.learning.task_training.PIECE", 7)
    config = small("induction", layer)
    model = task_model(config)
    answers = ask_at_length(model, config, 40, 16, session())
    inputs, targets = draw("induction", seed=2_000_000, update=-1, batch=16, length=40, vocab=16)
    logits = model(inputs)[:, -1]
    loss = torch.nn.functional.cross_entropy(logits, targets[:, -1])
    assert answers.loss / 16 == pytest.approx(loss.item(), rel=1e-4)
    assert ask_at_length(model, config, 40, 16, session(deadline=0.0)) is None
