"""Window and state under one normaliser: by the definition, and what it is at both ends."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from lsa import SoftmaxAttention
from lsa.layers.state_features import STATE_MAPS, StateFeatures
from lsa.layers.window_delta import WindowDeltaMix
from lsa.layers.window_state import WindowStateAttention, WindowStateMix
from tests.examples import examples

maps = st.sampled_from(STATE_MAPS)
H, K = 2, 4
DECAY = (-0.3, 0.0)


def mix(kind=WindowStateMix, **options):
    """One whose learned numbers are not those it starts with."""
    one = kind(H, K, **options).double()
    with torch.no_grad():
        for p in one.parameters():
            p.add_(0.3 * torch.randn_like(p))
    return one


def qkv(B, T):
    return (torch.randn(B, T, H, K, dtype=torch.float64) for _ in range(3))


def by_definition(one, q, k, v):
    """All pairs: a token's weight is that of the window, or that of the state and its decay."""
    i, j = torch.arange(q.shape[1])[:, None], torch.arange(q.shape[1])
    exact = (j < one.first) | (i - j < one.window)
    scores = torch.einsum("bihk,bjhk->bhij", q, k)
    products = torch.einsum("bihf,bjhf->bhij", one.phi.of_queries(q), one.phi.of_keys(k))
    decay = torch.zeros(H) if one.log_decay is None else one.log_decay
    age = (i - j - one.window).clamp(min=0) * decay[:, None, None]
    far = products * (one.balance[:, None, None] + age).exp()
    A = torch.where(exact, (scores * K**-0.5).exp(), far).tril()
    return torch.einsum("bhij,bjhv->bihv", A / A.sum(-1, keepdim=True), v)


@examples(40)
@given(
    B=st.integers(1, 2), T=st.integers(1, 100), window=st.integers(0, 40), first=st.integers(0, 5),
    feature_map=maps, log_decay=st.sampled_from([None, DECAY]),
)  # fmt: skip
def test_every_token_has_one_weight(B, T, window, first, feature_map, log_decay):
    one = mix(window=window, first=first, feature_map=feature_map, log_decay=log_decay)
    q, k, v = qkv(B, T)
    torch.testing.assert_close(one(q, k, v), by_definition(one, q, k, v), rtol=1e-6, atol=1e-9)


@examples(40)
@given(
    T=st.integers(1, 90), window=st.integers(0, 40), first=st.integers(0, 5), erase=st.booleans()
)
def test_a_delta_rule_reads_what_the_window_has_lost(T, window, first, erase):
    one = mix(WindowDeltaMix, window=window, first=first, erase=erase)
    q, k, v = (x[0] for x in qkv(1, T))
    unit_q, unit_k = (
        F.normalize(torch.einsum("thk,hfk->thf", x, w), dim=-1)
        for x, w in zip((q, k), one.W, strict=True)
    )
    beta = torch.sigmoid((k * one.write).sum(-1) + one.write_bias)
    gate = torch.sigmoid((q * one.read).sum(-1) + one.read_bias)
    S, wanted = torch.zeros(H, K, K, dtype=torch.float64), []
    for i in range(T):
        left, near = i - window, [j for j in range(i + 1) if j < first or i - j < window]
        if left >= first:
            missed = v[left] - erase * torch.einsum("hkv,hk->hv", S, unit_k[left])
            S = S + torch.einsum("hk,hv->hkv", beta[left, :, None] * unit_k[left], missed)
        scores = torch.einsum("hk,jhk->hj", q[i], k[near]) * K**-0.5
        o = torch.einsum("hj,jhv->hv", scores.softmax(-1), v[near])
        if i >= first + window:
            o = o.lerp(torch.einsum("hkv,hk->hv", S, unit_q[i]), gate[i, :, None])
        wanted.append(o)
    found = one(q[None], k[None], v[None])[0]
    torch.testing.assert_close(found, torch.stack(wanted), rtol=1e-6, atol=1e-9)


@examples(20)
@given(T=st.integers(0, 40), more=st.integers(0, 5), feature_map=maps)
def test_with_a_window_of_everything_it_is_softmax_attention(T, more, feature_map):
    whole = SoftmaxAttention(8, 2).double()
    one = WindowStateAttention(8, 2, window=T + more, feature_map=feature_map).double()
    one.load_state_dict(whole.state_dict(), strict=False)
    x = torch.randn(2, T, 8, dtype=torch.float64)
    torch.testing.assert_close(one(x), whole(x))


def test_scores_far_apart_neither_overflow_nor_vanish():
    """exp(1000) in the window and exp(-1000): what is larger has all the weight."""
    one = WindowStateMix(1, 1, window=1, first=0, feature_map="elu_plus_one")
    k, v = torch.ones(1, 3, 1, 1), torch.tensor([5.0, 6.0, 7.0]).view(1, 3, 1, 1)
    above = one(torch.full((1, 3, 1, 1), 1000.0), k, v)
    below = one(torch.full((1, 3, 1, 1), -10.0), k * 100, v)
    torch.testing.assert_close(above, v)
    torch.testing.assert_close(below[0, 2, 0, 0], torch.tensor(5.5))


@pytest.mark.parametrize(
    ("feature_map", "degree", "kernel"),
    [
        ("taylor", 2, lambda s: 1 + s + s**2 / 2),
        ("power", 4, lambda s: s**4),
    ],
)
def test_features_multiply_to_the_weight(feature_map, degree, kernel):
    phi = StateFeatures(H, K, feature_map=feature_map, degree=degree).double()
    q, k, _ = qkv(1, 5)
    found = (phi.of_queries(q) * phi.of_keys(k)).sum(-1)
    torch.testing.assert_close(found, kernel((q * k).sum(-1) * K**-0.5))


def test_queries_and_keys_have_learned_features_of_their_own():
    phi, (q, k, _) = mix(feature_map="hedgehog").phi, qkv(1, 5)
    for W, x, found in zip(phi.W, (q, k), (phi.of_queries(q), phi.of_keys(k)), strict=True):
        rows = torch.einsum("bthk,hfk->bthf", x, W)
        torch.testing.assert_close(found, torch.cat((rows.softmax(-1), (-rows).softmax(-1)), -1))


@pytest.mark.slow
def test_compiled_for_any_length_its_sizes_are_sums():
    """With `min` and `max` of a length in a size, torch 2.13 compiles no backward pass."""
    layer, sizes = WindowStateAttention(8, 2, window=3, first=1), []

    def backend(graph, _inputs):
        found = [node.meta.get("example_value") for node in graph.graph.nodes]
        sizes.extend(str(x.shape) for x in found if isinstance(x, torch.Tensor))
        return graph.forward

    compiled = torch.compile(layer, backend=backend, fullgraph=True)
    for T in (9, 7, 3, 2):
        x = torch.randn(1, T, 8)
        torch.testing.assert_close(compiled(x), layer(x))
    assert any("s" in size.removeprefix("torch.Size") for size in sizes)
    assert not [size for size in sizes if "Min" in size or "Max" in size]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
def test_without_a_window_the_forward_derivative_is_that_of_the_state():
    layer = WindowStateAttention(8, 2, window=0, first=0).double()
    x, t = torch.randn(2, 1, 5, 8, dtype=torch.float64)
    _, found = torch.func.jvp(layer, (x,), (t,))
    torch.testing.assert_close(found, (layer(x + 1e-6 * t) - layer(x - 1e-6 * t)) / 2e-6)
