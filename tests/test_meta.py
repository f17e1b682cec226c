"""Modules without values: the same shapes, nothing drawn, and torch's compiler not imported."""

import subprocess
import sys

import pytest
import torch

from lsa import GPT, gpt_config
from lsa.layers import LAYERS
from lsa.meta import on_meta

COUNTED = """import sys
from lsa import gpt_config
from lsa.cost import tick_cost
tick_cost(gpt_config("nano"), 3, itemsize=4)
print("torch._dynamo" in sys.modules)"""


@pytest.mark.parametrize("attention", LAYERS)
def test_shapes_are_those_of_a_model_with_values(attention):
    config = gpt_config("nano", attention=attention, n_layer=1, n_positions=64, vocab_size=11)
    drawn = GPT(config)
    state = torch.get_rng_state()
    with on_meta():
        model = GPT(config)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(one.is_meta for one in model.parameters())
    wanted = {name: one.shape for name, one in drawn.state_dict().items()}
    assert {name: one.shape for name, one in model.state_dict().items()} == wanted


@pytest.mark.slow
def test_counting_does_not_import_torchs_compiler():
    code = [sys.executable, "-c", COUNTED]
    assert subprocess.run(code, capture_output=True, text=True, check=True).stdout == "False\n"
