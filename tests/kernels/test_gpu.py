"""The kernels on a GPU, through the public function: skipped where there is none."""

import pytest
import torch

from lsa import LinearState, linear_attention
from tests.helpers import RELATIVE, definition, relative_rms
from tests.kernels import scan_cases
from tests.kernels.cases import check, draw, within

if not torch.cuda.is_available():
    pytest.skip("needs a GPU", allow_module_level=True)

from lsa.attention.call import Call
from lsa.attention.triton import attention, recurrent
from lsa.attention.triton.chunked import passes as chunked
from lsa.attention.triton.tuning.plan import plan_of
from lsa.scans import selective_scan
from lsa.scans.kernels import selective

# The poison comes with torch's determinism, which warns about operators of others.
pytestmark = pytest.mark.filterwarnings("ignore")
MODES = {"attention": attention, "recurrent": recurrent, "chunked": chunked}
GPU = "cuda"


@pytest.fixture(autouse=True)
def _poison():
    """What no kernel writes is NaN, so that it cannot look right by chance."""
    torch.utils.deterministic.fill_uninitialized_memory = True
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("last", [False, True], ids=["o", "o+state"])
@pytest.mark.parametrize(
    ("normalize", "feature_map"),
    [(False, "identity"), (True, "identity"), (True, "elu_plus_one"), (True, "softplus")],
)
@pytest.mark.parametrize("dtype", list(RELATIVE), ids=str)
@pytest.mark.parametrize(
    ("mode", "B", "T", "H", "K", "V"),
    [
        ("chunked", 2, 1000, 4, 64, 64),
        ("chunked", 1, 2049, 3, 128, 128),
        ("chunked", 1, 500, 2, 256, 256),
        ("chunked", 2, 63, 2, 48, 100),
        ("chunked", 1, 4096, 2, 64, 64),
        ("attention", 2, 500, 2, 64, 64),
        ("attention", 1, 300, 2, 200, 100),
        ("recurrent", 2, 63, 2, 64, 64),
        ("recurrent", 1, 100, 2, 200, 100),
    ],
)
def test_results_and_gradients(mode, B, T, H, K, V, dtype, normalize, feature_map, last):
    inputs = draw(B, T, H, K, V, dtype, device=GPU, feature_map=feature_map)
    check(MODES[mode], inputs, normalize=normalize, feature_map=feature_map, first=last, last=last)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("cut", [(1, 2048), (2, 1024), (8, 256)])
def test_segments(cut, normalize):
    inputs = draw(1, 2000, 3, 64, 64, torch.bfloat16, device=GPU)
    options = {"normalize": normalize, "feature_map": "identity", "cut": cut}
    check(chunked, inputs, **options, first=True, last=True)


@pytest.mark.parametrize("mode", list(MODES))
@pytest.mark.parametrize("constant", [False, True], ids=["by token", "one a head"])
@pytest.mark.parametrize("dtype", list(RELATIVE), ids=str)
@pytest.mark.parametrize(
    ("B", "T", "H", "D", "normalize", "feature_map"),
    [
        (2, 1000, 4, 64, True, "identity"),
        (1, 2049, 3, 128, True, "elu_plus_one"),
        (1, 500, 2, 256, False, "identity"),
        (1, 17, 2, 40, True, "softplus"),
    ],
)
def test_decay(B, T, H, D, normalize, feature_map, dtype, constant, mode):
    inputs = draw(B, T, H, D, D, dtype, device=GPU, feature_map=feature_map)
    g = torch.Generator(GPU).manual_seed(3)
    shape = (1, 1, H) if constant else (B, T, H)
    decay = -0.3 * torch.rand(shape, generator=g, device=GPU)
    options = {"normalize": normalize, "feature_map": feature_map, "decay": decay}
    check(MODES[mode], inputs, **options, first=True, last=True)


@pytest.mark.parametrize("T", [1, 2, 64])
@pytest.mark.parametrize("mode", list(MODES))
def test_short_sequences_after_a_state(mode, T):
    inputs = draw(2, T, 2, 16, 16, torch.float32, device=GPU)
    check(MODES[mode], inputs, normalize=True, feature_map="identity", first=True, last=True)


@pytest.mark.parametrize("mode", list(MODES))
def test_strided_inputs(mode):
    inputs = draw(2, 200, 3, 40, 24, torch.bfloat16, device=GPU, contiguous=False)
    check(MODES[mode], inputs, normalize=True, feature_map="identity", first=False, last=False)


@pytest.mark.parametrize("mode", list(MODES))
def test_remembered_launches(mode):
    """Launched again, in turns with other shapes, and from addresses off by a number."""

    def results(T, offset):
        inputs = draw(1, T, 2, 64, 64, torch.bfloat16, device=GPU)
        leaves = []
        for x in inputs[:3]:
            room = torch.zeros(x.numel() + offset, dtype=x.dtype, device=GPU)[offset:].view(x.shape)
            leaves.append(room.copy_(x).requires_grad_())
        o = linear_attention(*leaves, mode=mode)
        return [o.detach(), *torch.autograd.grad(o, leaves, inputs[3])]

    cases = [(100, 0), (100, 1), (128, 0), (1, 0)]
    first = [results(*case) for case in cases]
    for _ in range(2):
        for case, wanted in zip(cases, first, strict=True):
            assert all(map(torch.equal, results(*case), wanted)), case
    for x, y in zip(first[0], first[1], strict=True):
        assert relative_rms(x, y) <= RELATIVE[torch.bfloat16]


def test_more_heads_than_a_grid_axis():
    q, k, v, _ = draw(70000, 3, 1, 16, 16, torch.bfloat16, device=GPU)
    for mode in MODES:
        o = linear_attention(q, k, v, mode=mode)
        zeros = torch.zeros(70000, 1, 16, 16, device=GPU, dtype=torch.float64)
        wanted, _, _ = definition(
            *(x.double() for x in (q, k, v)), zeros, zeros[..., 0],
            scale=0.25, eps=1e-6, normalize=True, feature_map="identity",
        )  # fmt: skip
        assert relative_rms(o, wanted) <= RELATIVE[torch.bfloat16]


def test_long_sequences_and_addresses_past_int32():
    """2^31 elements and more a tensor: the last head is compared with itself computed alone."""
    shape, kind = (1, 131073, 260, 64), {"dtype": torch.bfloat16, "device": GPU}
    q, k, v = torch.rand(shape, **kind), torch.rand(shape, **kind), torch.randn(shape, **kind)
    o = linear_attention(q, k, v)
    alone = linear_attention(*(x[:, :, -1:].contiguous() for x in (q, k, v)))
    assert relative_rms(o[:, :, -1:], alone.double()) <= RELATIVE[torch.bfloat16]
    assert torch.isfinite(o).all()


def test_compiled_captured_and_autocast():
    q, k, v, do = draw(2, 1000, 4, 64, 64, torch.bfloat16, device=GPU)

    def call(q, k, v):
        return linear_attention(q, k, v, feature_map="elu_plus_one")

    wanted = call(q, k, v)
    assert torch.equal(torch.compile(call, fullgraph=True)(q, k, v), wanted)
    with torch.autocast(GPU, torch.bfloat16):
        assert call(q, k, v).dtype == torch.bfloat16
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]

    def step():
        return torch.autograd.grad(call(*leaves), leaves, do)

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        expected = step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    graph.replay()
    torch.cuda.synchronize()
    for found, exact in zip(captured, expected, strict=True):
        assert torch.equal(found, exact)


@pytest.mark.parametrize("normalize", [False, True])
def test_compiled_once_for_lengths_that_change(normalize):
    @torch.compile(fullgraph=True, dynamic=True)
    def call(q, k, v):
        return linear_attention(q, k, v, normalize=normalize)

    for T in (100, 1000, 3001):
        *qkv, do = draw(2, T, 3, 64, 64, torch.bfloat16, device=GPU)
        leaves = [x.requires_grad_() for x in qkv]
        found = torch.autograd.grad(call(*leaves), leaves, do)
        wanted = torch.autograd.grad(linear_attention(*leaves, normalize=normalize), leaves, do)
        for one, other in zip(found, wanted, strict=True):
            assert torch.equal(one, other)


def test_the_first_tokens_of_a_long_text_have_their_gradient():
    """S before them is what is left of S at the end when all that came later is taken away."""
    q, k, v, do = draw(1, 8192, 132, 64, 64, torch.bfloat16, device=GPU)
    v = v + 1
    assert plan_of(Call(q, k, v, normalize=False)).G == 1
    leaves = [x.requires_grad_() for x in (q, k, v)]
    dq = torch.autograd.grad(linear_attention(*leaves, normalize=False), q, do)[0][:, :64]
    first = [x[:, :64].detach().double().requires_grad_() for x in (q, k, v)]
    o = linear_attention(*first, normalize=False)
    exact = torch.autograd.grad(o, first[0], do[:, :64].double())[0]
    assert relative_rms(dq, exact) <= RELATIVE[torch.bfloat16]


def test_double_backward_and_splits():
    q, k, v, _ = draw(1, 300, 2, 32, 32, torch.float32, device=GPU)
    whole, end = linear_attention(q, k, v, return_state=True)
    left, state = linear_attention(*(x[:, :77] for x in (q, k, v)), return_state=True)
    right, last = linear_attention(
        *(x[:, 77:] for x in (q, k, v)), initial_state=LinearState(*state), return_state=True
    )
    assert relative_rms(torch.cat((left, right), 1), whole.double()) <= 2e-6
    assert relative_rms(last.S, end.S.double()) <= 2e-6

    def penalty(device, dtype):
        leaves = [x.to(device, dtype).requires_grad_() for x in (q, k, v)]
        (dq,) = torch.autograd.grad(
            linear_attention(*leaves).square().sum(), leaves[:1], create_graph=True
        )
        return torch.autograd.grad(dq.square().sum(), leaves)

    exact = penalty("cpu", torch.float64)
    for found, wanted in zip(penalty(GPU, torch.float32), exact, strict=True):
        assert relative_rms(found.cpu(), wanted) <= 1e-5


@pytest.mark.parametrize("rule", ["euler", "zoh"])
@pytest.mark.parametrize("dtype", list(RELATIVE), ids=str)
@pytest.mark.parametrize(
    ("B", "T", "D", "N", "cut"),
    [
        (2, 1000, 96, 16, (1, 1000)),
        (1, 997, 96, 16, None),
        (2, 130, 33, 5, (3, 48)),
        (1, 1, 48, 16, None),
        (1, 200, 64, 32, None),
        (1, 200, 40, 64, None),
    ],
)
def test_selective_scan(B, T, D, N, cut, dtype, rule):
    inputs = scan_cases.draw(B, T, D, N, dtype, device=GPU)
    first = T != 997
    within(scan_cases.errors(selective, inputs, rule, first=first, last=first, cut=cut), dtype)


def test_selective_scan_of_strided_inputs_and_strong_decays():
    inputs = scan_cases.draw(2, 100, 20, 16, torch.bfloat16, device=GPU, contiguous=False)
    assert max(scan_cases.errors(selective, inputs).values()) <= RELATIVE[torch.bfloat16]
    inputs = scan_cases.draw(1, 100, 20, 16, torch.float32, device=GPU, decay=1e4)
    *x, dy, h, dh = inputs
    for rule in ("euler", "zoh"):
        problem = selective.Problem(*x, h, rule)
        y, last, kept = selective.forward(problem, keep=True)
        found = (y, last, *selective.backward(problem, kept, dy, dh))
        assert all(one.isfinite().all() for one in found)


def test_selective_scan_compiled_repeated_and_differentiated_twice():
    x = scan_cases.draw(2, 300, 48, 16, torch.float32, device=GPU)[:5]
    leaves = [y.requires_grad_() for y in x]

    def call(*inputs):
        return selective_scan(*inputs, mode="kernel")[0]

    def slopes(call, leaves, **options):
        return torch.autograd.grad(call(*leaves).square().sum(), leaves, **options)

    wanted = slopes(call, leaves)
    for again in (slopes(call, leaves), slopes(torch.compile(call, fullgraph=True), leaves)):
        for one, other in zip(again, wanted, strict=True):
            assert torch.equal(one, other)
    second = torch.autograd.grad(
        sum(g.square().sum() for g in slopes(call, leaves, create_graph=True)), leaves
    )
    wide = [y.detach().double().requires_grad_() for y in x]
    exact = torch.autograd.grad(
        sum(
            g.square().sum()
            for g in slopes(lambda *x: selective_scan(*x)[0], wide, create_graph=True)
        ),
        wide,
    )
    for one, other in zip(second, exact, strict=True):
        assert relative_rms(one, other) <= 1e-5
