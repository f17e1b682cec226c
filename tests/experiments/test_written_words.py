"""What counts as a word, as known and as a repetition; and a run from stored weights."""

import numpy as np
import pytest

from experiments import written_words
from experiments.harness.learning.prepared import Split
from experiments.written_words import halves, repeats, vocabulary, words
from tests.experiments.command import performed, smoke


def test_words_are_letters_with_apostrophes_inside():
    text = "‘Don’t,’ she SAID--“l'été 1853”; _no_ cats".encode()
    assert words(text) == ["don't", "she", "said", "l'été", "no", "cats"]
    assert words(text[:-1] + b"\xff") == ["don't", "she", "said", "l'été", "no", "cat"]


def test_the_vocabulary_is_that_of_whole_documents():
    tokens = np.frombuffer(b"A catfish; a", np.uint8)
    assert vocabulary(Split(tokens, np.array([0, 5, len(tokens)]))) == {"a", "cat", "fish"}


@pytest.mark.parametrize(
    ("text", "run", "found"),
    [("a b c a b c", 3, True), ("a b c a b d", 3, False), ("a b", 3, False), ("a a a", 2, True)],
)
def test_a_run_of_words_that_comes_again(text, run, found):
    assert repeats(text.split(), run) is found


def test_a_prompt_ends_with_a_space_and_no_letter_is_lost():
    config = {"prompt": 4, "letters": 5}
    assert halves(b"one two three", config) == (b"one ", b"two t")
    assert halves(b"a three words", config) == (b"ree ", b"words")
    assert halves(b"unbroken text", config) == (b"unbr", b"oken ")


@pytest.mark.slow
def test_a_run_measures_the_model_and_the_novels(made_corpus, tmp_path):
    assert smoke(tmp_path, "race", "--only", "model=linear") == 0
    (one,) = performed(tmp_path, "written_words")
    texts, places = one["tables"]["texts"], written_words.SMOKE["places"]
    assert texts["writer"] == ["novel"] * places + ["greedy"] * places + ["sampled"] * places
    assert all(k <= n for k, n in zip(texts["known"], texts["words"], strict=True))
    assert all(n > 0 for n in texts["words"][:places])
