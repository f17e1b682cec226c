"""Softmax attention in a window: by the definition."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from lsa import SoftmaxAttention
from lsa.layers import window_attention
from lsa.layers.window import WindowAttention
from tests.examples import examples


def by_definition(q, k, v, window, first):
    """The last T of L positions, each a row of a masked score matrix."""
    T, L = q.shape[1], k.shape[1]
    i, j = torch.arange(L - T, L)[:, None], torch.arange(L)
    seen = (j <= i) & ((j < first) | (i - j < window))
    scores = torch.einsum("bihk,bjhk->bhij", q, k) * q.shape[-1] ** -0.5
    A = scores.masked_fill(~seen, float("-inf")).softmax(-1)
    return torch.einsum("bhij,bjhv->bihv", A, v)


@examples(60)
@given(
    B=st.integers(1, 2), T=st.integers(1, 150), before=st.integers(0, 40),
    window=st.integers(1, 80), first=st.integers(0, 9),
)  # fmt: skip
def test_a_window_is_a_mask(B, T, before, window, first):
    q, k, v = (torch.randn(B, T + before, 2, n, dtype=torch.float64) for n in (3, 3, 5))
    q = q[:, before:]
    found = window_attention(q, k, v, window=window, first=first)
    torch.testing.assert_close(found, by_definition(q, k, v, window, first))


@examples(20)
@given(T=st.integers(0, 20), more=st.integers(0, 5))
def test_a_window_of_everything_is_softmax_attention(T, more):
    whole, windowed = SoftmaxAttention(12, 3), WindowAttention(12, 3, window=max(T, 1) + more)
    assert windowed.first == 1
    windowed.load_state_dict(whole.state_dict())
    x = torch.randn(2, T, 12)
    torch.testing.assert_close(windowed(x), whole(x))
