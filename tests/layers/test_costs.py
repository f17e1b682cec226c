"""What a layer tells of its cost, against its machine ticking and torch's count of FLOPs."""

from functools import partial

import pytest
import torch
from torch import nn

from lsa import GPT, GPTConfig
from lsa.attention.counts import mode_flops
from lsa.cost import tick_cost
from lsa.layers import LAYERS, KVCache
from tests.helpers import counted
from tests.layers.layer_cases import CASES, D

TICKS = 8
# A stack is the sum of its layers, and keys that know their position are wider.
TELLING = [name for name in CASES if name not in ("deep-rnn", "softmax-decay", "window-decay")]


def numbers(state):
    """Numbers in a machine's state, whatever their dtype; a complex one is two."""
    if isinstance(state, KVCache):
        return numbers((state.k, state.v)) if state.buffer else 0
    if isinstance(state, torch.Tensor):
        return state.numel() * (2 if state.is_complex() else 1)
    return sum(map(numbers, state)) if isinstance(state, tuple) else 0


@pytest.mark.parametrize("name", TELLING)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_layer_tells_the_size_of_its_state(name, dtype):
    layer = CASES[name]().to(dtype).requires_grad_(False)
    machine, x = layer.machine(), torch.randn(1, TICKS, D, dtype=dtype)
    state = machine.initial_state
    for t in range(1, TICKS + 1):
        state, _ = machine.step(state, x[:, t - 1])
        assert numbers(state) == layer.state_numbers(t)


def elementwise(name, layer, t):
    """The part of a tick that is no product of matrices, so that torch does not count it.

    That is all of it where channels do not meet; the outer product that updates a state of
    matrices; and the newest token of AFT-full, which has a sum of its own.
    """
    flops = layer.tick_flops(t)
    if name.startswith("aft-full"):
        return 4 * D
    if name.startswith(("aft", "rwkv", "s4", "conv")):
        return flops
    if name.startswith("mamba"):
        return layer.conv1d.tick_flops(t) + layer.ssm.tick_flops(t) // 2
    if name.startswith("delta"):
        return flops // 3 if layer.erase else flops // 2
    if name.startswith("window-state"):
        full = t > layer.mix.first + layer.mix.window
        return 2 * layer.mix.start(torch.zeros(())).S.numel() if full else 0
    return 0 if name.startswith(("softmax", "window")) else flops // 2


@pytest.mark.parametrize("name", TELLING)
def test_a_tick_costs_what_torch_counts(name):
    layer = CASES[name]().requires_grad_(False)
    projections = sum(m.weight.numel() for m in layer.modules() if isinstance(m, nn.Linear))
    machine, x = layer.machine(), torch.randn(1, TICKS, D)
    state = machine.initial_state
    for t in range(1, TICKS + 1):
        (state, _), flops = counted(partial(machine.step, state, x[:, t - 1]))
        seen = layer.tick_flops(t) - elementwise(name, layer, t)
        assert flops == 2 * projections + seen


def test_which_states_grow():
    growing = {
        name for name in LAYERS if CASES[name]().state_numbers(100) > CASES[name]().state_numbers(1)
    }
    assert growing == {"softmax", "aft-full"}


IN_TICKS = ("none", "rnn", "kgram", "conv", "s6", "mamba")


@pytest.mark.parametrize("name", LAYERS)
def test_a_whole_sequence_costs_what_its_way_of_computing_does(name):
    layer = CASES[name]()
    ticks = [sum(map(layer.tick_flops, range(1, T + 1))) for T in (0, 1, 64, 65, 1000)]
    whole = [layer.sequence_flops(T) for T in (0, 1, 64, 65, 1000)]
    assert whole[0] == 0
    assert whole == sorted(whole)
    if name in (*IN_TICKS, "softmax", "aft-full", "window"):
        assert whole == ticks
    if name in ("taylor", "power"):  # all pairs
        assert whole[-1] / layer.sequence_flops(500) == pytest.approx(4, rel=1e-2)
    if name in ("aft-simple", "aft-local", "rwkv"):  # a tree does three times as much on its sums
        assert ticks[-1] < whole[-1] <= 3 * ticks[-1]


@pytest.mark.parametrize(
    "name", ["gated", "gated-normalized", "delta", "delta-chunks", "delta-adds"]
)
def test_whole_chunks_cost_what_torch_counts(name):
    """Masked products count half here, and whole in torch, which leaves the solver out."""
    layer = CASES[name]().requires_grad_(False)
    H, K, C = layer.n_heads, layer.head_width, layer.chunk_size or 64
    V = K + (name == "gated-normalized")
    projections = sum(m.weight.numel() for m in layer.modules() if isinstance(m, nn.Linear))
    T, masked = 4 * C, C * (C - 1)  # twice the entries that a chunk's mask hides
    _, flops = counted(lambda: layer(torch.randn(1, T, D)))
    told = layer.sequence_flops(T) + 4 * H * masked * (K + V)
    if name.startswith("delta") and layer.erase:
        products, solver = 2 * C * C * K, masked * (K + V)
        told += 4 * H * (products - masked * K - solver)
    assert flops == told + 2 * T * projections


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("window-state")])
def test_a_window_with_a_state_costs_its_ticks_but_for_chunks_in_place_of_steps(name):
    layer = CASES[name]()
    slots, phi, width = layer.mix.first + layer.mix.window, layer.mix.phi, layer.head_width + 1
    for late in (0, 1, 64, 65, 1000):
        steps, chunks = (
            mode_flops(mode, late, phi.n_features, width, 64) for mode in ("recurrent", "chunked")
        )
        ticks = sum(map(layer.tick_flops, range(1, slots + late + 1)))
        assert layer.sequence_flops(slots + late) == ticks + layer.n_heads * (chunks - steps)


@pytest.mark.parametrize("attention", LAYERS)
def test_a_gpts_tick_costs_what_torch_counts_and_its_layers_states(attention):
    config = GPTConfig(17, 12, n_layer=2, n_head=3, d_model=D, attention=attention)
    layer, machine = config.attention_layer(), GPT(config).requires_grad_(False).machine()
    state, _ = machine.prefill(machine.initial_state, torch.zeros(1, 6, dtype=torch.long))
    _, flops = counted(lambda: machine.step(state, torch.tensor([0])))
    cost = tick_cost(config, 6, itemsize=4)
    assert flops == cost.flops - 2 * elementwise(attention, layer, 7)
    assert cost.state == 2 * 4 * layer.state_numbers(7)
