"""Heads of a trained model that see less: the same weights, and what a run stores."""

import pytest
import torch

from experiments import far_heads
from tests.experiments.command import nano, performed, smoke


@pytest.mark.parametrize("window", [3, 20])
def test_confined_layers_keep_their_weights_and_see_a_window(window):
    options = far_heads.BASE["attention_options"]
    model, tokens = nano("softmax", options), torch.randint(256, (1, 20))
    whole = model(tokens)
    far_heads.confine(model, range(2), window=window, first=1, **options)
    same = torch.isclose(model(tokens), whole, atol=1e-5).all(-1)[0]
    # The window and the first token: so many are seen whole.
    assert same.tolist() == [t <= window for t in range(20)]


@pytest.mark.slow
def test_a_run_measures_the_stored_model(made_corpus, tmp_path):
    assert smoke(tmp_path, "long_race", "--only", "model=softmax") == 0
    (one,) = performed(tmp_path, "far_heads")
    places, distances = (far_heads.SMOKE[name] for name in ("places", "distances"))
    assert len(one["tables"]["again"]["gain"]) == places * len(distances)
    assert max(one["tables"]["positions"]["last"]) == far_heads.SMOKE["context"]
