"""Linear attention without a mask: one state for all queries, and no machine."""

import torch

from lsa import all_prefixes, is_causal_at, take_last
from lsa.attention.feature_maps import elu_plus_one
from lsa.layers import LinearAttention
from lsa.layers.bidirectional_linear import (
    BidirectionalLinearAttention,
    bidirectional_linear_attention,
)

D = 8


def test_it_is_the_double_sum():
    q, k, v = (torch.randn(2, 9, 3, width).double() for width in (4, 4, 5))
    q, k = elu_plus_one(q), elu_plus_one(k)
    weights = torch.einsum("bihk,bjhk->bhij", q, k)
    expected = torch.einsum("bhij,bjhv->bihv", weights / weights.sum(-1, keepdim=True), v)
    torch.testing.assert_close(bidirectional_linear_attention(q, k, v, eps=0.0), expected)


def test_it_is_not_causal_and_has_no_machine():
    layer, x = BidirectionalLinearAttention(D, 2).double(), torch.randn(1, 6, D).double()
    assert not is_causal_at(layer, x)
    assert not hasattr(layer, "machine")
    assert layer(x[:, :0]).shape == (1, 0, D)


def test_the_last_output_of_every_prefix_is_the_causal_layer():
    layer, causal = BidirectionalLinearAttention(D, 2).double(), LinearAttention(D, 2).double()
    causal.load_state_dict(layer.state_dict())
    x = torch.randn(2, 6, D).double()
    torch.testing.assert_close(all_prefixes(take_last(layer))(x), causal(x), rtol=1e-5, atol=1e-6)


def test_lower_precision_keeps_its_dtype():
    layer, x = BidirectionalLinearAttention(D, 2).bfloat16(), torch.randn(1, 6, D).bfloat16()
    assert layer(x).dtype == torch.bfloat16
    # The normaliser of a long text is beyond float16, the quotient is not.
    ones = torch.ones(1, 70_000, 1, 2, dtype=torch.float16)
    assert torch.equal(bidirectional_linear_attention(ones, ones, ones), ones)
    with torch.autocast("cpu", torch.float16):
        wide = bidirectional_linear_attention(ones.float(), ones.float(), ones.float())
    assert torch.equal(wide, ones.float())
