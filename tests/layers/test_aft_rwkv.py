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


def numbers(module):
    return {name: p.detach().numpy() for name, p in module.named_parameters()}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def aft_in_numpy(layer, x, bias):
    """Zhai et al. (2021), AFT-full with the sum over j <= t; `bias(t, j)` is w_tj."""
    p = numbers(layer)
    y = np.zeros_like(x)
    for b in range(x.shape[0]):
        q, k, v = np.split(x[b] @ p["c_attn.weight"].T + p["c_attn.bias"], 3, axis=-1)
        for t in range(x.shape[1]):
            weights = np.stack([np.exp(k[j] + bias(t, j)) for j in range(t + 1)])
            y[b, t] = sigmoid(q[t]) * (weights * v[: t + 1]).sum(0) / weights.sum(0)
    return y @ p["c_proj.weight"].T + p["c_proj.bias"]


def test_aft_full_is_the_published_sum():
    layer, x = AFTFull(D, max_length=T, chunk_size=4).double(), torch.randn(2, T, D).double()
    torch.nn.init.normal_(layer.w)
    w = layer.w.detach().numpy()
    expected = aft_in_numpy(layer, x.numpy(), lambda t, j: w[t, j])
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("window", [1, 4, 30])
def test_aft_local_is_the_published_sum(window, shared):
    layer = AFTLocal(D, window=window, max_length=None if shared else T).double()
    torch.nn.init.normal_(layer.w)
    w, x = layer.w.detach().numpy(), torch.randn(2, T, D).double()
    expected = aft_in_numpy(
        layer, x.numpy(), lambda t, j: w[0 if shared else t, t - j] if t - j < window else 0.0
    )
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, rtol=1e-10, atol=1e-10)


def test_aft_simple_is_the_published_sum():
    layer, x = AFTSimple(D).double(), torch.randn(2, T, D).double()
    expected = aft_in_numpy(layer, x.numpy(), lambda t, j: 0.0)
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, rtol=1e-10, atol=1e-10)


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
