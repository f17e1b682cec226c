"""How much weight K features put on the right one of N keys: K / N in the mean, at most."""

import math
from functools import partial

import torch
from hypothesis import given
from hypothesis import strategies as st

from lsa import linear_attention
from lsa.attention.feature_maps import FEATURE_MAPS, SIGNED
from lsa.layers.taylor import taylor_features
from tests.examples import examples

NEVER_NEGATIVE = [phi for name, phi in FEATURE_MAPS.items() if name not in SIGNED]
NEVER_NEGATIVE += [partial(taylor_features, degree=n) for n in (0, 2, 4)]
SEEDS = st.integers(0, 2**31 - 1)


def weights(q, k, decay=1.0):
    """Weights of the keys [N, K] for queries that all follow them: those of values one-hot."""
    N, nothing = len(k), torch.zeros_like(k)
    values = torch.eye(N).double(), torch.zeros(N, N).double()
    parts = (nothing, q), (k, nothing), values
    q, k, v = (torch.cat(part)[None, :, None] for part in parts)
    o = linear_attention(q, k, v, scale=1.0, log_decay=torch.tensor([math.log(decay)]).double())
    return o[0, N:, 0]


@examples(200)
@given(
    N=st.integers(1, 24),
    d=st.integers(1, 4),
    phi=st.sampled_from(NEVER_NEGATIVE),
    size=st.sampled_from([0.3, 1.0, 5.0]),
    same=st.booleans(),
    decay=st.sampled_from([1.0, 0.9]),
    seed=SEEDS,
)
def test_no_map_puts_more_on_the_right_key(N, d, phi, size, same, decay, seed):
    g = torch.Generator().manual_seed(seed)
    q, k = size * torch.randn(2, N, d, dtype=torch.float64, generator=g)
    features = phi(k)
    found = weights(features if same else phi(q), features, decay)
    assert found.min() > -1e-12 and found.sum(1).max() < 1 + 1e-9
    assert found.diagonal().mean() <= features.shape[1] / N + 1e-9


@given(N=st.integers(1, 24), data=st.data())
def test_a_feature_for_each_group_reaches_the_bound(N, data):
    K = data.draw(st.integers(1, N))
    others = st.lists(st.integers(0, K - 1), min_size=N - K, max_size=N - K)
    groups = [*range(K), *data.draw(others)]
    features = torch.eye(K).double()[groups]
    torch.testing.assert_close(
        weights(features, features).diagonal().mean().item(), K / N, rtol=1e-5, atol=0
    )


@given(N=st.integers(2, 40))
def test_on_a_circle_the_right_key_is_the_heaviest(N):
    angles = 2 * math.pi * torch.arange(N).double() / N
    features = torch.stack((torch.ones(N).double(), angles.cos(), angles.sin()), dim=1)
    found = weights(features, features)
    assert found.argmax(1).tolist() == list(range(N))
    torch.testing.assert_close(
        found.diagonal(), torch.full((N,), 2 / N).double(), rtol=1e-5, atol=0
    )
