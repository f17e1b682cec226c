"""Whole models that are taught: the plan, the runs, and the law of what comes out."""

import pytest
import torch

from experiments import linearise, replace_heads
from experiments.harness.learning.corpora import load_corpus
from experiments.harness.learning.distilling import Distillation
from experiments.harness.learning.returning import trained
from lsa.machines import unroll
from tests.experiments.command import bare_session, performed

EXPERIMENTS = {"linearise": linearise, "replace_heads": replace_heads}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_run_is_stored(name, made_corpus, tmp_path):
    (one,) = performed(tmp_path, name)
    arms = [*one["config"]["arms"]]
    assert one["tables"]["measured"]["arm"][: len(arms)] == arms
    assert set(one["tables"]["train"]["arm"]) == set(arms)


@pytest.mark.parametrize("arm", ["window", "hedgehog-4", "taylor-2", "fades-64", "delta"])
def test_a_taught_student_ticks_as_it_reads(arm, made_corpus):
    attention = replace_heads.attention_of(arm, [(0, 1), (1, 2), (1, 3)])
    config = {**replace_heads.BASE, **replace_heads.SMOKE}
    splits = load_corpus("novels").splits
    taught = Distillation(config, {arm: attention}, [0, 1], trained("tiny"), splits)
    while taught.tokens < config["tokens"]:
        taught.update()
    model, tokens = taught.students[arm].model, torch.randint(256, (1, 300))
    with torch.no_grad():
        read, ticked = model(tokens), unroll(model.machine())(tokens)
    assert (ticked - read).abs().max() <= 1e-4 * read.abs().max()


def test_heads_of_a_ranking_stay_or_are_replaced():
    stay = linearise.attention_of(linearise.ARMS["state"], [(1, 2)])
    assert stay["1.2"] == {"kind": "softmax"} and stay["all"]["kind"] == "window-state"
    heads = [(0, 1), (1, 2), (1, 3)]
    replaced = replace_heads.attention_of("fades-64", heads)
    assert replaced["all"] == replace_heads.WINDOW
    assert [len(replaced[key]["log_decay"]) for key in ("0.1", "1.2", "1.3")] == [1, 2, 2]
    assert replaced["1.2"]["log_decay"][0] * 64 == pytest.approx(-torch.tensor(2.0).log().item())
    assert replace_heads.attention_of("window", heads)["0.1"] == replace_heads.WINDOW
    assert replace_heads.attention_of("softmax", []) == {}


def test_a_run_with_heads_asks_for_their_ranking(made_corpus, tmp_path):
    folder = tmp_path / "out" / "linearise" / "cpu" / ".checkpoints"
    session = bare_session(folder / "run.pt")
    config = {**linearise.BASE, **linearise.SMOKE, "softmax_heads": 2}
    with pytest.raises(FileNotFoundError, match="remove_exponential --only where=rank"):
        linearise.perform(config, session)
