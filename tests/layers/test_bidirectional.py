"""Attention without a mask: a sequence transformation, and no more than that."""

import torch

from lsa import BidirectionalAttention, SoftmaxAttention, all_prefixes, is_causal_at, take_last

D = 8


def test_it_is_not_causal_and_has_no_machine():
    layer, x = BidirectionalAttention(D, 2).double(), torch.randn(1, 6, D).double()
    assert not is_causal_at(layer, x)
    assert not hasattr(layer, "machine")
    assert layer(x[:, :0]).shape == (1, 0, D)


def test_it_reads_a_set():
    layer, x = BidirectionalAttention(D, 2).double(), torch.randn(1, 6, D).double()
    order = torch.tensor([3, 1, 5, 0, 2, 4])
    torch.testing.assert_close(layer(x[:, order]), layer(x)[:, order])


def test_the_last_output_of_every_prefix_is_causal_attention():
    layer, causal = BidirectionalAttention(D, 2).double(), SoftmaxAttention(D, 2).double()
    causal.load_state_dict(layer.state_dict())
    x = torch.randn(2, 6, D).double()
    torch.testing.assert_close(all_prefixes(take_last(layer))(x), causal(x))
