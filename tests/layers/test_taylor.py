"""Taylor softmax: features that multiply to the cut exponential, and what more terms buy."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from lsa import SoftmaxAttention, TaylorAttention
from lsa.layers.taylor import taylor_exp, taylor_features
from tests.examples import examples

D = 8


@examples(150)
@given(K=st.integers(1, 5), degree=st.integers(0, 5), seed=st.integers(0, 10**6))
def test_features_multiply_to_the_taylor_sum(K, degree, seed):
    x, y = torch.randn(2, 4, K, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    phi_x, phi_y = taylor_features(x, degree), taylor_features(y, degree)
    assert phi_x.shape[-1] == math.comb(K + degree, degree)
    torch.testing.assert_close((phi_x * phi_y).sum(-1), taylor_exp((x * y).sum(-1), degree))


@examples(200)
@given(s=st.floats(-50, 50), n=st.integers(0, 6))
def test_an_even_sum_is_positive(s, n):
    assert taylor_exp(torch.tensor(s, dtype=torch.float64), 2 * n) > 0


@examples(150)
@given(s=st.floats(-3, 3), n=st.integers(0, 12))
def test_the_sum_is_the_sum(s, n):
    expected = math.fsum(s**m / math.factorial(m) for m in range(n + 1))
    torch.testing.assert_close(
        taylor_exp(torch.tensor(s, dtype=torch.float64), n).item(), expected, rtol=1e-9, atol=1e-9
    )


def test_more_terms_come_closer_to_softmax():
    softmax, x = SoftmaxAttention(D, 2).double(), torch.randn(2, 12, D, dtype=torch.float64)
    errors = []
    for degree in (0, 2, 4, 6, 8):
        taylor = TaylorAttention(D, 2, degree=degree).double()
        taylor.load_state_dict(softmax.state_dict())
        errors.append((taylor(x) - softmax(x)).abs().max().item())
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-4
