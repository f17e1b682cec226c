"""Declaring and launching the operators of linear attention and of the selective scan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from .compat import OpOverload, remember_launches

# An operator exists as long as its library does. When a reloaded module declares it again, the new
# one replaces the old. The libraries outlive a reload of this module.
_LIBRARIES: dict[str, torch.library.Library] = globals().get("_LIBRARIES", {})


def operator(
    name: str, schema: str, body: Any, shapes: Any, backward: Any, setup_context: Any
) -> OpOverload:
    """An operator like that of `torch.library.custom_op`, without its check of each call's results.

    Its first call does not import torch.compile either. In the tests, `opcheck` makes sure that no
    result shares memory with an argument.
    """
    tags = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order)
    _LIBRARIES.pop(name, None)
    lib = _LIBRARIES[name] = torch.library.Library("lsa", "FRAGMENT")
    torch.library.define(f"lsa::{name}", schema, lib=lib, tags=tags)
    torch.library.impl(f"lsa::{name}", "default", body, lib=lib)
    torch.library.register_fake(f"lsa::{name}", shapes, lib=lib)
    torch.library.register_autograd(f"lsa::{name}", backward, setup_context=setup_context, lib=lib)
    return getattr(torch.ops.lsa, name).default


@cache
def triton_module(package: str, name: str) -> ModuleType:
    """A module of kernels, imported when first needed: lsa works without Triton."""
    module = import_module(f"{package}.{name}")
    remember_launches(package)
    return module


def launching_on(device: torch.device) -> AbstractContextManager:
    """Context in which `device` is the current device, on which Triton launches."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(device)


def gradients_where_needed(
    outputs: Iterable[Tensor], grads: Iterable[Tensor | None],
    inputs: Sequence[Tensor | None], needed: Sequence[bool],
) -> list[Tensor | None]:  # fmt: skip
    """Gradients of the inputs that need one, given the outputs' (None: zero); None for the others.

    They can be differentiated again if gradients are being recorded, as with create_graph=True.
    """
    pairs = [
        (y, g.to(y.dtype))
        for y, g in zip(outputs, grads, strict=True)
        if g is not None and y.requires_grad
    ]
    wanted = [x for x, need in zip(inputs, needed, strict=True) if x is not None and need]
    found = iter(
        torch.autograd.grad(
            [y for y, _ in pairs], wanted, [g for _, g in pairs], allow_unused=True,
            create_graph=torch.is_grad_enabled(),
        )
        if pairs and wanted
        else [None] * len(wanted)
    )  # fmt: skip
    return [
        next(found) if x is not None and need else None
        for x, need in zip(inputs, needed, strict=True)
    ]
