"""Gates, the delta rule and powers: the published recurrences, chunked forms, public numbers."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lsa import LinearAttention
from lsa.layers.delta import DeltaNet, delta_rule
from lsa.layers.gated import GatedLinearAttention, decayed_attention
from lsa.layers.power import PowerAttention, power_features
from tests.examples import examples

FIXTURES = Path(__file__).parents[1] / "fixtures"
H, K, V = 2, 4, 5


def drawn(T, per_channel=False, strength=3.0, seed=0):
    """q, k, v, log_decay, S_0 in float64; some decays near 1, some near 0."""
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, dtype=torch.float64, generator=draw)

    q, k, v = normal(2, T, H, K), normal(2, T, H, K), normal(2, T, H, V)
    decay = -torch.exp(strength * normal(2, T, H, K if per_channel else 1))
    return q, torch.nn.functional.normalize(k, dim=-1), v, decay, normal(2, H, K, V)


def in_numpy(q, k, v, log_decay, S, beta=None):
    """o_t = S_t^T q_t, of S in [K, V].

    Yang et al. (2024), GLA: S_t = Diag(α_t) S_{t-1} + k_t v_t^T. Yang et al. (2025), where there is
    a β: S_t = α (I - β k k^T) S_{t-1} + β k v^T.
    """
    q, k, v, log_decay, S = (x.numpy() for x in (q, k, v, log_decay, S))
    S, o = S.copy(), np.zeros_like(v)
    for b, h in np.ndindex(q.shape[0], q.shape[2]):
        for t in range(q.shape[1]):
            key, write = k[b, t, h], 1.0 if beta is None else beta[b, t, h].item()
            forget = np.diag(np.broadcast_to(np.exp(log_decay[b, t, h]), K))
            if beta is not None:
                forget = forget @ (np.eye(K) - write * np.outer(key, key))
            S[b, h] = forget @ S[b, h] + write * np.outer(key, v[b, t, h])
            o[b, t, h] = S[b, h].T @ q[b, t, h]
    return torch.from_numpy(o), torch.from_numpy(S)


@pytest.mark.parametrize("per_channel", [False, True])
@examples(20)
@given(T=st.integers(1, 40), C=st.sampled_from([None, 1, 3, 16]), seed=st.integers(0, 10**6))
def test_chunked_decay_is_the_published_recurrence(per_channel, T, C, seed):
    problem = drawn(T, per_channel, seed=seed)
    found = decayed_attention(*problem, C)
    torch.testing.assert_close(found, in_numpy(*problem), rtol=1e-10, atol=1e-10)


@examples(20)
@given(T=st.integers(1, 40), C=st.sampled_from([None, 1, 3, 16]), seed=st.integers(0, 10**6))
def test_the_chunked_delta_rule_is_the_published_recurrence(T, C, seed):
    q, k, v, decay, S = drawn(T, strength=1.0, seed=seed)
    beta = torch.rand(2, T, H, dtype=torch.float64)
    found = delta_rule(q, k, v, beta, decay[..., 0], S, C)
    torch.testing.assert_close(found, in_numpy(q, k, v, decay, S, beta), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("per_channel", [False, True])
def test_strong_decay_is_stable_in_float32(per_channel):
    """Rates up to e^9 a token: exp(-g) on its own would be inf within one chunk."""
    q, k, v, decay, S = drawn(200, per_channel, strength=3.0)
    assert decay.min() < -1000
    decay[:, 100] = -2e4  # digits of the weak decays after it must survive
    expected, _ = in_numpy(q, k, v, decay, S)
    leaves = [x.float().requires_grad_() for x in (q, k, v, decay, S)]
    o, _ = decayed_attention(*leaves)
    o.square().sum().backward()
    assert all(x.grad.isfinite().all() for x in leaves)
    assert (o.double() - expected).norm() < 1e-5 * expected.norm()


def test_they_agree_with_public_references():
    f = {k: torch.from_numpy(v) for k, v in np.load(FIXTURES / "fla_naive.npz").items()}
    q, k, v, beta, S = f["q"] * K**-0.5, f["k"], f["v"], f["beta"], f["h0"]
    gamma = 1 - 2.0 ** -(5 + torch.arange(H, dtype=torch.float64))
    retention = gamma.log().expand(1, q.shape[1], H).unsqueeze(-1)
    found = {
        "simple_gla": decayed_attention(q, k, v, f["g"].unsqueeze(-1), S),
        "gla": decayed_attention(q, k, v, f["gk"], S),
        "delta": delta_rule(q, k, v, beta, torch.zeros_like(beta), S),
        "gated_delta": delta_rule(q, k, v, beta, f["g"], S),
        "retention": decayed_attention(q, k, v, retention, torch.zeros_like(S)),
    }
    for name, (o, state) in found.items():
        torch.testing.assert_close(o, f[f"{name}_o"], rtol=1e-10, atol=1e-10)
        if f"{name}_state" in f:
            torch.testing.assert_close(state, f[f"{name}_state"], rtol=1e-10, atol=1e-10)


def test_a_decay_of_one_is_linear_attention():
    gated = GatedLinearAttention(8, 2, feature_map="elu_plus_one", normalize=True).double()
    linear = LinearAttention(8, 2).double()
    linear.load_state_dict(gated.state_dict(), strict=False)
    torch.nn.init.constant_(gated.gate.a, -100.0)
    x = torch.randn(2, 30, 8).double()
    # The scale of the queries, K ** -0.5, meets eps in the normaliser of both.
    torch.testing.assert_close(gated(x), linear(x), rtol=1e-6, atol=1e-6)


def test_the_fixed_decay_is_retnets():
    layer = GatedLinearAttention(8, 4, decay="fixed")
    expected = [math.log(1 - 2 ** -(5 + h)) for h in range(4)]
    found = layer.log_decays(torch.zeros(1, 1, 8), torch.float64).flatten()
    torch.testing.assert_close(found.tolist(), expected)
    assert not any("gate" in name for name, _ in layer.named_parameters())


@pytest.mark.parametrize("gated", [False, True])
def test_without_its_erase_term_the_layer_adds_what_it_writes(gated):
    """All else is the delta rule's: unit keys, write gate, decay, and how the state is read."""
    erasing = DeltaNet(8, 2, gated=gated).double()
    adding = DeltaNet(8, 2, gated=gated, erase=False).double()
    adding.load_state_dict(erasing.state_dict())
    x = torch.randn(2, 30, 8).double()
    q, k, v, beta, decay = erasing.features(x)
    S = torch.zeros(2, 2, 4, 4).double()
    o, _ = in_numpy(
        *(one.detach() for one in (q, k, beta.unsqueeze(-1) * v, decay.unsqueeze(-1), S))
    )
    torch.testing.assert_close(adding(x), adding.read(o, x), rtol=1e-10, atol=1e-10)
    # Where no two keys overlap there is nothing to erase: one token is written alike by both.
    torch.testing.assert_close(adding(x[:, :1]), erasing(x[:, :1]))


@examples(100)
@given(width=st.integers(1, 5), p=st.integers(1, 6), seed=st.integers(0, 10**6))
def test_power_features_multiply_to_the_power(width, p, seed):
    x, y = torch.randn(
        2, 4, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
    )
    phi_x, phi_y = power_features(x, p), power_features(y, p)
    assert phi_x.shape[-1] == math.comb(width + p - 1, p)
    torch.testing.assert_close((phi_x * phi_y).sum(-1), (x * y).sum(-1) ** p)


@pytest.mark.parametrize("gated", [False, True])
def test_power_attention_is_the_double_sum(gated):
    layer, x = PowerAttention(8, 2, degree=4, gated=gated).double(), torch.randn(2, 9, 8).double()
    q, k, v, decay = (heads.detach().numpy() for heads in layer.scaled_qkv(x))
    o = np.zeros_like(v)
    for b, h in np.ndindex(2, 2):
        for i in range(9):
            weights = np.array(
                [(q[b, i, h] @ k[b, j, h]) ** 4 * np.exp(decay[b, j + 1 : i + 1, h].sum())
                 for j in range(i + 1)]
            )  # fmt: skip
            assert (weights >= 0).all()
            o[b, i, h] = weights @ v[b, : i + 1, h] / (weights.sum() + 1e-6)
    torch.testing.assert_close(layer(x), layer.out(torch.from_numpy(o)), rtol=1e-9, atol=1e-9)


def test_delta_keys_have_length_one():
    layer = DeltaNet(8, 2, gated=True).double()
    _, k, _, beta, decay = layer.features(torch.randn(3, 5, 8).double())
    torch.testing.assert_close(k.norm(dim=-1), torch.ones(3, 5, 2).double())
    assert ((beta > 0) & (beta < 1)).all()
    assert (decay < 0).all()


def test_erasing_needs_unit_keys():
    with pytest.raises(ValueError, match="^unit: expected True with erase, got False$"):
        DeltaNet(8, 2, unit=False)
