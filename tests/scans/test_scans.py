"""Scans: in order, as a tree, with exponentials kept in range, and with selection."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lsa.scans import (
    SCANS,
    exponential_step,
    exponential_sums,
    no_sums,
    scan,
    selective_scan,
    selective_step,
)


def in_order(a, b, h):
    """h_t = a_t h_{t-1} + b_t, as it stands, in NumPy."""
    a, b, h = (x.numpy() for x in (a.expand_as(b), b, h))
    states = []
    for t in range(b.shape[1]):
        h = a[:, t] * h + b[:, t]
        states.append(h)
    return torch.from_numpy(np.stack(states, 1)) if states else torch.zeros(b.shape)


@pytest.mark.parametrize("mode", SCANS)
def test_what_comes_back_is_not_what_was_given(mode):
    b, h = torch.rand(1, 1, 3), torch.rand(1, 3, 2)
    scan(torch.rand(1, 1, 3), b, mode=mode).zero_()
    u, empty = torch.rand(1, 0, 3), torch.rand(1, 0, 2)
    selective_scan(u, u, -torch.rand(3, 2), empty, empty, initial_state=h)[1].zero_()
    assert b.all() and h.all()


@pytest.mark.parametrize("mode", SCANS)
@given(T=st.integers(0, 40), B=st.integers(1, 2), seed=st.integers(0, 10**6))
def test_a_scan_is_the_recurrence(mode, T, B, seed):
    draw = torch.Generator().manual_seed(seed)
    a = torch.rand(B, T, 1, dtype=torch.float64, generator=draw)
    b = torch.randn(B, T, 3, dtype=torch.float64, generator=draw)
    h = torch.randn(B, 3, dtype=torch.float64, generator=draw)
    torch.testing.assert_close(
        scan(a, b, initial_state=h, mode=mode), in_order(a, b, h), check_dtype=False
    )


def test_both_scans_have_the_same_gradients():
    a, b = torch.rand(2, 21, 3).double(), torch.randn(2, 21, 3).double()
    h, weight = torch.randn(2, 3).double(), torch.randn(2, 21, 3).double()
    gradients = []
    for mode in SCANS:
        leaves = [x.clone().requires_grad_() for x in (a, b, h)]
        (scan(*leaves[:2], initial_state=leaves[2], mode=mode) * weight).sum().backward()
        gradients.append([x.grad for x in leaves])
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize(("T", "most"), [(1024, 3 * 1024), (1000, 3 * 1000)])
def test_the_tree_is_work_efficient(T, most):
    """Products of decays and of states, counted: at most 3 a token, in 2 log2 T rounds."""

    class Counting(torch.utils._python_dispatch.TorchDispatchMode):
        work, rounds = 0, 0

        def __torch_dispatch__(self, op, types, args=(), kwargs=None):
            out = op(*args, **(kwargs or {}))
            if op is torch.ops.aten.mul.Tensor and out.numel():
                self.work, self.rounds = self.work + out.numel(), self.rounds + 1
            return out

    with Counting() as counting:
        scan(torch.rand(1, T), torch.rand(1, T))
    assert counting.work <= most
    assert counting.rounds <= 3 * 10


def test_strong_decays_neither_overflow_nor_divide():
    a = torch.full((1, 300, 1), 1e-30)
    torch.testing.assert_close(scan(a, torch.ones(1, 300, 1)), torch.ones(1, 300, 1))


@given(T=st.integers(1, 30), cut=st.integers(0, 30), size=st.sampled_from([1.0, 30.0, 300.0]))
def test_exponential_sums_are_the_sums(T, cut, size):
    k, v, w = (
        torch.randn(2, T, 3).double() * size,
        torch.randn(2, T, 3).double(),
        torch.rand(3).double(),
    )
    lag = torch.arange(T).unsqueeze(1) - torch.arange(T)
    exponents = k.unsqueeze(1) - lag.clamp(min=0).unsqueeze(-1) * w
    exponents = exponents.masked_fill(lag.lt(0).unsqueeze(-1), -torch.inf)
    expected = (exponents.softmax(2) * v.unsqueeze(1)).sum(2)
    sums = no_sums(k, 3)
    ticked = []
    for t in range(T):
        sums = exponential_step(sums, k[:, t], v[:, t], w)
        ticked.append(sums.num / sums.den)
    torch.testing.assert_close(torch.stack(ticked, 1), expected)
    first, pieces = no_sums(k, 3), []
    for piece in (slice(0, min(cut, T)), slice(min(cut, T), T)):
        if k[:, piece].shape[1]:
            sums = exponential_sums(first, k[:, piece], v[:, piece], w)
            first = sums.last()
            pieces.append(sums.num / sums.den)
    torch.testing.assert_close(torch.cat(pieces, 1), expected)


def selective_in_numpy(u, delta, A, B, C, input_rule):
    """Gu and Dao (2023), equations 2 and 4, channel by channel; Euler: B̄ = Δ B."""
    u, delta, A, B, C = (x.numpy() for x in (u, delta, A, B, C))
    y = np.zeros_like(u)
    for b, d in np.ndindex(u.shape[0], u.shape[2]):
        h = np.zeros(A.shape[1])
        for t in range(u.shape[1]):
            dA = delta[b, t, d] * A[d]
            enters = {
                "euler": delta[b, t, d] * B[b, t],
                "zoh": (np.exp(dA) - 1) / dA * delta[b, t, d] * B[b, t],
            }[input_rule]
            h = np.exp(dA) * h + enters * u[b, t, d]
            y[b, t, d] = C[b, t] @ h
    return torch.from_numpy(y)


@pytest.mark.parametrize("input_rule", ["euler", "zoh"])
@pytest.mark.parametrize("mode", SCANS)
def test_the_selective_scan_is_the_published_recurrence(mode, input_rule):
    T, D, N = 23, 3, 4
    u, delta = torch.randn(2, T, D).double(), torch.rand(2, T, D).double()
    A, B, C = (
        -torch.rand(D, N).double(),
        torch.randn(2, T, N).double(),
        torch.randn(2, T, N).double(),
    )
    expected = selective_in_numpy(u, delta, A, B, C, input_rule)
    for chunk_size in (1, 5, 64):
        y, h = selective_scan(
            u, delta, A, B, C, input_rule=input_rule, mode=mode, chunk_size=chunk_size
        )
        torch.testing.assert_close(y, expected)
    ticking = torch.zeros(2, D, N).double()
    for t in range(T):
        ticking, y_t = selective_step(
            ticking, u[:, t], delta[:, t], A, B[:, t], C[:, t], input_rule
        )
        torch.testing.assert_close(y_t, expected[:, t])
    torch.testing.assert_close(ticking, h)


@pytest.mark.parametrize("width", [1e-6, 1e-3, 0.3, 3.0])
def test_zero_order_hold_keeps_the_digits_of_its_gradients_at_every_step(width):
    """float32 against float64, steps from far below 1 / |A| to beyond it."""
    T, D, N = 7, 3, 4
    delta = width * (0.5 + torch.rand(1, T, D).double())
    x = [torch.randn(1, T, D).double(), delta, -0.5 - torch.rand(D, N).double()]
    x += [torch.rand(1, T, N).double() for _ in "BC"]

    def gradients(x):
        leaves = [y.detach().requires_grad_() for y in x]
        y, h = selective_scan(*leaves, input_rule="zoh", mode="steps")
        weighed = (y * torch.arange(y.numel()).view_as(y)).sum() + h.sum()
        return torch.autograd.grad(weighed, leaves)

    for got, want in zip(gradients([y.float() for y in x]), gradients(x), strict=True):
        assert (got - want).norm() <= 1e-5 * want.norm()


def test_zero_order_hold_goes_over_into_euler_where_nothing_decays():
    """A = 0 or Δ = 0: w = Δ, with the slopes that the limits have."""
    x = [torch.randn(1, 5, 2), torch.rand(1, 5, 2), torch.zeros(2, 3)]
    x += [torch.randn(1, 5, 3) for _ in "BC"]
    x[1][:, 2] = 0
    x = [y.double().requires_grad_() for y in x]
    y, h = selective_scan(*x, input_rule="zoh")
    torch.testing.assert_close(y, selective_scan(*x, input_rule="euler")[0])
    assert all(g.isfinite().all() for g in torch.autograd.grad(y.sum() + h.sum(), x))
