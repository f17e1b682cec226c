"""Run by test_interpreter.py in a process of its own: the selective scan's kernels, interpreted."""

import pytest
import torch

from lsa.layers.mamba import S6
from lsa.scans import selective_operator, selective_scan
from lsa.scans.kernels import selective
from tests.helpers import RELATIVE, relative_rms
from tests.kernels.cases import within
from tests.kernels.scan_cases import draw, errors, exactly


def check(inputs, rule="euler", **options):
    within(errors(selective, inputs, rule, **options), inputs[0].dtype)


@pytest.mark.parametrize("rule", ["euler", "zoh"])
@pytest.mark.parametrize(
    ("B", "T", "D", "N", "dtype", "first", "last"),
    [
        (2, 5, 6, 5, torch.float32, True, True),
        (1, 7, 20, 16, torch.bfloat16, False, True),
        (1, 1, 33, 1, torch.float16, True, False),
    ],
)
def test_results_and_gradients(B, T, D, N, dtype, first, last, rule):
    check(draw(B, T, D, N, dtype), rule, first=first, last=last)


@pytest.mark.parametrize(("first", "last"), [(True, True), (False, False)])
def test_segments_carry_the_state_and_its_gradient(first, last):
    cut = (3, 8) if first else (2, 16)
    inputs = draw(1, cut[0] * cut[1] - 5, 5, 4, torch.float32, decay=0.05)
    check(inputs, "zoh" if first else "euler", first=first, last=last, cut=cut)


def test_strided_inputs():
    inputs = draw(2, 7, 6, 4, torch.float32, contiguous=False)
    assert not any(inputs[i].is_contiguous() for i in (0, 1, 3, 4, 5))
    check(inputs)
    # Rows that lie whole but not one after the other, as slices of a projection do.
    u, delta, A, b, c, dy, h, dh = draw(1, 7, 12, 8, torch.float32)
    tokens = u[..., 3:9], delta[..., 3:9], A[:6, :5], b[..., 1:6], c[..., 2:7], dy[..., :6]
    check([*tokens, h[:, :6, :5], dh[:, :6, :5]], "zoh")


@pytest.mark.parametrize("decay", [1e-5, 0.3])
def test_zero_order_hold_is_exact_where_steps_are_small(decay):
    """exp(z) - 1 in float32 keeps 1e-2 of itself at z = 1e-5; its second difference, nothing."""
    inputs = draw(1, 8, 4, 4, torch.float32)
    inputs[2] = -decay * (0.1 + torch.rand(4, 4))
    check(inputs, "zoh")


@pytest.mark.parametrize("rule", ["euler", "zoh"])
def test_strong_decays_overflow_nowhere(rule):
    """Δ A down to -1e8: nothing is left of the token before."""
    inputs = draw(1, 8, 4, 4, torch.float32, decay=1e4)
    inputs[1] = inputs[1] * 1e4
    *x, dy, h, dh = inputs
    problem = selective.Problem(*x, h, rule)
    y, h_T, kept = selective.forward(problem, keep=True)
    found = (y, h_T, *selective.backward(problem, kept, dy, dh))
    assert all(one.isfinite().all() for one in found)
    exact = exactly(inputs, rule, first=True, last=True)
    for one, other in zip(found[:4], exact[:4], strict=True):
        assert relative_rms(one, other) <= RELATIVE[torch.float32]


def test_no_decay_at_all():
    """A = 0: zero-order hold is Euler, where expm1(0) / 0 is not a number."""
    inputs = draw(1, 5, 4, 4, torch.float32)
    inputs[2] = torch.zeros(4, 4)
    exact = exactly(inputs, "euler", first=False, last=False)
    problem = selective.Problem(*inputs[:5], None, "zoh")
    y, h_T, kept = selective.forward(problem, keep=True)
    found = [y, h_T, *selective.backward(problem, kept, inputs[5], None)]
    for i in (0, 1, 2, 3, 5, 6, 7):  # A's own gradient is another
        assert relative_rms(found[i], exact[i]) <= RELATIVE[torch.float32]


def test_what_is_not_kept_is_formed_again(monkeypatch):
    """The operators as on a GPU: pieces are the whole, and gradients, and gradients of those."""
    monkeypatch.setattr(selective_operator, "on_gpu", lambda u: True)
    inputs = draw(2, 7, 3, 2, torch.float32)
    x, dy, h = inputs[:5], inputs[5], inputs[6][:1]

    def results(dtype, mode):
        leaves = [y.to(dtype).requires_grad_() for y in (*x, h)]
        u, delta, A, B, C, start = leaves
        first, state = selective_scan(
            *(y[:, :3] for y in (u, delta)), A, *(y[:, :3] for y in (B, C)),
            initial_state=start, mode=mode,
        )  # fmt: skip
        second, end = selective_scan(
            *(y[:, 3:] for y in (u, delta)), A, *(y[:, 3:] for y in (B, C)),
            initial_state=state, mode=mode,
        )  # fmt: skip
        y = torch.cat((first, second), 1)
        loss = (y * dy).sum() + end.square().sum()
        slopes = torch.autograd.grad(loss, leaves, create_graph=True)
        return [
            y,
            end,
            *slopes,
            *torch.autograd.grad(sum(g.square().sum() for g in slopes), leaves),
        ]

    exact = results(torch.float64, "steps")
    for found, wanted in zip(results(torch.float32, "kernel"), exact, strict=True):
        assert relative_rms(found, wanted) <= 1e-5
    # Asked for without a gradient in sight, and then differentiated all the same.
    leaves = [y.detach().requires_grad_() for y in (*x, inputs[6])]
    y, last, kept = selective_operator.scan_operator(*leaves, "euler", False)
    assert kept.numel() == 0
    slopes = torch.autograd.grad((y, last), leaves, (dy, inputs[7]))
    wanted = exactly(inputs, "euler", first=True, last=True)[2:]
    for found, other in zip(slopes, wanted, strict=True):
        assert relative_rms(found, other) <= RELATIVE[torch.float32]


@pytest.mark.parametrize("ends", [None, torch.tensor([0, 3, 4, 7])], ids=["whole", "packed"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_layer_runs_the_kernels(dtype, ends, monkeypatch):
    layer, x = S6(6, d_state=4).to(dtype), torch.randn(1, 7, 6).to(dtype)

    def results():
        layer.zero_grad()
        leaf = x.clone().requires_grad_()
        y = layer(leaf, cu_seqlens=ends)
        y.float().square().sum().backward()
        return [y, leaf.grad, *(p.grad for p in layer.parameters())]

    plain = results()
    monkeypatch.setattr(selective_operator, "on_gpu", lambda u: True)
    called = []
    real = selective.forward
    monkeypatch.setattr(
        selective, "forward", lambda *a, **options: called.append(1) or real(*a, **options)
    )
    bound = 2e-5 if dtype == torch.float32 else 2e-2
    for found, wanted in zip(results(), plain, strict=True):
        assert relative_rms(found, wanted) <= bound
    assert called
