"""Softmax attention: its decay by the definition, positions as features, and a cache that grows."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from lsa import LinearAttention, SoftmaxAttention
from lsa.layers import KVCache, make_layer
from lsa.layers.softmax import KVBuffer, positions_as_features
from lsa.layers.window import WindowAttention

D = 12
DECAY = (-0.7, 0.0, -0.1)


def test_weights_that_fade_are_those_of_the_definition():
    """Softmax with decay, written out: scores lose what each token of distance costs."""
    layer = SoftmaxAttention(D, 3, log_decay=DECAY).double()
    x = torch.randn(2, 30, D, dtype=torch.float64)
    q, k, v = (heads.transpose(1, 2) for heads in layer.qkv(x))
    gap = torch.arange(30)[:, None] - torch.arange(30)
    scores = q @ k.transpose(-1, -2) / 4**0.5 + torch.tensor(DECAY)[:, None, None] * gap
    A = scores.masked_fill(gap < 0, float("-inf")).softmax(-1)
    wanted = layer.out((A @ v).transpose(1, 2))
    torch.testing.assert_close(layer(x), wanted, rtol=1e-6, atol=1e-6)


def test_positions_stay_exact_in_bf16_for_a_long_text():
    """-0.171875 halves a weight about every four tokens; 70,000 of them make 12,000."""
    T, slope = 70_000, torch.tensor([0.171875])
    zeros = torch.zeros(1, T, 1, 64, dtype=torch.bfloat16)
    q, k, _ = positions_as_features(zeros, zeros, zeros, slope, 0)
    last = (q[0, -1, 0].double() @ k[0, :, 0].double().T) * 64**-0.5
    assert torch.equal(last, slope.double() * torch.arange(T))


@pytest.mark.parametrize("kind", [SoftmaxAttention, WindowAttention])
@pytest.mark.parametrize("decay", [-2.0, -200.0, -1e20])
def test_a_strong_decay_stays_within_float16(kind, decay):
    """In one factor the last digit's weight, 2 * sqrt(64) * 64^2, would be infinite."""
    layer, x = kind(64, 1, log_decay=[decay]), torch.randn(1, 70, 64)
    torch.testing.assert_close(layer.half()(x.half()).float(), layer.float()(x), rtol=0, atol=5e-3)


@pytest.mark.parametrize("layer", [SoftmaxAttention, WindowAttention, LinearAttention])
def test_a_decay_of_mask_size_leaves_each_token_alone(layer):
    """A weight times a position was infinite, and a score NaN."""
    one, x = layer(16, 1, log_decay=[torch.finfo(torch.float32).min]), torch.randn(2, 140, 16)
    torch.testing.assert_close(one.weights(x), torch.eye(140).expand(2, 1, -1, -1))
    alone = one(x.flatten(0, 1).unsqueeze(1)).view_as(x)
    torch.testing.assert_close(one(x), alone, rtol=1e-5, atol=1e-6)


def test_the_weights_of_a_bf16_layer_tell_neighbours_apart():
    """At token 500 a score has position 500 in it, which bf16 knows to 2."""
    layer = SoftmaxAttention(16, 1, log_decay=[-0.5]).bfloat16()
    x = torch.zeros(1, 500, 16, dtype=torch.bfloat16)
    wanted = torch.softmax(-0.5 * torch.arange(500.0).flip(0), 0)
    torch.testing.assert_close(layer.weights(x)[0, 0, -1], wanted)


@torch.no_grad()
def test_two_threads_continue_one_text(monkeypatch):
    """Both would take the one place behind it."""
    machine, write = make_layer("softmax", D, 2).machine(), KVBuffer.write
    state, _ = machine.prefill(machine.initial_state, torch.randn(1, 6, D))

    def slowly(*args):
        time.sleep(0.02)  # the other thread runs
        write(*args)

    monkeypatch.setattr(KVBuffer, "write", slowly)
    tokens = torch.randn(2, 1, D)
    with ThreadPoolExecutor(2) as threads:
        found = [*threads.map(torch.no_grad()(lambda x: machine.step(state, x)[0]), tokens)]
    for cache, x in zip(found, tokens, strict=True):
        assert torch.equal(cache.k, machine.step(state, x)[0].k)


@pytest.mark.parametrize("name", ["softmax", "aft-full"])
def test_a_tick_spares_a_cache_that_is_not_its_to_write(name):
    """One that a graph has read, and one made in inference mode: torch refuses both."""
    layer, x = make_layer(name, 8, 2, max_length=9), torch.randn(1, 7, 8)
    machine = layer.machine()
    wanted = layer(x)[:, -1]
    state, y = machine.prefill(machine.initial_state, x[:, :6])
    with torch.no_grad():
        torch.testing.assert_close(machine.step(state, x[:, 6])[1], wanted)
    y.sum().backward()
    with torch.inference_mode():
        state, _ = machine.prefill(machine.initial_state, x[:, :6])
    with torch.no_grad():
        torch.testing.assert_close(machine.step(state, x[:, 6])[1], wanted)


def test_a_cache_with_room_stays_where_it_is():
    k = torch.randn(1, 40, 2, 4)
    cache = KVCache(room=40)
    places = set()
    for t in range(40):
        cache = cache.extend(k[:, t : t + 1], k[:, t : t + 1])
        places.add(cache.k.data_ptr())
    assert len(places) == 1
    assert torch.equal(cache.k, k) and torch.equal(cache.v, k)
    assert torch.equal(cache.extend(k, k).k, torch.cat((k, k), 1))  # past it, it grows


def test_a_rewound_cache_is_extended_in_place():
    k = torch.randn(1, 4, 2, 4)
    cache = KVCache().rewound().extend(k[:, :3], k[:, :3])
    first = cache.extend(k[:, 3:], k[:, 3:])
    again = cache.rewound().extend(-k[:, 3:], -k[:, 3:])
    assert again.k.data_ptr() == cache.k.data_ptr() == first.k.data_ptr()
    assert torch.equal(again.k, torch.cat((k[:, :3], -k[:, 3:]), 1))
    other = cache.extend(k[:, 3:], k[:, 3:])  # where it is not rewound, both continuations stay
    assert torch.equal(other.k, k) and torch.equal(again.k[:, 3:], -k[:, 3:])
