"""A token of a model whose heads may not look back costs the same however long the text is."""

import pytest
import torch

from experiments import converted_speed
from experiments.harness.bench.long_states import state_at
from experiments.recipes import attention_of
from lsa.llama import Llama, LlamaConfig
from lsa.machines import state_bytes
from tests.experiments.command import performed
from tests.helpers import counted

HEADS = [(0, 2), (1, 5)]
TENTH = {"n_layer": 3, "vocab_size": 4915}  # of SmolLM2-135M's layers and of its tokens
NO_FULL_HEADS = ("window", "window and state")


def model_of(way, **shape):
    model, kind = Llama(LlamaConfig(**shape)).requires_grad_(False), converted_speed.WAYS[way]
    model.attend(attention_of(kind["all"], HEADS[: kind["first"]]))
    return model


def tick(model, position):
    """FLOPs of a tick, counted by torch, and bytes of the state after it."""
    state, token = state_at(model, position), torch.zeros(1, dtype=torch.long)
    (state, _), flops = counted(lambda: model.machine().step(state, token))
    return flops, state_bytes(state)


@pytest.mark.slow
@pytest.mark.parametrize("way", NO_FULL_HEADS)
def test_a_token_costs_the_same_at_32768_as_at_32(way):
    """Of a tenth of SmolLM2-135M."""
    model = model_of(way, **TENTH)
    (few, small), (many, large) = (tick(model, position) for position in (32, 32768))
    assert tick(model, 100) == (many, large)
    assert small == large
    assert few <= many <= 1.1 * few


@pytest.mark.slow
def test_a_cache_grows_with_the_text():
    model = model_of("softmax", **TENTH)
    (few, small), (many, large) = (tick(model, position) for position in (32, 32768))
    assert many > 2 * few and large > 900 * small


@pytest.mark.parametrize("way", converted_speed.WAYS)
@pytest.mark.parametrize("position", [2, 67, 68, 69, 100])
def test_a_made_state_is_shaped_like_one_that_was_read(way, position):
    torch.manual_seed(0)
    model = model_of(way, **converted_speed.SMALL)
    with torch.no_grad():
        read, _ = model.machine().prefill(
            model.machine().initial_state, torch.randint(64, (1, position))
        )
    assert described(state_at(model, position)) == described(read)


def described(state):
    """Its shapes and counters."""
    if hasattr(state, "nbytes") and not isinstance(state, torch.Tensor):
        return tuple(state.k.shape)
    if isinstance(state, tuple):
        return tuple(map(described, state))
    return tuple(state.shape) if isinstance(state, torch.Tensor) else state


def test_all_ways_are_timed_at_all_positions(tmp_path):
    (one,) = performed(tmp_path, "converted_speed")
    rows = one["tables"]["rows"]
    assert rows["position"] == [n for n in (32, 64, 128) for _ in converted_speed.WAYS]
    assert rows["way"] == [*converted_speed.WAYS] * 3
