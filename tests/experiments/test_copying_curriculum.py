"""Passages planted in the text of an update, and which memories are trained on it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.harness.learning.batches import plant, recurring, update_tokens
from experiments.harness.learning.prepared import Split
from tests.experiments.command import performed


@given(seed=st.integers(0, 2**32), passage=st.integers(1, 8), room=st.integers(0, 30))
def test_a_passage_comes_again_and_all_else_stays(seed, passage, room):
    nearest, farthest = passage + room // 3, passage + room
    piece = np.arange(farthest + passage + room)
    planted = plant(
        piece, np.random.default_rng(seed), passage=passage, nearest=nearest, farthest=farthest
    )
    (changed,) = np.nonzero(planted != piece)
    assert len(changed) == passage and (np.diff(changed) == 1).all()
    distances = changed - planted[changed]
    assert len(set(distances)) == 1 and nearest <= distances[0] <= farthest
    assert (piece == np.arange(len(piece))).all()


def test_a_text_that_is_too_short_is_named():
    rng, passage = np.random.default_rng(0), {"passage": 4, "nearest": 8}
    with pytest.raises(ValueError, match="farthest: expected at most 16, got 17"):
        plant(np.arange(20), rng, **passage, farthest=17)
    with pytest.raises(ValueError, match="nearest: expected from 9 to 16, got 8"):
        plant(np.arange(99), rng, passage=9, nearest=8, farthest=16)


def test_a_quarter_of_the_spans_have_one_and_the_others_are_as_without():
    split = Split(np.arange(5000), np.array([0, 5000]))
    drawn = {"seed": 3, "span": 100, "spans": 200, "context": 100, "update": 1}
    without, _ = update_tokens(split, **drawn)
    returns = {"share": 0.25, "passage": 8, "nearest": 8, "farthest": 64}
    with_them, targets = update_tokens(split, **drawn, returns=returns)
    changed = (without != with_them).any(1)
    assert 0.15 < changed.float().mean() < 0.35
    assert (targets[:, :-1] == with_them[:, 1:]).all()


@given(seed=st.integers(0, 2**32), passage=st.integers(1, 8), room=st.integers(0, 30))
def test_a_passage_comes_again_and_again(seed, passage, room):
    nearest, farthest = passage + room // 3, passage + room
    piece = np.arange(10 * farthest)
    planted = recurring(
        piece, np.random.default_rng(seed), passage=passage, nearest=nearest, farthest=farthest
    )
    starts = np.flatnonzero(planted == 0)
    if starts[1] < passage:  # the text opens in front of the first copy
        starts = starts[1:]
    between = np.diff(starts)
    assert starts[0] < passage and nearest <= between.min() and between.max() <= farthest
    assert len(piece) - farthest - passage < starts[-1]
    for start in starts:
        piece[start : start + passage] = np.arange(passage)
    assert (planted == piece).all()


@pytest.mark.slow
@pytest.mark.parametrize("model", ["delta", "window and sum"])
def test_a_run_keeps_what_it_was_asked(model, made_corpus, tmp_path):
    (one,) = performed(tmp_path, "copying_curriculum", f"model={model}")
    again, config = one["tables"]["again"], one["config"]
    *before, last = config["asked"]
    asked = {(update, at) for update in before for at in config["distances"]}
    asked |= {(last, at) for at in config["last"]}
    assert {*zip(again["update"], again["distance"], strict=True)} == asked
    assert len(again["gain"]) == 5 * len(asked)
