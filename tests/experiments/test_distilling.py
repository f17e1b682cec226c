"""A trained model's students: the texts, what is learned and what is not, stopping and going on."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from experiments.harness.learning import distilled_runs
from experiments.harness.learning.distilled_runs import distill_through
from experiments.harness.learning.distilling import (
    Distillation,
    Student,
    fit_features,
    predictions,
    teach,
    teaching_texts,
)
from experiments.harness.learning.returning import PASSAGE

from .distilled import CONFIG, Ended, cut, splits, teacher

WINDOW = {"kind": "window", "window": 8, "first": 2}
STATE = {"kind": "window-state", "window": 8, "first": 2, "feature_map": "hedgehog"}
ARMS = {"state": {"all": STATE}, "window": {"all": WINDOW}}


@pytest.fixture
def folder(tmp_path, made_corpus):
    return tmp_path / "kept"


def texts(update, seed=0, length=300):
    return teaching_texts(splits()["train"], cut, seed=seed, update=update, texts=4, length=length)


def returns(text):
    """Whether a passage of it comes again."""
    passages = text.unfold(0, PASSAGE, 1)
    same = (passages[:, None] == passages[None]).all(-1)
    return bool(same.triu(2 * PASSAGE).any())


def test_texts_are_drawn_by_seed_and_number_and_every_second_repeats_a_passage(made_corpus):
    for update in range(5):
        found = texts(update)
        assert found.shape == (4, 300)
        assert [returns(text) for text in found] == [False, True, False, True]
        assert torch.equal(found, texts(update))
        assert not torch.equal(found, texts(update + 1))
        assert not torch.equal(found, texts(update, seed=1))
    with pytest.raises(ValueError, match="^length: expected at most "):
        texts(0, length=9000)


def student(attention, layers=(0, 1)):
    return Student(teacher().model, attention, layers, CONFIG)


def test_a_student_shares_what_it_does_not_learn():
    given = teacher().model
    one = Student(given, {"all": WINDOW, "1.2": STATE}, [1], CONFIG)
    theirs = dict(given.named_parameters())
    learned = {name for name in one.learned if ".mixes." not in name}
    assert learned == {f"layers.1.self_attn.{part}_proj.weight" for part in "qkvo"}
    for name, p in one.model.named_parameters():
        if ".mixes." not in name:
            assert (p is theirs[name]) == (name not in learned)
    before = {name: p.clone() for name, p in theirs.items()}
    tokens = torch.randint(256, (2, 40))
    teach(one.model, tokens, predictions(given, tokens))
    one.step(weights=0.1, mixes=0.1)
    assert all(torch.equal(before[name], p) for name, p in theirs.items())
    assert not torch.equal(
        one.learned["layers.1.self_attn.q_proj.weight"], before["layers.1.self_attn.q_proj.weight"]
    )


def test_the_divergence_and_its_gradient_are_those_of_the_whole():
    given, one = teacher().model, student(ARMS["state"])
    tokens = torch.randint(256, (2, 300))
    divergence = teach(one.model, tokens, predictions(given, tokens))
    found = {name: p.grad for name, p in one.learned.items()}
    one.optimizer.zero_grad()  # the tensors stay
    wanted, logits = given(tokens).softmax(-1), one.model(tokens)
    whole = (wanted * (wanted.log() - logits.log_softmax(-1))).sum(-1).mean()
    whole.backward()
    assert divergence == pytest.approx(whole.item(), rel=1e-4)
    for name, p in one.learned.items():
        torch.testing.assert_close(found[name], p.grad, rtol=1e-3, atol=1e-6)


def test_a_student_like_its_teacher_has_nothing_to_learn():
    given, one = teacher().model, student({})
    tokens = torch.randint(256, (1, 60))
    assert teach(one.model, tokens, predictions(given, tokens)) == pytest.approx(0, abs=1e-5)


@pytest.mark.slow
def test_features_are_fitted_to_the_teachers_heads():
    given = teacher().model
    learner, control = student({"all": STATE, "0.1": {"kind": "softmax"}}), student(ARMS["window"])
    tokens = torch.randint(256, (2, 100))
    (first,) = fit_features(given, [learner], tokens)
    expected = 0.0
    x = given.embed(tokens)
    for block, other in zip(given.blocks, learner.model.blocks, strict=True):
        q, k, v = block.self_attn.qkv(block.input_layernorm(x), 0)
        o = block.self_attn.mixes[0](q, k, v)
        for mix, (heads, keys) in zip(other.self_attn.mixes, other.self_attn.parts, strict=True):
            found = mix(q[:, :, heads], k[:, :, keys], v[:, :, keys])
            missed = F.mse_loss(found, o[:, :, heads]) / o[:, :, heads].square().mean()
            expected += missed.item() / 2
        x = block(x)
    assert first == pytest.approx(expected, rel=1e-4)
    assert not control.mixes
    for _ in range(60):
        learner.step(weights=0.0, mixes=1e-2)
        (last,) = fit_features(given, [learner], tokens)
    assert last < 0.9 * first
    assert all(p.grad is None for name, p in learner.learned.items() if ".mixes." not in name)


def run(folder, pieces=10**9, name="run", **config):
    """The outcome, and the students, of a run that ends after so many pieces of work."""
    one = Distillation({**CONFIG, **config}, ARMS, (0, 1), teacher(), splits())
    session = Ended(folder, pieces, name)
    return distill_through(one, session), one, session


def test_a_run_measures_before_it_teaches_and_at_its_end(folder):
    outcome, one, _ = run(folder)
    tables = outcome.tables
    assert outcome.complete and one.tokens == 1200
    assert tables["features"]["update"] == [1, 2] and set(tables["features"]["arm"]) == {"state"}
    assert tables["train"]["tokens"] == [0, 0, 400, 400, 800, 800]
    assert tables["train"]["arm"] == ["state", "window"] * 3
    rows = [*zip(*(tables["measured"][name] for name in ("tokens", "kind", "pairs")), strict=True)]
    often = [(tokens, "passages", 0) for tokens in (0, 800, 1200) for _ in range(4)]
    assert rows == [*often, (1200, "lists", 3), (1200, "lists", 3)]
    assert len(tables["train"]["divergence"]) == 6
    assert not Path(folder).exists()  # a run that was not stopped leaves nothing behind


@pytest.mark.slow
@pytest.mark.parametrize("pieces", [1, 4, 8])
def test_a_stopped_run_goes_on_to_the_same_end(folder, pieces):
    whole, students, _ = run(folder / "whole")
    complete = False
    for _ in range(40):
        outcome, one, session = run(folder, pieces)
        if complete := outcome.complete:
            break
        assert not session.warnings
    assert complete and len(session.earlier) > 1
    assert outcome.tables == whole.tables
    for name, student in one.students.items():
        for key, p in student.learned.items():
            assert torch.equal(p, students.students[name].learned[key])


@pytest.mark.slow
def test_a_longer_run_goes_on_from_the_end_of_a_shorter_one(folder):
    run(folder, name="short", tokens=800, keeps_end=True)
    longer, one, session = run(folder, name="long", goes_on="short")
    assert len(session.earlier) == 1
    alone, other, _ = run(folder / "alone", goes_on="short")
    assert longer.tables["train"] == alone.tables["train"]
    for name, student in one.students.items():
        for key, p in student.learned.items():
            assert torch.equal(p, other.students[name].learned[key])


def test_another_runs_checkpoint_is_set_aside(folder):
    run(folder, 5)
    outcome, _, session = run(folder, learning_rate=1e-3)
    assert outcome.complete
    assert "of another configuration; set aside as" in session.warnings[0]


@pytest.mark.parametrize(("took", "wait"), [(1, 120), (20, 200), (90, 240)])
def test_no_more_than_four_minutes_lie_between_two_checkpoints(took, wait, folder, monkeypatch):
    one, clock = Distillation(CONFIG, ARMS, (0, 1), teacher(), splits()), iter((0.0, took))
    monkeypatch.setattr(one, "save", lambda path, legs: None)
    monkeypatch.setattr(distilled_runs.time, "monotonic", clock.__next__)
    session = Ended(folder)
    assert distilled_runs._save(one, session, session.checkpoint) == took + wait
