"""Linear attention that fades: three modes, one function; and nothing overflows."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lsa import LinearState, linear_attention
from lsa.attention import MODES
from lsa.attention.operator import attend_operator, gradient
from tests.helpers import relative_rms

# All but the slowest of opcheck's, which has a compiler go through the body in plain torch.
RULES = ("test_schema", "test_autograd_registration", "test_faketensor")
modes = pytest.mark.parametrize("mode", MODES)


def draw(B=2, T=7, H=2, K=3, V=4, constant=False, seed=0, strongest=2.0):
    g = torch.Generator().manual_seed(seed)

    def new(*shape):
        return torch.rand(*shape, generator=g, dtype=torch.float64)

    q, k, v = new(B, T, H, K), new(B, T, H, K), new(B, T, H, V) - 0.5
    log_decay = -strongest * (new(H) if constant else new(B, T, H))
    return q, k, v, log_decay, LinearState(new(B, H, K, V), new(B, H, K))


def by_loops(q, k, v, g, state, normalize, eps=1e-6):
    """The recurrence of the docstring, in loops: `tests.helpers.definition` asks the reference."""
    B, T, H, K = q.shape
    o = torch.zeros(B, T, H, v.shape[-1], dtype=q.dtype)
    S, z = state.S.clone(), state.z.clone()
    g = g.expand(B, T, H)
    for b in range(B):
        for h in range(H):
            for t in range(T):
                S[b, h] = g[b, t, h].exp() * S[b, h] + torch.outer(k[b, t, h], v[b, t, h])
                z[b, h] = g[b, t, h].exp() * z[b, h] + k[b, t, h]
                o[b, t, h] = q[b, t, h] @ S[b, h] * K**-0.5
                if normalize:
                    o[b, t, h] /= q[b, t, h] @ z[b, h] * K**-0.5 + eps
    return o, S, z


@modes
@given(
    T=st.integers(0, 20), C=st.integers(1, 9), constant=st.booleans(), normalize=st.booleans(),
    seed=st.integers(0, 9),
)  # fmt: skip
def test_every_mode_is_the_definition(mode, T, C, constant, normalize, seed):
    q, k, v, g, state = draw(T=T, constant=constant, seed=seed)
    o, after = linear_attention(
        q, k, v, mode=mode, chunk_size=C, normalize=normalize, initial_state=state,
        return_state=True, log_decay=g,
    )  # fmt: skip
    wanted = by_loops(q, k, v, g, state, normalize)
    for found, expected in zip((o, *after), wanted, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


@modes
@given(cuts=st.lists(st.integers(0, 8), min_size=1, max_size=4), constant=st.booleans())
def test_a_text_in_pieces_is_the_whole(mode, cuts, constant):
    q, k, v, g, state = draw(T=sum(cuts), constant=constant)
    options = {"mode": mode, "chunk_size": 3, "return_state": True}
    whole, last = linear_attention(q, k, v, initial_state=state, log_decay=g, **options)
    pieces = []
    for parts in zip(*(x.split(cuts, 1) for x in (q, k, v)), strict=True):
        at = sum(piece.shape[1] for piece in pieces)
        fading = g if constant else g[:, at : at + parts[0].shape[1]]
        o, state = linear_attention(*parts, initial_state=state, log_decay=fading, **options)
        pieces.append(o)
    torch.testing.assert_close(torch.cat(pieces, 1), whole, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(tuple(state), tuple(last), rtol=1e-10, atol=1e-10)


@modes
@pytest.mark.parametrize("constant", [False, True])
def test_no_decay_is_decay_zero(mode, constant):
    q, k, v, g, state = draw(T=11, constant=constant)
    options = {"mode": mode, "chunk_size": 4, "initial_state": state, "return_state": True}
    fading, plain = (
        linear_attention(q, k, v, log_decay=decay, **options) for decay in (0 * g, None)
    )
    torch.testing.assert_close(fading, plain, rtol=1e-10, atol=1e-10)


@modes
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("feature_map", ["elu_plus_one", "identity"])
def test_gradients_and_their_gradients(mode, constant, feature_map):
    inputs = draw(B=1, T=5, K=2, V=2, constant=constant)
    leaves = [x.requires_grad_() for x in (*inputs[:4], *inputs[4])]

    def call(q, k, v, g, S, z):
        o, (S, z) = linear_attention(
            q, k, v, mode=mode, chunk_size=2, log_decay=g, feature_map=feature_map,
            initial_state=LinearState(S, z), return_state=True,
        )  # fmt: skip
        return o, S, z

    assert torch.autograd.gradcheck(call, leaves, fast_mode=True)
    assert torch.autograd.gradgradcheck(call, leaves, fast_mode=True)


@pytest.mark.parametrize("constant", [False, True])
def test_the_operators_with_decay_are_the_definition(constant):
    """What a GPU takes for chunked mode, with a body in plain torch in the place of kernels."""
    *inputs, state = draw(T=9, constant=constant)
    inputs[3] = inputs[3].view(1, 1, -1) if constant else inputs[3]
    leaves = [x.requires_grad_() for x in (*inputs[:3], *state, inputs[3])]
    options = ("chunked", 4, True, 0.5, 1e-6, "elu_plus_one", True)
    torch.library.opcheck(attend_operator, (*leaves, *options, False), test_utils=RULES)
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
    given = weights[0], None, None
    torch.library.opcheck(gradient, (*leaves, *out, *given, *options, True), test_utils=RULES)


@pytest.mark.slow
@pytest.mark.parametrize("strongest", [0.0, 1e-3, 30.0])
def test_a_long_text_neither_overflows_nor_loses_what_is_near(strongest):
    """float32 against float64 after 131,072 tokens, with a decay that differs from token to token.

    A prefix sum in float32 would be off by 0.1 where it reaches a million: the gaps are not.
    """
    T = 131_072
    g = torch.Generator().manual_seed(0)
    q, k = (torch.rand(1, T, 1, 4, generator=g) for _ in range(2))
    v = torch.randn(1, T, 1, 4, generator=g)
    log_decay = -strongest * torch.rand(1, T, 1, generator=g)
    log_decay[:, ::3] = 0.0  # so that near tokens weigh something
    inputs = [x.requires_grad_() for x in (q, k, v, log_decay)]
    found = linear_attention(*inputs[:3], log_decay=inputs[3])
    wide = [x.detach().double().requires_grad_() for x in inputs]
    wanted = linear_attention(*wide[:3], log_decay=wide[3])
    assert relative_rms(found, wanted) < 2e-6
    weights = torch.randn(found.shape, generator=g)
    gradients = torch.autograd.grad((found * weights).sum(), inputs)
    exact = torch.autograd.grad((wanted * weights).sum(), wide)
    for dx, expected in zip(gradients, exact, strict=True):
        assert dx.isfinite().all()
        assert relative_rms(dx, expected) < 2e-5


@pytest.mark.parametrize(
    ("log_decay", "message"),
    [
        (torch.zeros(3), r"log_decay: expected \[2\] or \[2, 7, 2\], got \[3\]"),
        (
            torch.zeros(2, dtype=torch.long),
            "log_decay: expected a floating tensor, got torch.int64",
        ),
        (-0.1, "log_decay: expected a floating tensor, got float"),
        (torch.zeros(2, device="meta"), "log_decay: expected q's device cpu, got meta"),
    ],
)
def test_a_decay_that_does_not_fit_is_named(log_decay, message):
    q, k, v, _, _ = draw()
    with pytest.raises(ValueError, match=message):
        linear_attention(q, k, v, log_decay=log_decay)


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
