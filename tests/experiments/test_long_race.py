"""The long race: every window is read once, and what is kept of a run."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from experiments import long_race
from experiments.harness.learning.batches import shuffled_windows, text_of_updates
from experiments.harness.learning.prepared import Split
from experiments.harness.learning.training import Training
from tests.experiments.command import performed


def made_split(lengths):
    """Documents whose tokens are all different."""
    starts = np.cumsum([0, *lengths])
    return Split(np.arange(starts[-1]), starts)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=5), st.integers(1, 9), st.integers(0, 3))
def test_every_window_is_read_once_and_lies_in_one_document(lengths, context, spans):
    split, spans = made_split(lengths), spans + 1
    windows = sum(max(0, length - 1) // context for length in lengths)
    config = {"reading": "once", "seed": 0, "spans": spans, "context": context}
    text = text_of_updates(split, {**config, "updates": windows // spans})
    read = []
    for update in range(windows // spans):
        inputs, targets = text(update)
        assert inputs.shape == targets.shape == (spans, context)
        assert (targets == inputs + 1).all()
        for window in torch.cat((inputs, targets[:, -1:]), 1):
            document = np.searchsorted(split.starts, window.numpy(), side="right")
            assert len(set(document)) == 1
            read += window[:-1].tolist()
    assert len(read) == len(set(read)) == windows // spans * spans * context
    with pytest.raises(ValueError, match="updates: expected at most"):
        text_of_updates(split, {**config, "updates": windows // spans + 1})


def test_the_order_of_the_windows_is_the_seeds():
    split = made_split([100])
    first, again, other = (shuffled_windows(split, context=3, seed=seed) for seed in (0, 0, 1))
    assert (first == again).all()
    assert sorted(first) == sorted(other)
    assert (first != other).any()


def test_the_rate_rises_stays_and_falls_to_zero(made_corpus):
    from experiments.harness.learning.corpora import load_corpus

    (run,) = (r for r in long_race.runs("cpu", smoke=True) if r.config["model"] == "linear")
    config = {**run.config, "updates": 8, "warmup_updates": 2, "cooldown_updates": 4}
    training = Training(config, load_corpus("novels"), torch.device("cpu"))
    shares = [training._rate(update) / config["learning_rate"] for update in range(9)]
    assert shares == [0.5, 1, 1, 1, 1, 0.75, 0.5, 0.25, 0]


@pytest.mark.parametrize("model", ["linear", "softmax"])
def test_a_run_keeps_what_it_was_asked(model, made_corpus, tmp_path):
    (one,) = performed(tmp_path, "long_race", f"model={model}")
    tables, config = one["tables"], one["config"]
    assert tables["train"]["update"] == [2, 4]
    assert sorted(set(tables["again"]["update"])) == config["asked"]
    assert len(tables["again"]["gain"]) == len(config["asked"]) * 5 * len(config["distances"])
    # The loss by novel and position is the validation loss, cut in another way.
    rows = zip(*(tables["positions"][k] for k in ("update", "first", "last", "loss")), strict=True)
    last = [(b - a + 1, loss) for update, a, b, loss in rows if update == config["updates"]]
    mean = sum(n * loss for n, loss in last) / sum(n for n, _ in last)
    assert mean == pytest.approx(tables["validation"]["loss"][-1], abs=1e-3)
    assert list((tmp_path / "out").rglob("*.weights.npz"))
