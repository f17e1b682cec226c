"""Private parts of torch and Triton are used in one module, and modules of lsa can be reloaded."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch._dynamo import compiled_autograd
from torch.autograd import forward_ad
from torch.autograd.functional import hessian, jacobian

import lsa
from lsa.compat import is_transformed
from lsa.operators import operator

PACKAGE = Path(lsa.__file__).parent
PRIVATE = re.compile(
    r"\b(?:torch|triton|forward_ad|functional)(?:\.\w+)*\._[a-zA-Z]"  # torch._C, forward_ad._level
    r"|\bJITFunction\b|\btriton\.(?:runtime|compiler|backends)\b|from (?:torch|triton)[\w.]*\._"
)
RELOADED = """
import importlib, sys, torch, lsa
from IPython.extensions.autoreload import superreload
from lsa.attention import api, operator
from lsa.scans import selective_operator
old = {}
for module in (lsa.operators, operator, selective_operator, operator, api):
    superreload(module, importlib.reload, old)
q, k, v = (torch.rand(1, 9, 2, 4, requires_grad=True) for _ in range(3))
compiled = torch.compile(lsa.linear_attention, backend="aot_eager", fullgraph=True)
for call in (lsa.linear_attention, api.linear_attention, compiled):
    print(len(torch.autograd.grad(call(q, k, v).sum(), q)))
(dq,) = torch.autograd.grad(api.linear_attention(q, k, v).sum(), q, create_graph=True)
print(len(torch.autograd.grad(dq.sum(), k)))
x = torch.rand(2, 5, 3, requires_grad=True)
y, _ , _ = selective_operator.scan_operator(
    x, x, -torch.rand(3, 2), torch.rand(2, 5, 2), torch.rand(2, 5, 2), None, "euler", True
)
print(y.sum().backward() or x.grad.shape[0])
"""


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("decay", [None, torch.full((1, 4, 1), -0.5)])
@pytest.mark.parametrize("mode", lsa.attention.api.MODES)
def test_torch_takes_many_gradients_at_once(mode, decay, dtype):
    q, k, v = torch.rand(3, 1, 4, 1, 3, dtype=dtype)

    def loss(q):
        return lsa.linear_attention(q, k, v, mode=mode, log_decay=decay).square().sum((0, 1))

    for take, f in ((jacobian, loss), (hessian, lambda q: loss(q).sum())):
        torch.testing.assert_close(take(f, q, vectorize=True), take(f, q))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
def test_a_backward_pass_compiles_whole():
    """As `torch._dynamo.config.compiled_autograd` does, here behind an eager forward pass."""
    q, k, v = (torch.rand(1, 9, 2, 4, requires_grad=True) for _ in range(3))
    (wanted,) = torch.autograd.grad(lsa.linear_attention(q, k, v).square().sum(), q)
    with compiled_autograd._enable(torch.compile(backend="aot_eager", fullgraph=True)):
        lsa.linear_attention(q, k, v).square().sum().backward()
    torch.testing.assert_close(q.grad, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("mode", lsa.attention.api.MODES)
def test_one_graph_serves_all_shapes(mode):
    def call(q, k, v, S, z, g):
        o, state = lsa.linear_attention(
            q, k, v, mode=mode, log_decay=g, initial_state=lsa.LinearState(S, z), return_state=True
        )
        return o, *state

    compiled = torch.compile(call, backend="eager", fullgraph=True, dynamic=True)
    for B, T, H in ((2, 9, 3), (3, 17, 2), (1, 1, 1)):
        q, k, v = torch.rand(3, B, T, H, 4)
        inputs = q, k, v, torch.rand(B, H, 4, 4), torch.rand(B, H, 4), -torch.rand(B, T, H)
        torch.testing.assert_close(compiled(*inputs), call(*inputs))


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
def test_a_call_is_transformed_where_a_tangent_is_and_not_beside_one():
    x, inside = torch.ones(2), []
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, x)
        assert is_transformed([None, x, dual])
        assert not is_transformed([None, x])
    assert not is_transformed([x])
    torch.func.vmap(lambda y: inside.append(is_transformed([y])) or y)(x)
    assert inside == [True]


def test_what_is_private_stands_in_compat():
    found = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != PACKAGE / "compat.py"
        for line in path.read_text(encoding="utf-8").splitlines()
        if PRIVATE.search(line)
    ]
    assert not found
    assert len(PRIVATE.findall((PACKAGE / "compat.py").read_text(encoding="utf-8"))) > 5


def test_an_operator_declared_again_takes_the_place_of_the_old_one():
    """As when the module that declares it is reloaded, even with other arguments."""
    x = torch.ones(2, requires_grad=True)
    for factor, schema in ((2, "(Tensor x) -> Tensor"), (3, "(Tensor x, int? n=None) -> Tensor")):
        called = operator(
            "declared_again",
            schema,
            lambda x, n=None, factor=factor: factor * x,
            lambda x, n=None: x.new_empty(x.shape),
            lambda ctx, g, factor=factor: (factor * g, None)[: factor - 1],
            lambda ctx, inputs, output: None,
        )
        assert called is torch.ops.lsa.declared_again.default
        assert torch.autograd.grad(called(x).sum(), x)[0].tolist() == [factor, factor]


@pytest.mark.slow
def test_modules_of_operators_are_reloaded():
    """By %autoreload: "already registered" was torch's answer. In a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", RELOADED], cwd=PACKAGE.parent, capture_output=True, text=True
    )
    assert done.stdout.split() == ["1", "1", "1", "1", "2"], done.stderr
