"""Call the kernels on a computer without a GPU, with all of the host's work and no launch.

For each launch what was compiled for its arguments is looked up, by Triton's binder or past it
(lsa/launches.py), and handed to the GPU's driver; here that last call does nothing. So the time
of a call is what Python, torch and Triton take before a GPU would begin.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from lsa.attention import dispatch
from lsa.attention.call import Given, Gradients, Inputs, Options, Results, schema

MOST_SHARED = 227 * 1024


@contextmanager
def launches_replaced(arch: int) -> Iterator[list[int]]:
    """Inside, kernels are compiled for `arch` and never run; the list grows with each launch.

    The results of calls are whatever was in memory. Not for a computer with a GPU: what is
    compiled inside would be found again by its launches.
    """
    launched: list[int] = []

    def launcher(source: Any, metadata: Any) -> Callable[..., None]:
        return lambda *arguments: launched.append(1)

    stand_in = SimpleNamespace(
        get_current_device=lambda: 0,
        get_current_stream=lambda device: 0,
        get_current_target=lambda: GPUTarget("cuda", arch, 32),
        launcher_cls=launcher,
        utils=SimpleNamespace(
            get_device_properties=lambda device: {"max_shared_mem": MOST_SHARED},
            load_binary=lambda *arguments: (object(), 0, 0, 0, 1024),
        ),
    )
    with (
        mock.patch.object(driver, "_active", stand_in),
        mock.patch.object(dispatch, "uses_kernels", lambda q, v, scale: True),
    ):
        yield launched


@functools.cache
def empty_operator() -> Callable[..., tuple[torch.Tensor, ...]]:
    """An operator of linear attention's arguments and results whose bodies only make room."""

    def attend(*flat: Any) -> tuple[torch.Tensor, ...]:
        q, k, v = flat[:3]
        B, _, H, K = q.shape
        room = (torch.empty_like(v), k.new_empty(B, H, K, v.shape[-1]), k.new_empty(B, H, K))
        return room + tuple(q.new_empty(0) for _ in Results._fields[3:])

    def gradient(*flat: Any) -> tuple[torch.Tensor, ...]:
        q, k, v = flat[:3]
        B, _, H, K = q.shape
        state = (k.new_empty(B, H, K, v.shape[-1]), k.new_empty(B, H, K))
        return tuple(torch.empty_like(x) for x in (q, k, v)) + state + (q.new_empty(0),)

    back = torch.library.custom_op(
        "experiments::empty_backward", gradient, mutates_args=(),
        schema=schema((Inputs, Results, Given, Options), Gradients),
    )  # fmt: skip
    forth = torch.library.custom_op(
        "experiments::empty", attend, mutates_args=(), schema=schema((Inputs, Options), Results)
    )

    def save(ctx: Any, inputs: tuple, output: tuple) -> None:
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs[:3], *output)
        ctx.options = inputs[len(Inputs._fields) :]

    def backward(ctx: Any, do: torch.Tensor, *_: Any) -> tuple:
        saved = ctx.saved_tensors
        grads = back(*saved[:3], None, None, None, *saved[3:], do, None, None, *ctx.options)
        return (*grads[:3], None, None, None, *(None for _ in ctx.options))

    forth.register_autograd(backward, setup_context=save)
    return forth
