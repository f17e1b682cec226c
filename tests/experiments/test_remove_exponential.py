"""A trained model that may not look back: the texts, the ranking, and the plan."""

import pytest
import torch

from experiments import remove_exponential
from experiments.harness.learning.corpora import load_corpus
from experiments.harness.learning.returning import (
    LEAD,
    PAIRS,
    PASSAGE,
    passages,
    recall_in_text,
    scores,
    unseen,
)
from tests.experiments.command import bare_session, go_on, performed, smoke
from tests.experiments.distilled import Copier, cut, teacher


def split_of(name="test"):
    return load_corpus("novels").splits[name]


def test_a_passage_comes_again_after_so_many_others(made_corpus):
    for text in passages(split_of(), cut, distance=40, texts=3):
        assert text.tokens.shape == (LEAD + 2 * PASSAGE + 40,)
        assert torch.equal(text.tokens[text.first], text.tokens[text.second])
        assert (text.second - text.first == PASSAGE + 40).all()
        assert len(text.first) == PASSAGE


def test_late_texts_end_where_far_ones_do(made_corpus):
    late, novel = remove_exponential.TEXTS["late"], split_of("train")
    (one,) = late(novel, cut, distance=256, texts=1)
    (other,) = passages(novel, cut, distance=4096, texts=1)
    assert torch.equal(one.second, other.second)
    assert (one.second - one.first == PASSAGE + 256).all()
    assert torch.equal(one.tokens[one.first], one.tokens[one.second])


def test_a_list_comes_again_in_another_order(made_corpus):
    one, other = recall_in_text(split_of(), cut, distance=50, texts=2, seed=0)
    assert torch.equal(one.tokens[one.first], one.tokens[one.second])
    assert len(one.first) == 3 * PAIRS
    assert all(chr(token).isdigit() for token in one.tokens[one.first])
    assert (one.second[::3].argsort() != torch.arange(PAIRS)).any()
    assert (one.second - one.first).min() > 50
    assert not torch.equal(one.tokens, other.tokens)
    again, _ = recall_in_text(split_of(), cut, distance=50, texts=2, seed=0)
    assert torch.equal(one.tokens, again.tokens)


def test_a_text_that_is_too_short_is_named(made_corpus):
    with pytest.raises(ValueError, match="^length: expected at most 2000 tokens, got 5"):
        passages(split_of(), cut, distance=5000, texts=1)


def test_a_model_that_looks_back_gains(made_corpus):
    (text,) = passages(split_of(), cut, distance=600, texts=1)
    found = scores(Copier(PASSAGE + 600), text)
    assert found["right"] == 1 and found["second"] < 0.01 < 5 < found["first"]
    assert found["gain"] == pytest.approx(found["first"] - found["second"])
    assert scores(Copier(PASSAGE + 500), text)["gain"] < 0.5


@pytest.mark.slow
def test_slopes_add_up_to_what_confining_all_heads_costs(made_corpus, monkeypatch):
    """The path from softmax to windows, in many steps: its integral is the difference."""
    steps = 100
    monkeypatch.setattr(remove_exponential, "MIXTURES", [(i + 0.5) / steps for i in range(steps)])
    (text,) = passages(split_of(), cut, distance=40, texts=1)
    model, near = teacher().model, {"window": 8, "first": 2}
    slope, mass = remove_exponential.slopes(model, text, near)
    full = scores(model, text)["gain"]
    model.attend({"all": {"kind": "window", **near}})
    assert slope.sum().item() == pytest.approx(scores(model, text)["gain"] - full, rel=0.01)
    assert slope.shape == mass.shape == (2, 4)
    assert (mass > 0).all() and (mass < 1).all()
    slope, mass = remove_exponential.slopes(model, text, {"window": 300, "first": 0})
    assert not slope.abs().max() > 1e-4 and not mass.any()


def test_what_ranks_does_not_measure():
    plan = remove_exponential.runs("cpu", smoke=False)
    for run in plan:
        rank, split = run.config["where"] == "rank", run.config["split"]
        assert (split == "validation", run.config["texts"]) == ((True, 8) if rank else (False, 32))
        assert (split == "train") == run.name.startswith("train-")
    assert [run.config["where"] for run in plan[:3]] == ["rank", "rank", "none"]


def test_runs_are_stored_with_the_heads_they_confine(made_corpus, tmp_path):
    found = {one["name"]: one for one in performed(tmp_path, "remove_exponential")}
    heads = found["rank-passages"]["tables"]["heads"]
    assert heads["text"] == [0] * 8 + [1] * 8
    mass = torch.tensor(heads["mass"]).view(2, 8).mean(0)
    most = mass.argsort(descending=True)[:2].tolist()
    confined = found["passages-256-first-mass-2"]["tables"]["confined"]
    assert [*zip(confined["layer"], confined["head"], strict=True)] == [
        (heads["layer"][i], heads["head"][i]) for i in most
    ]
    texts = found["lists-256-all-window-64-4"]["tables"]["texts"]
    assert texts["text"] == [0, 1]


def test_a_run_confines_the_heads_ranked_at_its_distance(monkeypatch, tmp_path):
    def ranking(name, slopes):
        heads = {"text": [0, 0], "layer": [0, 0], "head": [0, 1], "slope": slopes}
        return {"name": name, "config": {"model": "tiny"}, "tables": {"heads": heads}}

    runs = ranking("rank-passages", [-2.0, -1.0]), ranking("rank-passages-4096", [-1.0, -2.0])
    monkeypatch.setattr("experiments.recipes.record.load", lambda *given, **options: runs)
    config = {"where": "first", "number": 1, "order": "gradient", "attention": "near"}
    config |= {"model": "tiny", "text": "passages"}
    session = bare_session(tmp_path / "out" / "a" / "cpu" / "checkpoints" / "run.pt")
    ranked, number = "ranked", "number"
    for given, heads in (
        ({}, [0]), ({ranked: 4096}, [1]), ({ranked: [4096, 256], number: 2}, [1, 0]),
        ({"text": "lists", "ranked_by": "passages"}, [0]),
    ):  # fmt: skip
        attention, _ = remove_exponential.confined(config | given, session)
        assert [*attention] == [f"0.{head}" for head in heads]


def stopped(tables):
    """A session that ends after one text more than it has."""
    saved = []
    session = bare_session(corpus=load_corpus, save=saved.append)
    session.out_of_time = lambda: bool(saved)
    return go_on(session, tables)


@pytest.mark.parametrize("number", [0, 1], ids=["rank", "measure"])
def test_a_stopped_run_goes_on_after_its_last_text(number, made_corpus):
    config = remove_exponential.runs("cpu", smoke=True)[number].config
    perform, tables, complete = remove_exponential.perform, {}, []
    for _ in range(3):
        outcome = perform(config, stopped(tables))
        tables = outcome.tables
        complete.append(outcome.complete)
    assert complete == [False, True, True]
    assert perform(config, bare_session(corpus=load_corpus)).tables == tables


def test_without_a_ranking_one_line_asks_for_it(made_corpus, tmp_path, capsys):
    assert smoke(tmp_path, "remove_exponential", "--only", "where=first") != 0
    assert "run remove_exponential --only where=rank" in capsys.readouterr().err


def test_a_control_has_another_passage_of_its_novel_first(made_corpus):
    asked = {"distance": 40, "texts": 3}
    for text, other in zip(
        passages(split_of(), cut, **asked), unseen(split_of(), cut, **asked), strict=True
    ):
        same = text.tokens == other.tokens
        assert same[text.second].all() and not same[text.first].all()
        same[text.first] = True
        assert same.all()
    with pytest.raises(ValueError, match="^texts: expected two or more of each novel, got 1"):
        unseen(split_of(), cut, distance=40, texts=1)
