"""What is subtracted from a state is what was put into it; the stage is told what lsa says."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from book.figures.sampling import surgery
from tests.book.figures.made_up import page_data
from tests.experiments.command import nano


def small(layers, log_decay):
    model = nano("linear", {"log_decay": log_decay}, n_layer=layers, d_model=16)
    model.initialise(0.4)
    return model.requires_grad_(False)


FADING, LASTING = small(3, [-0.2, 0.0]), small(1, [0.0, 0.0])
TEXTS = st.binary(min_size=3, max_size=40)


@settings(max_examples=25)
@given(text=TEXTS, cut=st.integers(0, 38))
def test_the_products_of_all_letters_are_the_state(text, cut):
    one = surgery.Reading(FADING, text)
    cut = min(cut, one.length)
    parts = [one.products(0, cut), one.products(cut, one.length)]
    for whole, halves in zip((one.S, one.z), zip(*parts, strict=True), strict=True):
        torch.testing.assert_close(sum(halves), whole, rtol=1e-9, atol=1e-9)


@settings(max_examples=25)
@given(text=TEXTS, place=st.tuples(st.integers(0, 37), st.integers(1, 38)))
def test_in_one_layer_that_never_fades_a_subtraction_is_an_undo(text, place):
    start, end = (min(i, len(text) - 2) for i in sorted(place))
    one, without = (surgery.Reading(LASTING, t) for t in (text, text[:start] + text[end:]))
    found = one.operated(*one.products(start, end), -1.0).shares
    wanted = without.operated(without.S, without.z, 0.0).shares
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-9)


def test_in_several_layers_it_is_none():
    text = b"the old man and the sea, the"
    one, without = (surgery.Reading(small(3, [0.0, 0.0]), t) for t in (text, text[4:]))
    found = one.operated(*one.products(0, 4), -1.0).shares
    assert surgery.moved(found, without.operated(without.S, without.z, 0.0).shares) > 1e-3


def test_the_stage_is_told_what_the_caption_says():
    told = page_data(surgery.data())
    text = told["text"].encode()
    words = [text[slice(*word["place"])].decode() for word in told["words"]]
    assert words[1] == "captain" and words[told["picked"]] == "the"
    moves = [word["moved"] for word in told["words"]]
    far = [word["sizes"][1] for word in told["words"]]
    # The last words move the next letter and the others hardly, however large they are in the sums.
    assert min(moves[-2:]) > 0.5 and max(moves[:-2]) < 0.15
    assert max(far[:-2]) > max(far[-2:])
    for one in (told["other"], *told["words"]):
        shares = [share for _, share in one["likely"]]
        assert shares == sorted(shares, reverse=True) and sum(shares) <= 1


@pytest.mark.parametrize("text", [b"a", b" , ", b"one"])
def test_a_text_may_have_no_word_but_its_last(text):
    assert surgery.words(text) == ([(0, 2)] if text == b"one" else [])
