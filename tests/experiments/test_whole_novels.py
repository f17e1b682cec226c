"""Whole novels: what the machine reads in pieces is the text, and a window is what it says."""

import pytest
import torch
import torch.nn.functional as F

from experiments import race, whole_novels
from tests.experiments.command import nano


def model(attention):
    return nano(attention, {"log_decay": [race.NEAR, 0.0]}).double()


def losses(model, tokens):
    logits = model(tokens[None, :-1])[0]
    return F.cross_entropy(logits.float(), tokens[1:], reduction="none").detach().double()


@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_a_novel_read_in_pieces_is_the_novel(attention):
    gpt, tokens = model(attention), torch.randint(256, (317,))
    found = whole_novels.read_whole(gpt, tokens, piece=32)
    torch.testing.assert_close(found, losses(gpt, tokens), atol=2e-6, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("length", [2, 33, 64, 65, 66, 96, 97, 98, 317])
def test_every_token_is_predicted_once_with_half_a_window_before_it(length):
    gpt, tokens = model("linear"), torch.randint(256, (length,))
    found = whole_novels.read_windows(gpt, tokens, window=64)
    assert found.shape == (length - 1,)
    for at in {0, min(63, length - 2), (length - 1) // 2, length - 2}:
        begin = 0 if at < 64 else at // 32 * 32 - 32  # of the window whose second half holds it
        alone = losses(gpt, tokens[begin : at + 2])[-1]
        assert found[at].item() == pytest.approx(alone.item(), abs=2e-6)


def test_no_novel_runs_into_the_next():
    class Split:
        tokens = torch.arange(100).numpy()
        starts = (0, 30, 100)

    short, cut = whole_novels.novels(Split, reach=50)
    assert short.tolist() == list(range(30))
    assert cut.tolist() == list(range(30, 81))


def test_a_tokenizer_reads_each_novel_alone():
    class Split:
        tokens = torch.tensor([*b"one two. three"], dtype=torch.uint8).numpy()
        starts = (0, 8, 14)

    found = whole_novels.novels(Split, reach=3, tokens=lambda text: [*text.upper().encode()])
    assert [bytes(each.tolist()) for each in found] == [b"ONE ", b" THR"]
