"""Made-up texts: the answer stands in the text, and a batch is its seed and number alone."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from experiments.harness.learning.tasks import IGNORED, TASKS, draw

OPTIONS = {
    "recall": {"pairs": 5, "vocab": 32},
    "recall in windows": {"pairs": 4, "vocab": 24},
    "overwriting": {"pairs": 3, "writes": 2, "vocab": 10},
    "distant recall": {"pairs": 5, "vocab": 32},
    "copying": {"tokens": 6, "vocab": 10},
    "selective copying": {"tokens": 6, "vocab": 10},
    "induction": {"vocab": 12, "questions": 3},
}


@pytest.mark.parametrize("task", ["recall", "recall in windows", "overwriting"])
def test_keys_are_of_the_lower_half_of_the_vocabulary_and_values_of_the_upper(task):
    vocab = OPTIONS[task]["vocab"]
    inputs, targets = draw(task, seed=0, update=0, batch=200, length=40, **OPTIONS[task])
    asked = targets != IGNORED
    assert {*inputs[asked].tolist()} == {*range(1, vocab // 2)}
    assert {*targets[asked].tolist()} == {*range(vocab // 2, vocab)}


@pytest.mark.parametrize("task", TASKS)
@given(seed=st.integers(0, 2**32), update=st.integers(-1, 1000), length=st.integers(20, 60))
def test_answers_stand_in_the_text(task, seed, update, length):
    where = {"seed": seed, "update": update, "batch": 3, "length": length, **OPTIONS[task]}
    inputs, targets = draw(task, **where)
    assert inputs.shape == targets.shape == (3, length)
    assert inputs.min() >= 0 and inputs.max() < OPTIONS[task]["vocab"]
    for text, asked in zip(inputs.tolist(), targets.tolist(), strict=True):
        places = [i for i, answer in enumerate(asked) if answer != IGNORED]
        if "recall" in task or task == "overwriting":
            planted = 2 * OPTIONS[task]["pairs"] * OPTIONS[task].get("writes", 1)
            # Of a key that is written again, the newest value stays.
            pairs = dict(zip(text[0:planted:2], text[1:planted:2], strict=True))
            assert len(pairs) == OPTIONS[task]["pairs"]
            assert sorted(text[i] for i in places) == sorted(pairs)
            assert all(asked[i] == pairs[text[i]] for i in places)
            assert min(places) >= planted
            if task == "distant recall":
                assert places == [*range(length - 10, length, 2)]
        elif task == "induction":
            special = [i for i, token in enumerate(text) if token == 0]
            assert special[1:] == places and special[-1] == length - 1 and len(places) == 3
            assert {asked[i] for i in places} == {text[i + 1] for i in special[:-1]}
        else:
            symbols = [token for token in text[:-6] if token > 1]
            assert [asked[i] for i in places] == symbols
            assert places == [*range(length - 6, length)]
            assert [i for i, token in enumerate(text) if token == 1] == places
            if task == "copying":
                assert text[:6] == symbols
    again = draw(task, **where)
    assert torch.equal(inputs, again[0]) and torch.equal(targets, again[1])
    other = draw(task, **{**where, "update": update + 1})[0]
    assert not torch.equal(inputs, other)


@given(seed=st.integers(0, 2**32), pairs=st.integers(1, 6), writes=st.integers(1, 5))
def test_a_key_is_written_so_often_and_never_the_same_value_twice_in_a_row(seed, pairs, writes):
    where = {"seed": seed, "update": 0, "batch": 3, "length": 2 * pairs * (writes + 1)}
    inputs, _ = draw("overwriting", **where, pairs=pairs, writes=writes, vocab=14)
    planted = inputs[:, : 2 * pairs * writes]
    for keys, values in zip(planted[:, ::2].tolist(), planted[:, 1::2].tolist(), strict=True):
        written = {key: [] for key in keys}
        for key, value in zip(keys, values, strict=True):
            assert key < 7 <= value and written[key][-1:] != [value]
            written[key].append(value)
        assert len(written) == pairs and {len(them) for them in written.values()} == {writes}


@pytest.mark.parametrize("others", [0, 1])
def test_what_stands_between_is_noise_or_pairs_of_other_keys(others):
    where = {"seed": 3, "update": 0, "batch": 8, "length": 61, "pairs": 5, "vocab": 32}
    inputs, _ = draw("distant recall", **where, others=others)
    planted, between = inputs[:, :10:2], inputs[:, 10:51]
    if others:
        assert ((between[:, :40:2] >= 16) & (between[:, :40:2] < 24)).all()
        assert (between[:, 1:40:2] >= 24).all()
        assert not (between[:, :40:2, None] == planted[:, None]).any()
    else:
        assert (between < 16).all()
