"""The counting models against a dictionary that counts by hand."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.ngram_baseline import Counts

texts = st.lists(st.integers(0, 3), min_size=12, max_size=60)


def by_hand(train, text, order):
    """p of each byte of text, Witten-Bell, one dictionary a length."""
    grams = [Counter(tuple(train[i : i + n]) for i in range(len(train) - n + 1)) for n in range(6)]
    found = []
    for i in range(order - 1, len(text)):
        p = 1 / 256
        for n in range(1, order + 1):
            gram = tuple(text[i - n + 1 : i + 1])
            after = {g: c for g, c in grams[n].items() if g[:-1] == gram[:-1]}
            if after:
                total, kinds = sum(after.values()), len(after)
                p = (after.get(gram, 0) + kinds * p) / (total + kinds)
        found.append(p)
    return found


@given(texts, texts, st.integers(1, 4))
def test_probabilities_are_those_counted_by_hand(train, text, order):
    bytes_ = np.array(text, np.uint8)
    p = np.full(len(text), 1 / 256)
    for n in range(1, order + 1):
        keys = Counts.keys(bytes_, n)
        p[n - 1 :] = Counts(np.array(train, np.uint8), n).refine(keys, p[n - 1 :])
    np.testing.assert_allclose(p[order - 1 :], by_hand(train, text, order), rtol=1e-12)


def test_probabilities_sum_to_one():
    rng = np.random.default_rng(0)
    train = rng.integers(0, 256, 2000).astype(np.uint8)
    history = np.array([7, 9], np.uint8)
    every = [np.append(history, np.uint8(c)) for c in range(256)]
    p = np.full(256, 1 / 256)
    for n in (1, 2, 3):
        counts = Counts(train, n)
        p = counts.refine(np.concatenate([Counts.keys(one[-n:], n) for one in every]), p)
    assert math.fsum(p) == pytest.approx(1)
