"""What training asks of the compiler; how it stops and goes on is in test_checkpoints.py."""

from copy import deepcopy

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

from experiments.harness.learning.training import compile_blocks
from lsa.gpt import GPT, gpt_config, next_token_loss


@pytest.mark.slow
# The compiler looks whether a block's input has a gradient, and mutes the warning but as an error.
@pytest.mark.filterwarnings("ignore:The .grad attribute")
@pytest.mark.parametrize("attention", ["softmax", "linear"])
def test_alike_blocks_are_compiled_once_and_compute_the_same(attention):
    torch.manual_seed(0)
    shape = {"vocab_size": 32, "n_positions": 16, "n_layer": 12, "n_head": 2, "d_model": 16}
    model = GPT(gpt_config("nano", attention=attention, **shape))
    compiled, backend = deepcopy(model), CompileCounterWithBackend("aot_eager")
    torch.compiler.reset()
    compile_blocks(compiled, backend=backend)
    tokens = torch.randint(32, (2, 16))
    for _ in range(2):
        losses = []
        for each in (model, compiled):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                losses.append(next_token_loss(each(tokens), tokens))
            losses[-1].backward()
        assert torch.equal(*losses)
    assert backend.frame_count == 1
    assert list(compiled.state_dict()) == list(model.state_dict())
    for found, wanted in zip(compiled.parameters(), model.parameters(), strict=True):
        assert torch.equal(found.grad, wanted.grad)
