"""Linear attention that fades: resets, gradients, operators; and nothing overflows."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lsa import LinearState, linear_attention
from lsa.attention import MODES
from lsa.attention.operator import attend_operator, gradient_operator
from tests.examples import examples
from tests.helpers import OPERATOR_RULES, recurrence, relative_rms

modes = pytest.mark.parametrize("mode", MODES)


def draw(B=2, T=7, H=2, K=3, V=4, constant=False, seed=0, strongest=2.0):
    g = torch.Generator().manual_seed(seed)

    def new(*shape):
        return torch.rand(*shape, generator=g, dtype=torch.float64)

    q, k, v = new(B, T, H, K), new(B, T, H, K), new(B, T, H, V) - 0.5
    log_decay = -strongest * (new(H) if constant else new(B, T, H))
    return q, k, v, log_decay, LinearState(new(B, H, K, V), new(B, H, K))


@modes
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@examples(30, deadline=None)
@given(
    size=st.sampled_from([-769.0, -1e6, -1e20, torch.finfo(torch.float32).min, -math.inf]),
    resets=st.lists(st.integers(0, 19), max_size=4), C=st.integers(1, 9), seed=st.integers(0, 9),
)  # fmt: skip
def test_a_decay_of_mask_size_resets(mode, dtype, size, resets, C, seed):
    """Values and gradients: what follows keeps its digits, what came before counts no more."""
    q, k, v, g, state = draw(T=20, seed=seed)
    g[:, resets] = size
    leaves = [x.to(dtype).requires_grad_() for x in (q, k, v, g, *state)]
    wide = [x.detach().double().requires_grad_() for x in leaves]
    options = {"mode": mode, "chunk_size": C, "return_state": True}
    o, after = linear_attention(
        *leaves[:3], log_decay=leaves[3], initial_state=LinearState(*leaves[4:]), **options
    )
    wanted = recurrence(*wide[:3], *wide[4:], wide[3])
    bound = 1e-6 if dtype == torch.float32 else 1e-14
    weights = [torch.randn_like(x) for x in wanted]
    losses = [
        sum((x * w).sum() for x, w in zip(found, weights, strict=True))
        for found in ((o, *after), wanted)
    ]
    found = [o, *after, *torch.autograd.grad(losses[0], leaves)]
    exact = [*wanted, *torch.autograd.grad(losses[1], wide)]
    for x, y in zip(found, exact, strict=True):
        assert relative_rms(x, y) < 10 * bound
    assert not found[6][:, resets].any()
    if resets:
        last = max(resets)
        with torch.no_grad():
            changed = [torch.cat((7 * x[:, :last], x[:, last:]), 1) for x in leaves[:4]]
            again = linear_attention(*changed[:3], log_decay=changed[3], **options)
        assert torch.equal(again[0][:, last:], o[:, last:])


@pytest.mark.parametrize("constant", [False, True])
def test_the_operators_with_decay_are_the_definition(constant):
    """What a GPU takes for chunked mode, with a body in plain torch in the place of kernels."""
    *inputs, state = draw(T=9, constant=constant)
    inputs[3] = inputs[3].view(1, 1, -1) if constant else inputs[3]
    leaves = [x.requires_grad_() for x in (*inputs[:3], *state, inputs[3])]
    options = ("chunked", 4, True, 0.5, 1e-6, "elu_plus_one", True)
    torch.library.opcheck(attend_operator, (*leaves, *options, False), test_utils=OPERATOR_RULES)
    found = attend_operator(*leaves, *options, False)[:3]
    wanted = linear_attention(
        *leaves[:3], chunk_size=4, scale=0.5, feature_map="elu_plus_one", return_state=True,
        initial_state=LinearState(*leaves[3:5]), log_decay=leaves[5].squeeze((0, 1)),
    )  # fmt: skip
    wanted = (wanted[0], *wanted[1])
    weights = [torch.randn_like(x) for x in found]
    loss, exact = (
        sum((x * w).sum() for x, w in zip(y, weights, strict=True)) for y in (found, wanted)
    )
    gradients, expected = (torch.autograd.grad(y, leaves, create_graph=True) for y in (loss, exact))
    twice, again = (
        torch.autograd.grad(sum(y.square().sum() for y in x), leaves) for x in (gradients, expected)
    )
    for one, other in zip((*gradients, *twice), (*expected, *again), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)
    with torch.no_grad():
        out = attend_operator(*leaves, *options, False)
        at_zero = (torch.zeros_like(x) for x in leaves[3:5])
        started = [
            attend_operator(*leaves[:3], *state, leaves[5], *options, False)[:3]
            for state in ((None, None), at_zero)
        ]
    torch.testing.assert_close(*started)
    given = weights[0], None, None
    call = (*leaves, *options, True, *out, *given)
    torch.library.opcheck(gradient_operator, call, test_utils=OPERATOR_RULES)


@pytest.mark.slow
def test_numbers_that_nobody_can_see_are_not_looked_at():
    """A compiler and torch.func trace the call, whose checks of values would break the trace."""
    q, g = torch.rand(1, 5, 2, 3), -torch.rand(1, 5, 2)

    def call(g, scale=0.5):
        return linear_attention(q, q, q, log_decay=g, scale=scale, eps=scale)

    compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
    for scale in (0.5, 0.7, 0.9):
        torch.testing.assert_close(compiled(g, scale), call(g, scale))
    both = torch.func.vmap(call)(torch.stack((g, 2 * g)))
    torch.testing.assert_close(both, torch.stack((call(g), call(2 * g))))
    assert torch.func.grad(lambda g: call(g).sum())(g).isfinite().all()
