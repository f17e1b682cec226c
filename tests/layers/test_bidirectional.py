"""Attention without a mask: a sequence transformation, and no more than that."""

import pytest
import torch

from lsa import BidirectionalAttention, SoftmaxAttention, all_prefixes, is_causal_at, take_last
from lsa.attention.feature_maps import elu_plus_one
from lsa.layers import LinearAttention
from lsa.layers.bidirectional_linear import (
    BidirectionalLinearAttention,
    bidirectional_linear_attention,
)

D = 8
PAIRS = [  # the layer, the causal one, and how close they are
    (BidirectionalAttention, SoftmaxAttention, {}),
    (BidirectionalLinearAttention, LinearAttention, {"rtol": 1e-5, "atol": 1e-6}),
]


@pytest.mark.parametrize(("kind", "causal", "within"), PAIRS)
def test_it_is_not_causal_and_the_last_output_of_every_prefix_is(kind, causal, within):
    layer, other = kind(D, 2).double(), causal(D, 2).double()
    other.load_state_dict(layer.state_dict())
    x = torch.randn(2, 6, D).double()
    torch.testing.assert_close(all_prefixes(take_last(layer))(x), other(x), **within)
    assert not is_causal_at(layer, x)
    assert not hasattr(layer, "machine")
    assert layer(x[:, :0]).shape == (2, 0, D)


@pytest.mark.parametrize("kind", [kind for kind, *_ in PAIRS])
def test_it_reads_a_set(kind):
    layer, x = kind(D, 2).double(), torch.randn(1, 6, D).double()
    order = torch.tensor([3, 1, 5, 0, 2, 4])
    torch.testing.assert_close(layer(x[:, order]), layer(x)[:, order])


def test_linear_attention_without_a_mask_is_the_double_sum():
    q, k, v = (torch.randn(2, 9, 3, width).double() for width in (4, 4, 5))
    q, k = elu_plus_one(q), elu_plus_one(k)
    weights = torch.einsum("bihk,bjhk->bhij", q, k)
    expected = torch.einsum("bhij,bjhv->bihv", weights / weights.sum(-1, keepdim=True), v)
    torch.testing.assert_close(bidirectional_linear_attention(q, k, v, eps=0.0), expected)


def test_a_denominator_is_never_made_smaller():
    q = torch.ones(1, 3, 1, 2)
    with pytest.raises(ValueError, match="eps: expected a finite number, 0 or more, got -1"):
        bidirectional_linear_attention(q, q, q, eps=-1.0)


def test_lower_precision_keeps_its_dtype():
    layer, x = BidirectionalLinearAttention(D, 2).bfloat16(), torch.randn(1, 6, D).bfloat16()
    assert layer(x).dtype == torch.bfloat16
    # The normaliser of a long text is beyond float16, the quotient is not.
    ones = torch.ones(1, 70_000, 1, 2, dtype=torch.float16)
    assert torch.equal(bidirectional_linear_attention(ones, ones, ones), ones)
    with torch.autocast("cpu", torch.float16):
        wide = bidirectional_linear_attention(ones.float(), ones.float(), ones.float())
    assert torch.equal(wide, ones.float())
