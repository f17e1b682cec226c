"""The selective scan's operators on a CPU: torch's rules, gradients, what kernels do not take."""

import pytest
import torch

from lsa.layers.mamba import S6
from lsa.scans import selective_operator, selective_scan
from lsa.scans.selective_operator import gradient_operator, scan_operator
from lsa.scans.selective_plain import gradient, in_chunks


def draw(B, T, D, N, dtype=torch.float32):
    g = torch.Generator().manual_seed(0)
    shapes = (B, T, D), (B, T, D), (D, N), (B, T, N), (B, T, N), (B, D, N), (B, T, D), (B, D, N)
    u, delta, A, b, c, h, dy, dh = (torch.randn(s, generator=g).to(dtype) for s in shapes)
    return [u, delta.abs(), -A.abs() - 0.1, b, c, h], dy, dh


@pytest.mark.parametrize("rule", ["euler", "zoh"])
def test_the_gradient_written_out_is_the_gradient(rule):
    x, dy, dh = draw(2, 6, 3, 2, torch.float64)
    leaves = [y.requires_grad_() for y in x]
    y, h = in_chunks(*leaves, input_rule=rule, mode="steps", chunk_size=4)
    wanted = torch.autograd.grad((y, h), leaves, (dy, dh))
    for mode in ("steps", "tree"):
        torch.testing.assert_close(gradient(*leaves, dy, dh, input_rule=rule, mode=mode), wanted)


@pytest.mark.slow
def test_operators_keep_torchs_rules():
    x, dy, dh = draw(1, 2, 3, 2)
    leaves = [y.requires_grad_() for y in x]
    torch.library.opcheck(scan_operator, (*leaves, "euler", True))
    kept = torch.empty(0)
    torch.library.opcheck(gradient_operator, (*leaves, kept, dy, dh, "zoh"))


@pytest.mark.parametrize("rule", ["euler", "zoh"])
def test_first_and_second_derivatives_of_the_operator(rule):
    x, _, _ = draw(1, 3, 2, 2, torch.float64)
    leaves = [y.requires_grad_() for y in x]

    def call(*inputs):
        return scan_operator(*inputs, rule, True)[:2]

    assert torch.autograd.gradcheck(call, leaves, fast_mode=True)
    assert torch.autograd.gradgradcheck(call, leaves, fast_mode=True)

    def third(call):
        y = call()
        for _ in range(3):
            (y,) = torch.autograd.grad(y.sum(), leaves[1], create_graph=True)
        return y

    plain = third(lambda: in_chunks(*leaves, input_rule=rule, mode="steps", chunk_size=4)[0])
    torch.testing.assert_close(third(lambda: call(*leaves)[0]), plain)


def test_compiled_whole_as_on_a_gpu(monkeypatch):
    """The operator stands in the graph, and the shapes it promises are those that come."""
    pytest.importorskip("triton")
    layer, x = S6(4, d_state=2), torch.randn(2, 9, 4)
    wanted = torch.autograd.grad(layer(x).square().sum(), [*layer.parameters()])
    monkeypatch.setattr(selective_operator, "on_gpu", lambda u: True)
    # The body stays plain torch; nothing here could launch a kernel.
    monkeypatch.setattr(selective_operator, "_runs_kernels", lambda x: False)
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    y = torch.compile(layer, fullgraph=True, backend=backend)(x)
    assert len(graphs) == 1
    assert any("selective_scan" in str(node.target) for node in graphs[0].graph.nodes)
    found = torch.autograd.grad(y.square().sum(), [*layer.parameters()])
    torch.testing.assert_close(found, wanted)


def test_what_the_kernels_do_not_take_is_named(monkeypatch):
    x, _, _ = draw(2, 5, 3, 2)
    u, delta, A, b, c, h = x
    with pytest.raises(ValueError, match="u: expected a tensor on CUDA, and Triton"):
        selective_scan(u, delta, A, b, c, mode="kernel")
    monkeypatch.setattr(selective_operator, "on_gpu", lambda u: True)
    wide = torch.ones(2, 5, 65)
    bad = {
        r"delta: expected \[2, 5, 3\], got \[2, 4, 3\]": (u, delta[:, :4], A, b, c),
        r"A: expected \[3, 2\], got \[4, 2\]": (u, delta, torch.ones(4, 2), b, c),
        r"B: expected float32, float16 or bfloat16": (u, delta, A, b.double(), c),
        r"A: expected at most 64 numbers": (u, delta, -torch.ones(3, 65), wide, wide),
        r"u: expected at least one token": [y[:, :0] if y.dim() == 3 else y for y in x[:5]],
        r"u: expected \[B, T, D\], got \[5, 3\]": (u[0], delta, A, b, c),
    }
    for message, inputs in bad.items():
        with pytest.raises(ValueError, match=message):
            selective_scan(*inputs, mode="kernel")
    with pytest.raises(ValueError, match=r"initial_state: expected \[2, 3, 2\], got \[2, 3, 1\]"):
        selective_scan(u, delta, A, b, c, initial_state=h[..., :1], mode="kernel")
    # What they do not take runs all the same where nobody insists; so do torch's transforms.
    wide = [y.double() for y in x[:5]]
    torch.testing.assert_close(selective_scan(*wide), selective_scan(*wide, mode="steps"))
    found = torch.func.grad(lambda u: selective_scan(u, delta, A, b, c)[0].square().sum())(u)
    assert found.isfinite().all()


def test_inputs_of_half_precision_keep_a_float32_state():
    x, _, _ = draw(2, 40, 3, 2, torch.bfloat16)
    y, h = selective_scan(*x[:5])
    assert (y.dtype, h.dtype) == (torch.bfloat16, torch.float32)
    wanted, end = selective_scan(*(one.double() for one in x[:5]))
    torch.testing.assert_close(h.double(), end, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(y.double(), wanted, rtol=2**-8, atol=1e-5)
