"""q's road through lsa: which functions are on the stack where a kernel is launched."""

import traceback
from pathlib import Path

import pytest
import torch

pytest.importorskip("triton")

from triton.runtime import JITFunction

import lsa
from lsa import linear_attention, operators
from lsa.attention import MODES, dispatch
from lsa.attention.call import Call

MOST_STAYS = 6
ROOT = Path(lsa.__file__).parent


@pytest.fixture
def launches(monkeypatch):
    """Of each launch the kernel and the functions of lsa on the stack; nothing is launched."""
    launches = []

    def run(self, *_, grid, warmup, **__):
        paths = [(Path(one.filename), one.name) for one in traceback.extract_stack()]
        road = [
            f"{path.relative_to(ROOT)} {name}"
            for path, name in paths
            if path.is_relative_to(ROOT) and path.name != "compat.py"
        ]
        launches.append((self.fn.__name__, road))

    for name in ("chunked.passes", "attention", "recurrent"):  # which then remember launches
        operators.triton_module("lsa.attention.triton", name)
    monkeypatch.setattr(JITFunction, "run", run)
    monkeypatch.setattr(dispatch, "uses_kernels", lambda q, v, scale: True)
    return launches


@pytest.mark.parametrize("decay", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_q_stays_in_six_functions_at_most(mode, decay, launches):
    q, k, v = (torch.rand(1, 1200, 2, 64, requires_grad=True) for _ in range(3))
    g = -torch.rand(1, 1200, 2) if decay else None
    o = linear_attention(q, k, v, mode=mode, log_decay=g)
    forwards = len(launches)
    torch.autograd.grad(o.sum(), q)
    assert 0 < forwards < len(launches)
    for kernel, road in launches:
        assert len(road) <= MOST_STAYS or kernel == "scan_kernel", road  # which takes no q


def test_what_is_handed_on_has_names(launches, monkeypatch):
    """Below the operator a body takes a call, and nothing flat."""
    taken = []
    body = dispatch.body

    def seen(call):
        taken.append(call)
        return body(call)

    monkeypatch.setattr(dispatch, "body", seen)
    q, k, v = (torch.rand(1, 5, 2, 16, requires_grad=True) for _ in range(3))
    torch.autograd.grad(linear_attention(q, k, v, eps=0.5).sum(), q)
    assert [type(call) for call in taken] == [Call, Call]
    assert all(call.eps == 0.5 and call.scale == 0.25 for call in taken)
