"""State spaces in 16 bits compute with the eigenvalues, steps and projections of float32."""

import copy
import pickle

import pytest
import torch

from lsa import GPT, GPTConfig
from lsa.layers.power import as_tensors
from lsa.layers.s4 import S4
from lsa.layers.s4d import S4D
from tests.layers.test_as_modules import saved
from tests.parallel import tasks

T, D = 300, 16
kinds = pytest.mark.parametrize("kind", [S4, S4D])
halves = pytest.mark.parametrize("half", [torch.bfloat16, torch.float16], ids=str)


def made(kind):
    torch.manual_seed(0)
    layer = kind(D, d_state=16).requires_grad_(False)
    with torch.no_grad():  # none of it a number that 16 bits hold
        layer.im.mul_(1.003)
    return layer, torch.randn(2, T, D).bfloat16().float()


def is_same(one, other):
    mine, its = one.state_dict(), other.state_dict()
    return mine.keys() == its.keys() and all(torch.equal(x, its[name]) for name, x in mine.items())


@kinds
@halves
def test_a_state_space_in_16_bits_is_the_one_in_32(kind, half):
    """With rounded eigenvalues it would be 3 and 7% off."""
    layer, x = made(kind)
    wanted, narrow = layer(x), copy.deepcopy(layer).to(half)
    assert {p.dtype for p in narrow.parameters()} == {half}  # one dtype a group, for sharding
    found = narrow(x.to(half))
    assert found.dtype == half
    assert (found.float() - wanted).norm() <= 0.01 * wanted.norm()


@kinds
@halves
def test_there_and_back_loses_nothing_of_it(kind, half):
    layer, _ = made(kind)
    back = copy.deepcopy(layer).to(half).to(torch.float64).to(half).float()
    assert all(torch.equal(getattr(back, name), getattr(layer, name)) for name in layer._names())
    assert back.state_dict().keys() == layer.state_dict().keys()


@kinds
def test_copies_and_checkpoints_keep_it(kind):
    layer, x = made(kind)
    narrow = copy.deepcopy(layer).bfloat16()
    weights = saved(narrow.state_dict())
    empty = copy.deepcopy(layer).to("meta").to_empty(device="cpu")
    for other in (kind(D, d_state=16).bfloat16(), empty.bfloat16()):
        other.load_state_dict(weights)
        assert is_same(other, narrow)
    for other in (copy.deepcopy(narrow), pickle.loads(pickle.dumps(narrow))):
        assert torch.equal(other(x.bfloat16()), narrow(x.bfloat16()))
    wide = kind(D, d_state=16)
    wide.load_state_dict(weights)  # of 16 bits, with what they left over
    assert all(torch.equal(getattr(wide, name), getattr(layer, name)) for name in layer._names())
    other = kind(D, d_state=16).bfloat16()
    other.load_state_dict(layer.state_dict())  # of 32 bits
    assert is_same(other, narrow)


@kinds
def test_weights_that_were_rounded_elsewhere_are_taken_as_they_are(kind):
    layer, _ = made(kind)
    rounded = {name: x.bfloat16() for name, x in layer.state_dict().items()}
    other = kind(D, d_state=16).bfloat16()
    other.load_state_dict(rounded)
    assert is_same(other, copy.deepcopy(layer).bfloat16()) is False
    assert other.state_dict().keys() == rounded.keys()
    assert torch.equal(other.exact("im"), rounded["im"].float())


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["s4", "s4d"])
def test_it_is_sharded(attention, pool):
    shape = {"vocab_size": 11, "n_positions": 16, "n_layer": 1, "n_head": 2, "d_model": 8}
    config = GPTConfig(**shape, attention=attention)
    torch.manual_seed(0)
    model, tokens = GPT(config).bfloat16(), torch.randint(11, (2, 16))
    wanted = model(tokens).detach()
    for found in pool.run(2, tasks.sharded, config, model.state_dict(), tokens):
        torch.testing.assert_close(found, wanted)


def test_apples_gpus_have_no_float64(monkeypatch):
    made = []
    with monkeypatch.context() as patch:
        patch.setattr(torch, "tensor", lambda _, dtype, device: made.append((dtype, device.type)))
        for device in ("mps", "cpu"):
            as_tensors(((0, 0), (0, 1)), (1.0, 2**0.5), torch.device(device))
    kept = [(torch.float32, "mps"), (torch.float64, "cpu")]
    assert [one for one in made if one[0] != torch.long] == kept
