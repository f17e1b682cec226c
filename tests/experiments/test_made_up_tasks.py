"""Training on made-up texts: what differs between runs, how one ends, and what it answers."""

from collections import defaultdict

import pytest
import torch

from experiments import made_up_tasks
from experiments.harness.learning import answers, task_training
from experiments.harness.learning.answers import ask, ask_at_distances, ask_at_length, state_bytes
from experiments.harness.learning.task_training import TaskTraining, task_model
from experiments.harness.learning.tasks import draw
from lsa.layers import LAYERS
from tests.experiments.command import bare_session, performed

RUNS = made_up_tasks.runs("cpu", smoke=False)
ORDERED = [run.config for run in sorted(RUNS, key=lambda run: run.priority)]


def small(task, model):
    """A model's smallest run at a task."""
    return made_up_tasks._run(task, model, 3e-3, 0, smoke=True).config


@pytest.fixture
def here(tmp_path):
    """A session whose checkpoint has a place."""
    return bare_session(tmp_path / "run.pt")


def test_the_plan_holds_every_layer_at_three_rates_and_seeds_and_differs_in_nothing_else():
    varied = {
        "model", "attention", "attention_options", "n_head", "seed", "learning_rate",
        "lengths", "distances",
    }  # fmt: skip
    trained = defaultdict(set)
    for task in made_up_tasks.TASKS:
        found = [config for config in ORDERED if config["task"] == task]
        same = [{k: v for k, v in config.items() if k not in varied} for config in found]
        assert all(one == same[0] for one in same)
        for one in found:
            size = one["n_head"], one["attention_options"].get("d_state")
            trained[task, one["model"], size].add((one["learning_rate"], one["seed"]))
    for (task, model, (heads, _)), them in trained.items():
        beyond = task == "recall" and heads == 1 and model in made_up_tasks.BEYOND
        assert len(them) == (12 if beyond else 9)
    recalled = {config["attention"] for config in ORDERED if config["task"] == "recall"}
    assert recalled == set(LAYERS)


def test_states_are_of_one_size_where_it_can_be_chosen():
    free = ("softmax", "power", "none", "fades")  # a cache, many features, nothing at all
    for task in ("recall", "distant recall"):
        models = made_up_tasks.MODELS if task == "recall" else made_up_tasks.OF_DISTANCES
        sizes = [
            state_bytes(task_model(made_up_tasks._run(task, name, 3e-3, 0).config), 64)
            for name in models
            if name not in free
        ]
        assert len(sizes) > 3 and max(sizes) < 1.5 * min(sizes)


def test_a_states_bytes_are_those_of_the_layer_that_is_compared():
    model = task_model(small("recall", "linear"))
    convolution, layer = (block.attn for block in model.blocks)
    assert state_bytes(model, 64) == 4 * layer.state_numbers(64) and convolution.state_numbers(64)


@pytest.mark.parametrize("choice", ["model=gla", "model=fades", "task=overwriting"])
def test_a_run_keeps_its_curve_its_end_and_its_answers(choice, tmp_path):
    for one in performed(tmp_path, "made_up_tasks", choice):
        config, tables = one["config"], one["tables"]
        assert tables["end"] == {"updates": [4], "ending": ["stopped"]}
        assert tables["curve"]["update"] == [2, 4]
        if config["distances"]:
            assert tables["distances"]["distance"] == 2 * config["distances"]
            assert tables["distances"]["between"] == ["noise"] * 2 + ["pairs"] * 2
            assert set(tables["distances"]["questions"]) == {config["held_out"] * 8}
        else:
            asked = config["lengths"] or [case["length"] for case in config["cases"]]
            assert tables["test"]["length"] == asked


def test_training_ends_when_texts_are_answered_and_before_a_loss_that_is_not_finite(here):
    config = {**small("recall", "softmax"), "solved": 0.0}
    training = TaskTraining(config)
    assert training.train(here)
    assert (training.updates, training.ending) == (2, "solved")
    training = TaskTraining({**config, "solved": 1.1, "updates": 3})
    assert training.train(here)
    assert [row["update"] for row in training.curve] == [2, 3] and training.ending == "stopped"
    training = TaskTraining(config)
    with torch.no_grad():
        training.model.wte.weight.fill_(torch.inf)
    assert training.train(here)
    assert (training.updates, training.ending, training.curve) == (0, "not finite", [])
    assert not TaskTraining(config).train(bare_session(here.checkpoint, deadline=0.0))


def test_a_stopped_training_goes_on_as_if_it_had_not_been(here):
    config = {**small("overwriting", "delta-adds"), "updates": 6}
    whole = TaskTraining(config)
    assert whole.train(here)
    first = TaskTraining({**config, "updates": 3})
    assert first.train(here)
    first.config, first.ending, first.curve = config, "", first.curve[:1]
    first.save(here)
    second = TaskTraining(config)
    assert second.train(here)
    assert (second.curve, second.ending) == (whole.curve, whole.ending)
    for a, b in zip(second.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(a, b)
    # That of another configuration is no place to go on from.
    other = TaskTraining({**config, "seed": 1})
    assert other.train(here)
    assert not here.checkpoint.exists() and "of another configuration" in here.warnings[0]


def test_a_training_leaves_checkpoints_on_its_way(here, monkeypatch):
    monkeypatch.setattr(task_training, "SAVE_EVERY", 0.0)
    config, saved = {**small("recall", "linear"), "updates": 6}, []
    training = TaskTraining(config)
    monkeypatch.setattr(training, "save", lambda session: saved.append(training.updates))
    assert training.train(here)
    assert saved == [1, 2, 3, 4, 5]  # after the last the run is stored


@pytest.mark.parametrize("model", ["softmax", "linear", "s6"])
def test_a_long_text_is_read_in_pieces_as_if_at_once(model, monkeypatch):
    monkeypatch.setattr(answers, "PIECE", 7)
    config = small("induction", model)
    gpt = task_model(config)
    found = ask_at_length(gpt, config, 40, 16, bare_session())
    inputs, targets = draw("induction", seed=2_000_000, update=-1, batch=16, length=40, vocab=16)
    logits = gpt(inputs)[:, -1]
    loss = torch.nn.functional.cross_entropy(logits, targets[:, -1])
    assert found is not None and found.loss / 16 == pytest.approx(loss.item(), rel=1e-4)
    assert ask_at_length(gpt, config, 40, 16, bare_session(deadline=0.0)) is None


def test_texts_are_asked_in_parts_as_if_at_once(monkeypatch):
    config = small("recall", "gla")
    gpt = task_model(config)
    whole = ask(gpt, config, config["cases"][0], 5, 10)
    monkeypatch.setattr(answers, "AT_ONCE", 3)
    parts = ask(gpt, config, config["cases"][0], 5, 10)
    assert (parts.questions, parts.right) == (whole.questions, whole.right) == (80, whole.right)
    assert parts.loss == pytest.approx(whole.loss, rel=1e-4)


@pytest.mark.parametrize("model", ["softmax", "delta"])
def test_a_state_is_asked_as_if_the_text_ended_there_and_stays_as_it_is(model, monkeypatch):
    monkeypatch.setattr(answers, "PIECE", 7)
    config = small("distant recall", model)
    gpt = task_model(config)
    rows = ask_at_distances(gpt, config, "pairs", bare_session()) or []
    inputs, _ = draw(
        "distant recall", seed=2_000_000, update=-1, batch=2, length=48, pairs=8, vocab=128,
        others=1,
    )  # fmt: skip
    for row, distance in zip(rows, (4, 16), strict=True):
        text, losses = inputs[:, : 16 + distance], []
        for pair in range(8):
            asked = torch.cat([text, inputs[:, 2 * pair : 2 * pair + 1]], dim=1)
            logits, value = gpt(asked)[:, -1], inputs[:, 2 * pair + 1]
            losses.append(torch.nn.functional.cross_entropy(logits, value).item())
        assert row["distance"] == distance and row["questions"] == 16
        assert row["loss"] == pytest.approx(sum(losses) / 8, abs=2e-5)
    assert ask_at_distances(gpt, config, "pairs", bare_session(deadline=0.0)) is None
