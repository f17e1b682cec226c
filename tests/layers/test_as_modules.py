"""What PyTorch's users do with any module, for every layer: it works, or one line says why not."""

import pytest
import torch

from tests.layers.layer_cases import CASES, D

layers = pytest.mark.parametrize("name", CASES)


def made(name):
    torch.manual_seed(0)
    return CASES[name]().eval(), torch.randn(2, 9, D)


@layers
@pytest.mark.parametrize("assign", [False, True])
def test_made_on_meta_and_loaded(name, assign):
    """Buffers that no checkpoint holds are what they were; memory that was never written is NaN."""
    layer, x = made(name)
    with torch.device("meta"):
        other = CASES[name]()
    if not assign:
        other.to_empty(device="cpu")
        with torch.no_grad():
            for one in other.parameters():
                one.fill_(torch.nan)
    other.load_state_dict(layer.state_dict(), assign=assign)
    assert torch.equal(other(x), layer(x))


@layers
def test_in_16_bits_a_decay_keeps_its_digits(name):
    layer, _ = made(name)
    decay = getattr(layer, "log_decay", None)
    if decay is not None:
        assert torch.equal(layer.bfloat16().log_decay, decay)
