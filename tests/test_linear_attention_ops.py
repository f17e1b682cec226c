"""The operators behind linear_attention on the CPU: gradients, compilation, extremes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import forward_ad

from lsa import LinearState, linear_attention
from lsa.attention import differentiable
from lsa.attention.api import MODES
from lsa.attention.call import Call
from lsa.attention.feature_maps import FEATURE_MAPS
from lsa.attention.operator import attend, attend_operator, gradient_operator
from tests.examples import examples
from tests.helpers import OPERATOR_RULES, RELATIVE, relative_rms


def draw(B, T, H, K, V, dtype=torch.float64, *, strided=False, seed=0):
    g = torch.Generator().manual_seed(seed)

    def new(width):
        if not strided:
            return torch.randn(B, T, H, width, generator=g)
        return torch.randn(B, H, 3, T, 2 * width, generator=g)[:, :, 1].transpose(1, 2)[..., ::2]

    return [new(width).to(dtype) for width in (K, K, V, V)]


def states(B, H, K, V, make, dtype=torch.float64, *, seed=0):
    g = torch.Generator().manual_seed(seed)
    return (
        make(B, H, K, V, generator=g, dtype=dtype),
        make(B, H, K, generator=g, dtype=dtype),
    )


def everything(mode, inputs, S, z, dS, dz, **options):
    """o, the state after it, and the gradients of q, k, v, S and z."""
    q, k, v, do = inputs
    leaves = [x.detach().requires_grad_() for x in (q, k, v, S, z)]
    o, after = linear_attention(
        *leaves[:3], mode=mode, initial_state=LinearState(*leaves[3:]), return_state=True, **options
    )
    loss = (o * do).sum().to(dS.dtype) + (after.S * dS).sum() + (after.z * dz).sum()
    return [o, *after, *torch.autograd.grad(loss, leaves)]


problems = st.fixed_dictionaries(
    {
        "T": st.sampled_from([0, 1, 2, 31, 63, 64, 65, 129, 500]),
        "K": st.integers(4, 33),  # with K = 1, a normalised q has no gradient to compare
        "V": st.integers(1, 33),
        "chunk_size": st.sampled_from([None, 1, 5, 64, 100]),
        "normalize": st.booleans(),
        "feature_map": st.sampled_from(["elu_plus_one", "softplus"]),
        "strided": st.booleans(),
        "seed": st.integers(0, 2**31 - 1),
    }
)


@examples(25)
@given(problems, st.sampled_from([torch.float32, torch.float16, torch.bfloat16]))
def test_modes_and_gradients_against_float64(p, dtype):
    inputs = draw(2, p["T"], 2, p["K"], p["V"], dtype, strided=p["strided"], seed=p["seed"])
    options = {name: p[name] for name in ("chunk_size", "normalize", "feature_map")}
    (S, z), (dS, dz) = (
        states(2, 2, p["K"], p["V"], make, seed=p["seed"]) for make in (torch.rand, torch.randn)
    )
    wanted = everything("attention", [x.double() for x in inputs], S, z, dS, dz, **options)
    for mode in MODES:
        if mode == "recurrent" and p["T"] > 65:
            continue
        found = everything(mode, inputs, *(x.float() for x in (S, z, dS, dz)), **options)
        for x, y in zip(found, wanted, strict=True):
            assert relative_rms(x, y) <= RELATIVE[dtype], (mode, [tuple(x.shape)])


@pytest.mark.slow
@pytest.mark.parametrize("decay", [None, (2,), (1, 5, 2)], ids=str)
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_first_and_second_derivatives(mode, normalize, decay):
    """Of so few numbers that each can be moved: three chunks, of which one is not whole."""
    q, k, v, _ = draw(1, 5, 2, 2, 1)
    S, z = states(1, 2, 2, 1, torch.rand)
    g = [-2 * torch.rand(decay, dtype=torch.float64)] if decay else []
    leaves = [x.requires_grad_() for x in (q, k, v, S, z, *g)]

    def call(q, k, v, S, z, g=None):
        o, state = linear_attention(
            q, k, v, mode=mode, chunk_size=2, normalize=normalize, feature_map="elu_plus_one",
            initial_state=LinearState(S, z), return_state=True, log_decay=g,
        )  # fmt: skip
        return o, *state

    fast = {"fast_mode": decay is not None}  # along one direction
    assert torch.autograd.gradcheck(call, leaves, **fast)
    assert torch.autograd.gradgradcheck(call, leaves, **fast)


@pytest.mark.parametrize("mode", MODES)
def test_a_third_derivative_is_no_zero(mode):
    """A graph is kept where one is asked for: the gradients given need none of their own."""
    q, k, v, _ = draw(1, 4, 1, 3, 2)

    def third(attend):
        x = k.clone().requires_grad_()
        y = attend(Call(q, x, v, mode=mode, chunk_size=2, feature_map="elu_plus_one"))[0]
        for _ in range(3):
            (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return y

    torch.testing.assert_close(third(attend), third(differentiable.attend))


@pytest.mark.parametrize("name", list(FEATURE_MAPS))
def test_a_feature_map_inside_is_the_map_outside(name):
    q, k, v, do = draw(1, 70, 2, 4, 3)
    phi = FEATURE_MAPS[name]
    results = []
    for inside in (True, False):
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        a, b = leaves[:2] if inside else (phi(x) for x in leaves[:2])
        o = linear_attention(a, b, leaves[2], normalize=False, feature_map=name if inside else None)
        results.append((o, *torch.autograd.grad(o, leaves, do)))
    for x, y in zip(*results, strict=True):
        torch.testing.assert_close(x, y)


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_operators_keep_torchs_rules(mode):
    q, k, v, do = draw(2, 9, 2, 4, 3, torch.float32)
    S, z = states(2, 2, 4, 3, torch.rand, torch.float32)
    options = (mode, 4, True, 0.5, 1e-6, "elu_plus_one", True, False)
    leaves = [x.requires_grad_() for x in (q, k, v, S, z)]
    call = (*leaves, None, *options)
    plain = (*leaves[:3], None, None, None, mode, 0, False, 0.5, 0.0, "relu", False, False)
    with torch.no_grad():
        out = attend_operator(*call)
    # The last rule takes longest and is the same for every mode, which `test_compiles_whole` asks.
    slowest = ("test_aot_dispatch_dynamic",) if mode == "chunked" else ()
    for one, arguments in (
        (attend_operator, call),
        (attend_operator, plain),
        (gradient_operator, (*call, *out, do, None, None)),
    ):
        torch.library.opcheck(one, arguments, test_utils=(*OPERATOR_RULES, *slowest))


# torch's own rules for forward mode are scripted, which torch itself has deprecated.
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_torchs_function_transforms_and_forward_mode(mode, normalize):
    q, k, v, _ = draw(1, 5, 1, 3, 2)
    tangents = draw(1, 5, 1, 3, 2, seed=1)[:3]

    def call(q, k, v):
        return linear_attention(
            q, k, v, mode=mode, chunk_size=2, normalize=normalize, feature_map="elu_plus_one"
        )

    leaves = [x.requires_grad_() for x in (q, k, v)]
    step = 1e-6
    ahead, behind = (
        call(*(x.detach() + s * t for x, t in zip(leaves, tangents, strict=True)))
        for s in (step, -step)
    )
    wanted = (ahead - behind) / (2 * step)
    o, found = torch.func.jvp(call, tuple(leaves), tuple(tangents))
    torch.testing.assert_close(o, call(*leaves))
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-7)
    with forward_ad.dual_level():
        duals = (forward_ad.make_dual(*pair) for pair in zip(leaves, tangents, strict=True))
        torch.testing.assert_close(forward_ad.unpack_dual(call(*duals)).tangent, found)

    def loss(*leaves):
        return call(*leaves).square().sum()

    exact = torch.autograd.grad(loss(*leaves), leaves)
    for x, y in zip(torch.func.grad(loss, argnums=(0, 1, 2))(*leaves), exact, strict=True):
        torch.testing.assert_close(x, y)
    jacobian = torch.func.jacrev(call, argnums=1)(*leaves)
    _, along = torch.func.jvp(lambda k: call(q, k, v), (k,), (tangents[1],))
    torch.testing.assert_close((jacobian * tangents[1]).sum((-4, -3, -2, -1)), along)
    hessian = torch.func.hessian(loss)(*leaves)
    slope = torch.autograd.grad(loss(*leaves), q, create_graph=True)[0]
    (row,) = torch.autograd.grad(slope[0, 1, 0, 2], q)
    torch.testing.assert_close(hessian[0, 1, 0, 2], row)


# The first of 12 tokens that a NaN at the seventh reaches, in chunks of four.
REACHED = {
    "attention": {"q": 6, "k": 6, "v": 0, "k, fading": 6},
    "recurrent": {"q": 6, "k": 6, "v": 6, "k, fading": 6},
    "chunked": {"q": 6, "k": 6, "v": 4, "k, fading": 4},
}


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_what_is_no_number_reaches_what_the_docstring_says(mode, normalize):
    """All that comes after it, but from q; and what its mode multiplies by zero."""
    for where, first in REACHED[mode].items():
        qkv = dict(zip("qkv", draw(1, 12, 1, 3, 2)[:3], strict=True))
        qkv[where[0]][:, 6] = float("nan")
        options = {"log_decay": torch.full((1, 12, 1), -0.5)} if "fading" in where else {}
        o = linear_attention(
            **qkv, mode=mode, chunk_size=4, normalize=normalize, feature_map="elu_plus_one",
            **options,
        )  # fmt: skip
        lost = o.isnan().any(-1).flatten().nonzero().flatten()
        assert lost.tolist() == list(range(first, 7 if where == "q" else 12)), where


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_compiles_whole(mode):
    q, k, v, do = draw(1, 70, 2, 8, 8, torch.float32)
    leaves = [x.requires_grad_() for x in (q, k, v)]

    def call(q, k, v):
        return linear_attention(q, k, v, mode=mode, feature_map="elu_plus_one")

    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    found, wanted = compiled(*leaves), call(*leaves)
    assert torch.equal(found, wanted)
    for x, y in zip(
        torch.autograd.grad(found, leaves, do), torch.autograd.grad(wanted, leaves, do), strict=True
    ):
        assert torch.equal(x, y)


def test_a_compiler_meets_no_operator_inside_a_function_transform(monkeypatch):
    """It traces what torch.func would run, and torch.func.grad knows no operator."""
    q, k, v, _ = draw(1, 5, 1, 3, 2)
    slope = torch.func.grad(lambda q: linear_attention(q, k, v, normalize=False).square().sum())
    wanted = slope(q)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    torch.testing.assert_close(slope(q), wanted)


@pytest.mark.parametrize("dtype", list(RELATIVE), ids=str)
@pytest.mark.parametrize("feature_map", ["elu_plus_one", "relu", "softplus"])
def test_inputs_up_to_100_stay_finite(dtype, feature_map):
    inputs = [x.clamp(-1, 1) * 100 for x in draw(1, 200, 2, 64, 64, dtype)]
    for mode in ("attention", "chunked"):
        leaves = [x.detach().requires_grad_() for x in inputs[:3]]
        o = linear_attention(*leaves, mode=mode, feature_map=feature_map)
        for x in (o, *torch.autograd.grad(o, leaves, inputs[3])):
            assert torch.isfinite(x).all()


def test_autocast_changes_nothing_inside():
    q, k, v, _ = draw(1, 100, 2, 16, 16, torch.float32)
    plain = linear_attention(q, k, v, feature_map="elu_plus_one")
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(linear_attention(q, k, v, feature_map="elu_plus_one"), plain)
        half = linear_attention(*(x.bfloat16() for x in (q, k, v)), feature_map="elu_plus_one")
        mixed = linear_attention(q, k, v.bfloat16(), feature_map="elu_plus_one")
    assert half.dtype == torch.bfloat16
    assert torch.equal(mixed, half)


def test_backward_keeps_no_states():
    """Beside its inputs, the graph holds o, the state after it and the normaliser."""
    q, k, v, _ = draw(1, 4096, 1, 64, 64, torch.float32)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        linear_attention(*leaves)
    assert sum(x.numel() for x in kept) <= 4 * q.numel() + 64 * 65 + 4096


def test_a_second_derivative_of_what_no_other_input_needs():
    """For k alone the plain sum's first derivative is constant."""
    q, k, v = torch.rand(1, 5, 2, 3), torch.rand(1, 5, 2, 3), torch.randn(1, 5, 2, 4)
    o = linear_attention(q, k.requires_grad_(), v, normalize=False)
    (dk,) = torch.autograd.grad(o.sum(), k, create_graph=True)
    (again,) = torch.autograd.grad(dk.square().sum(), k, allow_unused=True)
    assert again is None or not again.any()
