"""Lengths that books have."""

import pytest
import torch

from lsa import LinearState, linear_attention
from lsa.attention.feature_maps import elu_plus_one
from tests.helpers import RELATIVE, relative_rms

pytestmark = pytest.mark.slow


def draw(B, T, H, K, V, dtype):
    g = torch.Generator().manual_seed(T + K)
    q, k, v, do = (torch.randn(B, T, H, n, generator=g) for n in (K, K, V, V))
    return [x.to(dtype) for x in (elu_plus_one(q), elu_plus_one(k), v, do)]


def results(inputs, dtype):
    """o, the state and every gradient, with q, k, v, do and perhaps g taken to dtype first."""
    q, k, v, do, *g = (x.to(dtype).detach() for x in inputs)
    leaves = [x.requires_grad_() for x in (q, k, v, *g)]
    o, state = linear_attention(q, k, v, log_decay=g[0] if g else None, return_state=True)
    return o, state.S, state.z, *torch.autograd.grad(o, leaves, do)


@pytest.mark.parametrize("dtype", list(RELATIVE), ids=str)
@pytest.mark.parametrize(("T", "bound"), [(4096, 2e-6), (131_073, 1e-5)])
def test_errors_do_not_grow_with_the_text(T, bound, dtype):
    inputs = draw(1, T, 1, 16, 16, dtype)
    wanted = results(inputs, torch.float64)
    bound = max(bound, RELATIVE[dtype])
    for x, y in zip(results(inputs, dtype), wanted, strict=True):
        assert relative_rms(x, y) <= bound


@pytest.mark.parametrize("strongest", [0.0, 1e-3, 30.0])
def test_decay_neither_overflows_nor_loses_what_is_near(strongest):
    """With a decay that differs from token to token.

    A prefix sum in float32 would be off by 0.1 where it reaches a million: the gaps are not.
    """
    T = 131_072
    log_decay = -strongest * torch.rand(1, T, 1)
    log_decay[:, ::3] = 0.0  # so that near tokens weigh something
    inputs = [*draw(1, T, 1, 4, 4, torch.float32), log_decay]
    found, wanted = (results(inputs, dtype) for dtype in (torch.float32, torch.float64))
    for x, y, bound in zip(found, wanted, [2e-6] * 3 + [2e-5] * 4, strict=True):
        assert x.isfinite().all() and relative_rms(x, y) < bound


def test_a_long_decode_in_bfloat16_is_the_whole_text_at_once():
    """16384 ticks: a normaliser kept in bfloat16 would have stopped growing at 256."""
    T = 16_384
    q, k, v, _ = draw(1, T, 1, 16, 16, torch.bfloat16)
    whole, end = linear_attention(q, k, v, return_state=True)
    state = LinearState(torch.zeros(1, 1, 16, 16), torch.zeros(1, 1, 16))
    ticks = []
    with torch.no_grad():
        for i in range(T):
            o, state = linear_attention(
                q[:, i : i + 1], k[:, i : i + 1], v[:, i : i + 1],
                mode="recurrent", initial_state=state, return_state=True,
            )  # fmt: skip
            ticks.append(o)
    assert relative_rms(torch.cat(ticks, 1), whole.double()) <= 5e-3
    for x, y in zip(state, end, strict=True):
        assert relative_rms(x, y.double()) <= 1e-5
