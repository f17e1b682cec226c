"""Heads of a trained model that see less, with the same weights."""

import pytest
import torch

from experiments import far_heads
from tests.experiments.command import nano


@pytest.mark.parametrize("window", [3, 20])
def test_confined_layers_keep_their_weights_and_see_a_window(window):
    options = far_heads.BASE["attention_options"]
    model, tokens = nano("softmax", options), torch.randint(256, (1, 20))
    whole = model(tokens)
    far_heads.confine(model, range(2), window=window, first=1, **options)
    same = torch.isclose(model(tokens), whole, atol=1e-5).all(-1)[0]
    # The window and the first token: so many are seen whole.
    assert same.tolist() == [t <= window for t in range(20)]
