"""A sharded model says that it must be gathered, and is, into one file."""

import pytest
import torch

from lsa import GPT, GPTConfig, sample
from tests.parallel import tasks


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["linear", "softmax"])
def test_a_sharded_model_is_gathered_before_it_is_sampled(pool, tmp_path, attention):
    load_file = pytest.importorskip("safetensors.torch").load_file
    shape = {"vocab_size": 11, "n_positions": 8, "n_layer": 2, "n_head": 2, "d_model": 6}
    config = GPTConfig(attention=attention, **shape)
    gpt = GPT(config)
    path = tmp_path / "model.safetensors"
    answers = pool.run(2, tasks.gathered, config, gpt.state_dict(), str(path))
    for said, _ in answers:
        assert len(said) == 2
        assert all(
            one.startswith("machine: expected plain parameters, got sharded") for one in said
        )
    assert [names for _, names in answers] == [[*gpt.state_dict()], []]
    again = GPT(config)
    again.load_state_dict(load_file(path))
    for found, wanted in zip(again.parameters(), gpt.parameters(), strict=True):
        assert torch.equal(found, wanted)
    assert len([*sample(again.machine(), torch.tensor([[1, 2]]), max_tokens=3)]) == 3
