"""The exchanges between ranks, with their gradients, which are exchanges again.

Each can be differentiated any number of times. A result is waited for only in `arrived(result)`, so
that work in between overlaps with the exchange. A loss is the sum of the ranks' terms: gradients
are summed over ranks, never averaged.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..compat import exchanges


class _Arrived(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return exchanges.wait_tensor(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, size: int, group: str) -> Tensor:
        ctx.place = size, group
        return exchanges.all_gather_into_tensor(x.contiguous(), size, group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return arrived(_ReduceScatter.apply(grad, *ctx.place)), None, None


class _ReduceScatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, size: int, group: str) -> Tensor:
        ctx.place = size, group
        return exchanges.reduce_scatter_tensor(x.contiguous(), "sum", size, group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return arrived(_Gather.apply(grad, *ctx.place)), None, None


class _AllToAll(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, into: list[int], out_of: list[int], group: str) -> Tensor:
        ctx.place = out_of, into, group
        return exchanges.all_to_all_single(x.contiguous(), into, out_of, group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return arrived(_AllToAll.apply(grad, *ctx.place)), None, None, None


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, group: str) -> Tensor:
        ctx.group = group
        return exchanges.all_reduce(x.contiguous(), "sum", group)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return arrived(_Sum.apply(grad, ctx.group)), None


def arrived(x: Tensor) -> Tensor:
    """Wait for the result of an exchange."""
    return _Arrived.apply(x)


def gather(x: Tensor, size: int, group: str) -> Tensor:
    """Gather x [n, ...] of all ranks, [size n, ...], on every rank."""
    return _Gather.apply(x, size, group)


def sum_over_ranks(x: Tensor, group: str) -> Tensor:
    """Sum x over all ranks, on every rank."""
    return _Sum.apply(x, group)


def all_to_all(x: Tensor, into: list[int], out_of: list[int], group: str) -> Tensor:
    """Exchange pieces of x [sum of out_of], one for each rank; returns theirs, [sum of into]."""
    return _AllToAll.apply(x, into, out_of, group)


def pass_on(x: Tensor, to: int | None, got: dict[int, int], size: int, group: str) -> Tensor:
    """Send x [n] to rank `to`, if any; returns the received, [sum of got]. got: sizes by sender."""
    out_of, into = [0] * size, [0] * size
    if to is not None:
        out_of[to] = x.numel()
    for sender, numbers in got.items():
        into[sender] = numbers
    return all_to_all(x if to is not None else x[:0], into, out_of, group)
