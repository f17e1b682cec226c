"""One function, three modes: against a float64 recurrence written as the definition reads."""

from unittest import mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lsa import LinearState, linear_attention, softmax_attention
from lsa.attention import eager
from lsa.attention.api import MODES
from lsa.attention.feature_maps import FEATURE_MAPS, SIGNED, elu_plus_one
from tests import helpers
from tests.helpers import recurrence, relative_rms

RELATIVE = {torch.float64: 1e-12, **helpers.RELATIVE}

problems = st.fixed_dictionaries(
    {
        "B": st.integers(0, 3),
        "T": st.sampled_from([0, 1, 2, 3, 7, 16, 31, 64, 65, 97]),
        "H": st.integers(1, 3),
        "K": st.integers(1, 20),
        "V": st.integers(1, 20),
        "mode": st.sampled_from(MODES),
        "chunk_size": st.sampled_from([None, 1, 2, 7, 16, 64, 1000]),
        "normalize": st.booleans(),
        "scale": st.sampled_from([None, 1.0, 0.3]),
        "dtype": st.sampled_from(list(RELATIVE)),
        "cached": st.sampled_from([1, 500, eager.CACHED]),
        "with_state": st.booleans(),
        "decay": st.sampled_from(["none", "head", "token"]),
        "contiguous": st.booleans(),
        "seed": st.integers(0, 2**31 - 1),
    }
)


def draw(p):
    """q, k, v in p's dtype, then the initial state and log_decay in float64."""
    eager.CACHED = p["cached"]
    g = torch.Generator().manual_seed(p["seed"])
    B, T, H, K, V = (p[letter] for letter in "BTHKV")
    q = elu_plus_one(torch.randn(B, T, H, K, generator=g))
    k = elu_plus_one(torch.randn(B, T, H, K, generator=g))
    v = torch.randn(B, T, H, V, generator=g)
    if not p["contiguous"]:
        q, k, v = (x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v))
    q, k, v = (x.to(p["dtype"]) for x in (q, k, v))
    S = torch.randn(B, H, K, V, generator=g).double() * p["with_state"]
    z = torch.rand(B, H, K, generator=g).double() * p["with_state"]
    g = {"head": -2 * torch.rand(H, generator=g), "token": -2 * torch.rand(B, T, H, generator=g)}
    g = g.get(p["decay"])
    return (q, k, v), S, z, None if g is None else g.double()


@pytest.fixture(autouse=True, scope="module")
def caches():
    """Restores what `draw` sets: how many numbers plain torch takes in one piece."""
    with mock.patch.object(eager, "CACHED", eager.CACHED):
        yield


@given(problems)
def test_every_mode_is_the_definition(p):
    qkv, S, z, g = draw(p)
    options = {"normalize": p["normalize"], "scale": p["scale"]}
    wanted = recurrence(*(x.double() for x in qkv), S, z, g, **options)
    wide = torch.float64 if p["dtype"] == torch.float64 else torch.float32
    o, (S_end, z_end) = linear_attention(
        *qkv, mode=p["mode"], chunk_size=p["chunk_size"], **options, return_state=True,
        initial_state=LinearState(S.to(wide), z.to(wide)) if p["with_state"] else None,
        log_decay=None if g is None else g.to(wide),
    )  # fmt: skip
    v = qkv[2]
    assert o.shape == v.shape
    assert o.dtype == v.dtype
    for found, exact in zip((o, S_end, z_end), wanted, strict=True):
        assert relative_rms(found, exact) <= RELATIVE[p["dtype"]]


@given(problems)
def test_softmax_is_its_definition(p):
    (q, k, v), *_ = draw({**p, "dtype": torch.float64})
    T = p["T"]
    scores = torch.einsum("bihk,bjhk->bhij", q, k) * p["K"] ** -0.5
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(future, float("-inf")).softmax(-1)
    wanted = torch.einsum("bhij,bjhv->bihv", weights, v)
    torch.testing.assert_close(softmax_attention(q, k, v), wanted, rtol=1e-9, atol=1e-9)


@given(st.integers(1, 40), st.integers(0, 40))
def test_softmax_with_a_cache_is_the_tail_of_the_whole(new, old):
    q, k, v = (torch.randn(2, old + new, 2, 8, dtype=torch.float64) for _ in range(3))
    whole = softmax_attention(q, k, v)
    torch.testing.assert_close(softmax_attention(q[:, old:], k, v), whole[:, old:])


@pytest.mark.parametrize("name", FEATURE_MAPS)
def test_only_signed_feature_maps_are_negative(name):
    x = torch.linspace(-80, 80, 4001)
    assert (FEATURE_MAPS[name](x).min() < 0) == (name in SIGNED)
