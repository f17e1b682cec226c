"""The state stored after so many letters is the machine's, wherever its reading was stopped."""

import numpy as np
import pytest
import torch

from experiments import novel_states
from experiments.harness.core.plan import UsageError
from experiments.harness.learning.corpora import load_corpus
from experiments.novel_states import runs, sums
from experiments.recipes import model_of
from tests.experiments.command import bare_session, smoke, with_arrays

[RUN] = runs("cpu", smoke=True)


@pytest.fixture
def out(made_corpus, tmp_path):
    assert smoke(tmp_path, "long_race", "--only", "model=linear") == 0
    return tmp_path / "out"


def session(out, **changes):
    return bare_session(
        out / "novel_states" / "cpu" / ".checkpoints" / "one.pt", corpus=load_corpus, **changes
    )


@pytest.mark.slow
def test_what_is_stored_is_the_machines_state_and_answer(out, tmp_path):
    found, arrays = with_arrays(tmp_path, "novel_states")
    text = torch.from_numpy(load_corpus("novels").splits["test"].tokens[:100].astype("int64"))
    model, _ = model_of(RUN.config, [out], torch.device("cpu"))
    with torch.no_grad():
        machine = model.double().machine()
        state, logits = machine.prefill(machine.initial_state, text[None])
        np.testing.assert_allclose(arrays["logits"], logits[0, -1], atol=1e-5)
        for layer, one in enumerate(sums(state)):
            np.testing.assert_allclose(arrays["S"][layer], one.S[0], rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(arrays["z"][layer], one.z[0], rtol=1e-5, atol=1e-5)
    told = {name: values[0] for name, values in found["tables"]["state"].items()}
    assert told["letters"] == 100
    assert told["bytes"] == 4 * 2 * 2 * (8 * 8 + 8)  # heads and layers of the small model
    assert told["text"] == bytes(text[-20:].tolist()).decode(errors="replace")


@pytest.mark.slow
def test_a_reading_that_was_stopped_goes_on_to_the_same_state(out):
    left = iter([False, False, True])

    given, stopped = session(out), session(out)
    stopped.out_of_time = lambda: next(left, False)
    model = model_of(RUN.config, [out], torch.device("cpu"))[0].double()
    text = novel_states.novel(RUN.config, given)
    whole = novel_states.read(model, text, given, RUN.config)
    assert novel_states.read(model, text, stopped, RUN.config) is None
    assert given.checkpoint.exists()
    again = novel_states.read(model, text, given, RUN.config)
    assert whole is not None and again is not None
    torch.testing.assert_close(again, whole)
    changed = {**RUN.config, "piece": 16}
    novel_states.read(model, text, given, changed)  # another's checkpoint is no beginning
    assert given.warnings and not given.checkpoint.exists()


def test_a_novel_that_is_too_short_is_named(made_corpus, tmp_path):
    config = {**RUN.config, "letters": 3000}
    with pytest.raises(UsageError, match="expected at least 3,000 letters, got .* of 2,000"):
        novel_states.novel(config, session(tmp_path))
