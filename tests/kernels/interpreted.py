"""Run by test_interpreter.py in a process of its own, where Triton interprets every kernel."""

import pytest
import torch

from lsa import linear_attention
from lsa.attention import dispatch
from lsa.attention.call import Call
from lsa.attention.triton import attention, recurrent
from lsa.attention.triton.chunked import passes as chunked
from lsa.attention.triton.tuning.gpu import AMPERE, HOPPER, planned_for
from lsa.attention.triton.tuning.plan import Case, plan
from tests.helpers import RELATIVE, relative_rms
from tests.kernels import cases
from tests.kernels.cases import draw, errors

MODES = {"attention": attention, "recurrent": recurrent, "chunked": chunked}
KINDS = [  # normalize, feature map, initial state, gradient of the returned state
    (True, "elu_plus_one", True, True),
    (True, "identity", False, False),
    (False, "softplus", True, True),
    (True, "relu", True, False),
]


def check(mode, inputs, kind, **options):
    normalize, feature_map, first, last = kind
    cases.check(
        MODES[mode], inputs,
        normalize=normalize, feature_map=feature_map, first=first, last=last, **options,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [(torch.float32, kind) for kind in KINDS]
    + [(torch.bfloat16, KINDS[0]), (torch.bfloat16, KINDS[2]), (torch.float16, KINDS[0])],
    ids=str,
)
@pytest.mark.parametrize(("mode", "T"), [("attention", 70), ("recurrent", 6), ("chunked", 100)])
def test_results_and_gradients(mode, T, dtype, kind):
    check(mode, draw(1, T, 1, 24, 40, dtype, feature_map=kind[1]), kind)


@pytest.mark.parametrize(
    ("T", "cut", "gpu"),
    [(141, (2, 128), AMPERE), (76, (5, 16), HOPPER)],
    ids=["added, three passes", "scanned, one pass"],
)
def test_segments(T, cut, gpu):
    inputs = draw(1, T, 1, 16, 24, torch.bfloat16)
    with planned_for(gpu):
        for kind in (KINDS[0], KINDS[2]):
            check("chunked", inputs, (kind[0], "identity", *kind[2:]), cut=cut)


@pytest.mark.parametrize(
    ("K", "V", "feature_map"),
    [
        (200, 30, "identity"),
        (40, 200, "elu_plus_one"),
        (33, 100, "identity"),
    ],
)
def test_wide_and_odd_features(K, V, feature_map):
    """δ from a rounded o would take dq to 5e-3, φ(q) rounded once dk to 4e-3."""
    kind = (True, feature_map, False, False)
    check("chunked", draw(1, 65, 1, K, V, torch.bfloat16, feature_map=feature_map), kind)
    check("attention", draw(1, 17, 1, K, V, torch.float16), KINDS[1])


@pytest.mark.parametrize(
    ("K", "V", "T", "feature_map"),
    [(64, 64, 150, name) for name in ("identity", "elu_plus_one", "softplus")]
    + [(160, 160, 40, "softplus"), (33, 100, 33, "identity")],
)
def test_bfloat16_is_rounded_where_a_gpu_would(K, V, T, feature_map):
    """Every operand of a product, see tiles.enter: the normalised gradients are the closest.

    At 33 tokens a δ formed from rounded products would take dk to 4e-3.
    """
    inputs = draw(1, T, 1, K, V, torch.bfloat16, feature_map=feature_map)
    for mode in ("attention", "chunked"):
        check(mode, inputs, (True, feature_map, True, True))


@pytest.mark.parametrize(("K", "V", "T"), [(64, 64, 64), (24, 40, 64), (128, 128, 16)])
def test_mapped_gradients_of_the_sum_alone(K, V, T):
    """φ(k) rounded once would take dq to 3.5e-3 here, φ(q) dk to 3.4e-3."""
    inputs = draw(1, T, 1, K, V, torch.bfloat16, feature_map="elu_plus_one")
    for mode in ("attention", "chunked"):
        check(mode, inputs, (False, "elu_plus_one", False, False))


@pytest.mark.parametrize(
    ("D", "kind", "gpu"),
    [
        (128, (False, "identity", True, True), HOPPER),
        (128, (True, "identity", True, True), HOPPER),
        (64, (True, "elu_plus_one", True, True), HOPPER),
        (64, (False, "identity", True, True), AMPERE),
    ],
)
def test_dk_and_dv_in_one_pass_as_for_many_heads(D, kind, gpu):
    """A call of one head would take two."""
    inputs = draw(1, 40, 1, D, D, torch.bfloat16, feature_map=kind[1])
    case = Case(2048, 40, D, D, torch.bfloat16, kind[0], kind[1], False, gpu)
    many = plan(case, (1, 128))
    assert many.dkv
    with planned_for(gpu):
        check("chunked", inputs, kind, plan=many)


def test_the_gradient_of_q_is_close_far_from_the_beginning():
    """Past the first chunks S is all mean: rounded once, it would take dq to 3.7e-3."""
    inputs = draw(1, 1024, 1, 64, 64, torch.bfloat16, feature_map="elu_plus_one")
    check("chunked", inputs, (True, "elu_plus_one", True, True), cut=(1, 1024))


@pytest.mark.parametrize("mode", ["attention", "chunked"])
def test_the_gradient_of_q_is_close_while_tokens_are_few(mode):
    """A small difference of large terms: n from rounded features would put dq off by 1e-2."""
    for seed in range(8):
        inputs = draw(1, 5, 1, 16, 16, torch.bfloat16, feature_map="elu_plus_one", seed=seed)
        kind = {"normalize": True, "feature_map": "elu_plus_one", "first": False, "last": False}
        assert errors(MODES[mode], inputs, **kind)["dq"] <= RELATIVE[torch.bfloat16], seed


@pytest.mark.parametrize("mode", ["attention", "chunked"])
@pytest.mark.parametrize("faded", [False, True])
def test_gradients_that_few_tokens_make(mode, faded):
    """With φ(k) rounded once dv would be 3.5e-3 off, with a faded φ(q) the gradient of z 4e-3."""
    for seed in (3, 6):
        inputs = draw(1, 64, 1, 16, 16, torch.bfloat16, feature_map="elu_plus_one", seed=seed)
        check(mode, inputs, KINDS[0], decay=fading(64, 0.3) if faded else None)


def test_bfloat16_as_an_ampere_takes_it():
    inputs = draw(1, 70, 1, 96, 96, torch.bfloat16, feature_map="softplus")
    with planned_for(AMPERE):
        check("chunked", inputs, (True, "softplus", True, True))


@pytest.mark.parametrize("T", [1, 64])
def test_short_sequences(T):
    # With a state before it: a single normalised token alone has no gradient in q to compare.
    kind = (True, "identity", True, False)
    for mode in ("attention", "chunked"):
        check(mode, draw(2, T, 1, 16, 16, torch.float32), kind)
    check("recurrent", draw(2, min(T, 3), 1, 16, 16, torch.float32), kind)


@pytest.mark.parametrize(("mode", "T"), [("attention", 40), ("recurrent", 2), ("chunked", 20)])
def test_strided_inputs(mode, T):
    inputs = draw(2, T, 2, 20, 16, torch.float32, contiguous=False)
    assert not any(x.is_contiguous() for x in inputs)
    check(mode, inputs, KINDS[1])


def fading(T, strongest, constant=False, H=1):
    g = torch.Generator().manual_seed(5)
    if constant:
        return torch.full((1, 1, H), -strongest)
    return -strongest * torch.rand(1, T, H, generator=g)


@pytest.mark.parametrize(
    ("mode", "T", "K", "V", "dtype", "kind", "strongest"),
    [
        ("chunked", 70, 24, 40, torch.float32, KINDS[0], 0.3),
        ("chunked", 70, 24, 40, torch.float32, KINDS[2], 30.0),
        ("chunked", 1, 16, 16, torch.float32, (True, "identity", True, False), 0.3),
        ("chunked", 70, 24, 40, torch.float16, KINDS[0], 0.3),
        ("chunked", 150, 64, 64, torch.bfloat16, (True, "softplus", True, True), 0.5),
        ("chunked", 150, 64, 64, torch.bfloat16, KINDS[1], 0.05),
        # What rounding R leaves would take dg to 3.4e-3 at 160 features.
        ("chunked", 17, 160, 160, torch.bfloat16, KINDS[0], 0.3),
        ("chunked", 33, 33, 100, torch.bfloat16, (False, "identity", False, False), 0.01),
        ("attention", 70, 24, 40, torch.float32, KINDS[0], 0.3),
        ("attention", 70, 24, 40, torch.float32, KINDS[2], 30.0),
        ("attention", 1, 24, 40, torch.float32, (True, "identity", True, False), 0.3),
        ("attention", 133, 24, 40, torch.float16, KINDS[0], 0.05),
        ("attention", 140, 24, 40, torch.bfloat16, (True, "softplus", True, True), 0.05),
        ("attention", 70, 24, 40, torch.bfloat16, (False, "elu_plus_one", False, True), 0.3),
        # Past 64 tokens dg is formed from more than one state.
        ("recurrent", 65, 16, 16, torch.float32, KINDS[0], 0.05),
        ("recurrent", 5, 24, 40, torch.float32, KINDS[2], 3.0),
        ("recurrent", 1, 24, 40, torch.float32, (True, "identity", True, False), 0.3),
        ("recurrent", 6, 24, 40, torch.bfloat16, (False, "identity", False, True), 0.3),
    ],
)
def test_decay_by_token(mode, T, K, V, dtype, kind, strongest):
    inputs = draw(1, T, 1, K, V, dtype, feature_map=kind[1])
    check(mode, inputs, kind, decay=fading(T, strongest))


@pytest.mark.parametrize(
    ("mode", "T", "strongest"),
    [("attention", 20, 0.171875), ("recurrent", 3, 0.171875), ("chunked", 20, 0.171875),
     ("chunked", 20, 0.0)],
)  # fmt: skip
def test_one_decay_a_head(mode, T, strongest):
    inputs = draw(2, T, 2, 16, 24, torch.bfloat16)
    check(mode, inputs, KINDS[1], decay=fading(T, strongest, constant=True, H=2))


@pytest.mark.parametrize("cut", [(2, 128), (5, 64)], ids=["added", "scanned"])
def test_segments_fade(cut):
    T = cut[0] * cut[1] - 20
    inputs = draw(1, T, 1, 16, 24, torch.bfloat16, feature_map="elu_plus_one")
    check("chunked", inputs, KINDS[0], cut=cut, decay=fading(T, 0.05))


@pytest.mark.parametrize("mode", MODES)
def test_strong_decay_overflows_nowhere(mode):
    """Nothing is left of the token before: o is v, and the gradient of g is nothing."""
    q, k, v, do = draw(1, 5 if mode == "recurrent" else 70, 1, 16, 16, torch.float32)
    problem = Call(q, k, v, g=torch.full((1, 1, 1), -1e4), scale=0.25, with_dg=True)
    out = MODES[mode].forward(problem)
    grads = MODES[mode].backward(problem, out, do, None, None)
    torch.testing.assert_close(out.o, v)
    torch.testing.assert_close(grads.dv, do)
    assert grads.dg.abs().max() == 0
    assert all(x.isfinite().all() for x in (out.S_T, out.z_T, grads.dq, grads.dk))


@pytest.mark.parametrize(
    ("mode", "T", "dtype"),
    [
        ("attention", 140, torch.bfloat16),
        ("attention", 70, torch.float32),
        ("recurrent", 7, torch.float32),
        ("chunked", 140, torch.bfloat16),
        ("chunked", 100, torch.float16),
        ("chunked", 140, torch.float32),
    ],
)
def test_a_decay_of_mask_size_resets(mode, T, dtype, monkeypatch):
    """Every other token here, at both ends and where chunks meet: what follows keeps its digits."""
    inputs = [*draw(1, T, 1, 16, 24, dtype, feature_map="elu_plus_one")[:3], fading(T, 0.1)]
    resets = torch.tensor([0, 1, 5, 63, 64, 65, 66, 90, T - 1])
    resets = torch.cat((resets, torch.arange(20, 40, 2)))
    resets = resets[resets < T]
    sizes = torch.tensor([-113.0, -1e6, -1e20, -torch.inf])
    inputs[3][:, resets] = sizes.repeat(len(resets))[: len(resets), None]
    weights = torch.randn(1, T, 1, 24, generator=torch.Generator().manual_seed(0))

    def results(dtype):
        leaves = [x.to(dtype).requires_grad_() for x in inputs]
        o, (S, z) = linear_attention(
            *leaves[:3], mode=mode, log_decay=leaves[3], feature_map="elu_plus_one",
            return_state=True,
        )  # fmt: skip
        loss = (o * weights).sum() + S.sum() + z.square().sum()
        return [o, S, z, *torch.autograd.grad(loss, leaves)]

    exact = results(torch.float64)
    monkeypatch.setattr(dispatch, "uses_kernels", lambda q, v, scale: True)
    found = results(dtype)
    errors = [relative_rms(x, y) for x, y in zip(found, exact, strict=True)]
    assert max(errors) <= RELATIVE[dtype], errors
    assert not found[-1][:, resets].any()


@pytest.mark.parametrize("constant", [False, True])
def test_the_public_function_with_decay(constant, monkeypatch):
    """As on a GPU: the operators, their gradients, and, of one a token, the gradients of those."""
    inputs = [*draw(1, 70, 2, 16, 16, torch.float32)[:3], fading(70, 0.2, H=2)]
    inputs[3] = inputs[3][0, 0] if constant else inputs[3]
    # Where one decay's gradient is a sum that cancels to a fortieth, so is its precision: one draw.
    weights = torch.randn(1, 70, 2, 16, generator=torch.Generator().manual_seed(0))

    def penalty(dtype):
        leaves = [x.to(dtype).requires_grad_() for x in inputs]
        o = linear_attention(*leaves[:3], log_decay=leaves[3])
        first = torch.autograd.grad((o * weights).sum(), leaves, create_graph=not constant)
        if constant:
            return [o, *first]
        return [o, *first, *torch.autograd.grad(sum(x.square().sum() for x in first), leaves)]

    exact = penalty(torch.float64)
    monkeypatch.setattr(dispatch, "uses_kernels", lambda q, v, scale: True)
    for found, wanted in zip(penalty(torch.float32), exact, strict=True):
        assert relative_rms(found, wanted) <= 1e-5


def test_large_inputs_stay_finite():
    for dtype in RELATIVE:
        q, k, v, do = (x.clamp(-1, 1) * 100 for x in draw(1, 20, 1, 16, 16, dtype))
        for mode in ("attention", "chunked"):
            check(mode, (q, k, v, do), KINDS[1])


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize(
    ("mode", "T", "lost", "reached"),
    [
        ("attention", 150, 70, {"q": 70, "k": 70, "v": 64, "k, fading": 70}),
        ("recurrent", 12, 7, {"q": 7, "k": 7, "v": 7, "k, fading": 7}),
        ("chunked", 150, 70, {"q": 70, "k": 70, "v": 64, "k, fading": 64}),
    ],
)
def test_what_is_no_number_reaches_what_the_docstring_says(mode, T, lost, reached, normalize):
    """The 71st of 150 tokens is in a tile, and in a chunk, that begins at the 65th."""
    for where, first in reached.items():
        qkv = dict(zip("qkv", draw(1, T, 1, 16, 16, torch.bfloat16)[:3], strict=True))
        qkv[where[0]][:, lost] = float("nan")
        g = fading(T, 0.2) if "fading" in where else None
        problem = Call(*qkv.values(), g=g, scale=0.25, normalize=normalize)
        o = MODES[mode].forward(problem).o
        found = o.isnan().any(-1).flatten().nonzero().flatten()
        assert found.tolist() == list(range(first, lost + 1 if where == "q" else T)), where
