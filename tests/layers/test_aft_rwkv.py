"""AFT and RWKV-4 against their published equations, and with keys of magnitude 100."""

from pathlib import Path

import numpy as np
import pytest
import torch

from lsa import unroll
from lsa.layers.aft import AFTFull, AFTLocal, AFTSimple
from lsa.layers.rwkv import RWKVChannelMixing, RWKVTimeMixing
from lsa.scans.exponential import exponential_sums, no_sums

D, T = 6, 21
FIXTURES = Path(__file__).parents[1] / "fixtures"


def is_published_sum(layer, bias):
    """Zhai et al. (2021), AFT-full with the sum over j <= t; `bias(t, j)` is w_tj."""
    layer, x = layer.double(), torch.randn(2, T, D).double()
    for w in (p for name, p in layer.named_parameters() if name == "w"):
        torch.nn.init.normal_(w)
    q, k, v = layer.c_attn(x).chunk(3, -1)
    o = torch.empty_like(q)
    for t in range(T):
        weights = torch.stack([(k[:, j] + bias(layer, t, j)).exp() for j in range(t + 1)], 1)
        o[:, t] = q[:, t].sigmoid() * (weights * v[:, : t + 1]).sum(1) / weights.sum(1)
    torch.testing.assert_close(layer(x), layer.c_proj(o), rtol=1e-10, atol=1e-10)


def test_aft_full_and_aft_simple_are_the_published_sum():
    is_published_sum(AFTFull(D, max_length=T, chunk_size=4), lambda layer, t, j: layer.w[t, j])
    is_published_sum(AFTSimple(D), lambda layer, t, j: 0.0)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("window", [1, 4, 30])
def test_aft_local_is_the_published_sum(window, shared):
    def bias(layer, t, j):
        return layer.w[0 if shared else t, t - j] if t - j < window else 0.0

    is_published_sum(AFTLocal(D, window=window, max_length=None if shared else T), bias)


def test_aft_full_ends_where_its_biases_do():
    layer, x = AFTFull(D, max_length=T), torch.randn(1, T, D)
    machine = layer.machine()
    assert machine.max_length == T
    state, _ = machine.prefill(machine.initial_state, x)
    for call in (lambda: machine.step(state, x[:, 0]), lambda: layer(torch.randn(1, T + 1, D))):
        with pytest.raises(ValueError, match=f"^x: .* at most max_length {T} tokens, got {T + 1}"):
            call()


def test_rwkv_agrees_with_a_public_implementation():
    stored = {k: torch.from_numpy(v) for k, v in np.load(FIXTURES / "rwkv4.npz").items()}
    time = RWKVTimeMixing(D).double()
    time.load_state_dict(
        {f"{name}.weight": stored[name] for name in ("receptance", "key", "value", "output")}
        | {f"mu_{letter}": stored[f"time_mix_{letter}"] for letter in "rkv"}
        | {"log_w": stored["log_w"], "u": stored["time_first"]}
    )
    channel = RWKVChannelMixing(D, hidden=10).double()
    channel.load_state_dict(
        {f"{name}.weight": stored[f"ffn_{name}"] for name in ("receptance", "key", "value")}
        | {f"mu_{letter}": stored[f"ffn_mix_{letter}"] for letter in "rk"}
    )
    for layer, name in ((time, "time_mixing"), (channel, "channel_mixing")):
        for face in (layer, unroll(layer.machine())):
            torch.testing.assert_close(face(stored["x"]), stored[name], rtol=1e-10, atol=1e-10)


LARGE = {
    "aft-full": lambda: AFTFull(D, max_length=200),
    "aft-local": lambda: AFTLocal(D, window=7),
    "aft-simple": lambda: AFTSimple(D),
    "rwkv": lambda: RWKVTimeMixing(D),
}


@pytest.mark.slow
@pytest.mark.parametrize("log_w", [3.0, 14.0, 60.0])
def test_large_keys_outlast_a_decay_that_clears_all(log_w):
    """In float32 the sum of such decays does not hold the digits of a key of 800."""
    layer = RWKVTimeMixing(D)
    with torch.no_grad():
        layer.log_w.fill_(log_w)
        layer.key.weight.mul_(400)
        x = torch.randn(1, 3000, D)
        y, expected = layer(x), unroll(layer.machine())(x)
    assert (y - expected).norm() < 1e-5 * expected.norm()


def test_a_large_key_is_forgotten_in_a_text_of_a_million_tokens():
    k = torch.zeros(1, 1_000_000, 1)
    k[:, 0] = 300.0
    found = exponential_sums(no_sums(k, 1), k, torch.ones_like(k), 1e4)
    assert (found.num / found.den == 1).all() and (found.top[:, 1:] == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_keys_of_magnitude_100_neither_overflow_nor_vanish(name, dtype):
    """Keys of ±100 in any order: exp(100) overflows float32, exp(-200) is 0 in it."""
    layer = LARGE[name]().double()
    with torch.no_grad():
        if name == "rwkv":
            layer.key.weight.copy_(100 * torch.eye(D))
            layer.mu_k.fill_(1)
        else:
            layer.c_attn.weight[D : 2 * D] = 100 * torch.eye(D)
            layer.c_attn.bias[D : 2 * D] = 0
    x = torch.randn(2, 200, D).sign().double()
    x[:, :50] = -1  # the first keys are all small, and must not be lost beside the later ones
    expected = layer(x).detach()
    layer = layer.to(dtype)
    for face in (layer, unroll(layer.machine())):
        layer.zero_grad()
        y = face(x.to(dtype))
        y.square().sum().backward()
        assert all(p.grad.isfinite().all() for p in layer.parameters())
        allowed = 1e-5 if dtype == torch.float32 else 3e-2
        assert (y.double() - expected).norm() < allowed * expected.norm()
