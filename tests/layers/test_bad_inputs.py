"""A layer's input that does not fit: one line, which names x and what was expected."""

import pytest
import torch

from lsa.layers import (
    LAYERS,
    BidirectionalAttention,
    BidirectionalLinearAttention,
    RWKVChannelMixing,
    make_layer,
)

D = 8
layers = pytest.mark.parametrize("name", LAYERS)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
@layers
def test_what_a_layer_does_not_take_is_named(name):
    assert_named(make_layer(name, D, 2, max_length=16))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_what_other_modules_do_not_take_is_named():
    assert_named(BidirectionalAttention(D, 2))
    assert_named(BidirectionalLinearAttention(D, 2))
    assert_named(RWKVChannelMixing(D))


def assert_named(layer):
    for x, message in (
        (torch.rand(1, 4, 6), r"x: expected \[B, T, D\] with D = 8, got \[1, 4, 6\]"),
        (torch.rand(4, D), r"x: expected \[B, T, D\] with D = 8, got \[4, 8\]"),
        (torch.ones(1, 4, D, dtype=torch.int64), "x: expected a floating dtype of 16, 32"),
        (torch.ones(1, 4, D).to(torch.float8_e5m2), "x: expected a floating dtype of 16, 32"),
        (torch.ones(1, 4, D).to_sparse(), r"x: expected a dense tensor \[B, T, D\], got torch.spa"),
        (torch.nested.nested_tensor([torch.ones(4, D)]), "x: expected a dense .* got a nested one"),
        ([[1.0] * D], r"x: expected a tensor \[B, T, D\], got list"),
    ):
        with pytest.raises(ValueError, match=message):
            layer(x)


@layers
def test_a_text_of_another_dtype_is_named(name):
    """Where the layer takes it, as some do, the numbers are finite."""
    layer = make_layer(name, D, 2, max_length=16)
    machine = layer.machine()
    for call in (layer, lambda x: machine.step(machine.initial_state, x[:, 0])[1]):
        try:
            assert call(torch.rand(1, 4, D, dtype=torch.float64)).isfinite().all()
        except ValueError as error:
            assert str(error) == "x: expected the layer's dtype torch.float32, got torch.float64"


@layers
def test_what_a_machine_does_not_take_is_named(name):
    machine = make_layer(name, D, 2, max_length=16).machine()
    state, _ = machine.step(machine.initial_state, torch.rand(2, D))
    pieces = r"x: expected \[B, (T, )?D\] with D = 8, got \[2, (3, )?6\]"
    for call, x, message in (
        (machine.step, torch.rand(2, 6), r"x: expected \[B, D\] with D = 8, got \[2, 6\]"),
        (machine.step, torch.rand(D), r"x: expected \[B, D\] with D = 8, got \[8\]"),
        (machine.step, torch.rand(3, D), "x: expected the state's batch 2, got 3"),
        (machine.step, torch.rand(1, D), "x: expected the state's batch 2, got 1"),
        (machine.prefill, torch.rand(1, 3, D), "x: expected the state's batch 2, got 1"),
        (machine.prefill, torch.rand(2, 3, 6), pieces),
        (machine.prefill, torch.rand(3, 3, D), "x: expected the state's batch 2, got 3"),
    ):
        if state != () or len(x) == 2:  # without a state there is no batch to keep
            with pytest.raises(ValueError, match=message):
                call(state, x)


def test_a_lack_of_memory_is_said_as_it_is_where_autocast_changes_dtypes(monkeypatch):
    layer = make_layer("linear", 8, 2)

    def lack(*args, **options):
        raise torch.OutOfMemoryError("no memory")

    monkeypatch.setattr(torch.nn.Linear, "forward", lack)
    x = torch.randn(1, 3, 8, dtype=torch.bfloat16)
    for kind in (torch.float32, torch.bfloat16):
        with torch.autocast("cpu"), pytest.raises(torch.OutOfMemoryError, match="no memory"):
            layer(x.to(kind))
