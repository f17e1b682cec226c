"""What a converted model says far out in a novel is what it says when it reads all at once."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from experiments import far_reading, linearise
from experiments.harness.learning.distilling import Distillation
from tests.experiments.command import performed

from .distilled import CONFIG, Ended, cut, splits, teacher

NOVEL = [*range(32, 122)] * 8  # 720 tokens


def text_of(seed=0):
    return far_reading.planted(NOVEL, cut, rng=np.random.default_rng(seed))


def model_of(arm, tmp_path):
    config = {**far_reading.BASE, "arm": arm, "students": ""}
    return far_reading.reader(config, teacher(), tmp_path)[0].double()


def test_needles_are_planted_in_a_novel_that_is_whole_but_for_them():
    text, own, questions = text_of()
    assert text[own].tolist() == NOVEL
    assert [one.distance for one in questions] == [256, 256, 128, 128, 64, 64]
    for one in questions:
        assert text[one.stood].tolist() == one.answer
        after = own[int(one.stood[-1]) + 1 :].sum().item()
        assert after == one.distance
        if one.kind == "needles":
            start = int(one.stood[0])
            assert text[start - len(one.prompt) : start].tolist() == one.prompt
            assert len(one.answer) == 3 and not own[one.stood].any()
    names = {bytes(one.prompt) for one in questions if one.kind == "needles"}
    assert len(names) == 3


@pytest.mark.parametrize("arm", ["softmax", "window", "state"])
def test_an_answer_is_that_of_the_whole_text_with_the_question(arm, tmp_path):
    model, (text, _, questions) = model_of(arm, tmp_path), text_of()
    session = Ended(tmp_path)
    state, last, losses = far_reading.read(model.machine(), text, session, piece=97)
    with torch.no_grad():
        logits = model(text[None])[0]
        torch.testing.assert_close(losses, F.cross_entropy(logits[:-1], text[1:], reduction="none"))
        torch.testing.assert_close(last, logits[-1])
        for one in questions:  # each of the same state, in whatever order
            whole = torch.cat([text, torch.tensor(one.prompt + one.answer)])
            end = model(whole[None, :-1])[0, -len(one.answer) :]
            loss, right = far_reading.answered(model.machine(), state, last, one)
            assert loss == pytest.approx(F.cross_entropy(end, whole[-len(one.answer) :]).item())
            assert right == (end.argmax(-1) == torch.tensor(one.answer)).double().mean().item()


def test_every_token_of_the_novel_is_counted_once():
    _, own, _ = text_of()
    losses = torch.arange(len(own) - 1, dtype=torch.float64)
    rows = far_reading._by_position(losses, own[1:])
    assert [row["begin"] for row in rows] == [1, 65, 129, 257, 513]
    assert [row["end"] for row in rows] == [64, 128, 256, 512, len(losses)]
    counted = [own[1:][row["begin"] - 1 : row["end"]].sum().item() for row in rows]
    total = sum(row["loss"] * n for row, n in zip(rows, counted, strict=True))
    assert total == pytest.approx(losses[own[1:]].sum().item(), rel=1e-6)


def test_students_are_read_from_the_end_of_their_run(made_corpus, tmp_path):
    folder = tmp_path / "out" / "linearise" / "cpu" / ".checkpoints"
    folder.mkdir(parents=True)
    config = {**CONFIG, "arms": linearise.ARMS, "softmax_heads": 0}
    arms = {name: linearise.attention_of(arm, []) for name, arm in linearise.ARMS.items()}
    one = Distillation(config, arms, range(2), teacher(), splits())
    one.update()
    one.save(folder / "softmax-0.end.pt", [])
    asked = {**far_reading.BASE, "arm": "state"}
    model, learned = far_reading.reader(asked, teacher(), tmp_path / "out")
    assert learned == CONFIG["tokens"]
    tokens = torch.randint(256, (1, 100))
    assert torch.equal(model(tokens), one.students["state"].model(tokens))
    with pytest.raises(FileNotFoundError, match="linearise --only softmax_heads=0"):
        far_reading.reader({**asked, "students": "other"}, teacher(), tmp_path / "out")


def test_its_arms_are_those_of_linearise():
    assert far_reading.ARMS == linearise.ARMS


def test_a_run_is_stored(made_corpus, tmp_path):
    (one,) = performed(tmp_path, "far_reading")
    returned = one["tables"]["returned"]
    assert set(returned["distance"]) == {64, 128, 256}
    assert set(returned["kind"]) == {"passages", "needles"}
