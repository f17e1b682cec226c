"""Checks of arguments: one line names the argument, what was expected, and what came."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor, nn

from .compat import is_in_function_transform, is_traced, is_under_dispatch_mode

LARGEST = {
    None: sys.float_info.max,
    **{dtype: torch.finfo(dtype).max for dtype in (torch.float32, torch.float64)},
}


def shown(value: Any) -> str:
    """A value in one line of at most 60 characters, for an error message."""
    try:
        return " ".join(repr(value).split())[:60]
    except ValueError:  # Python does not print a whole number of thousands of digits
        return f"{type(value).__name__} too long to show"


def whole(name: str, value: Any, least: int = 1, most: int | None = None) -> None:
    """Raise ValueError unless `value` is a whole number, `least` or more, and not above `most`."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ValueError(f"{name}: expected a whole number, got {shown(value)}")
    if value < least:
        raise ValueError(f"{name}: expected at least {least}, got {shown(value)}")
    if most is not None and not value <= most:
        raise ValueError(f"{name}: expected at most {most}, got {shown(value)}")


def boolean(name: str, value: Any) -> None:
    """Raise ValueError unless `value` is True or False: any non-empty text counts as true."""
    if not isinstance(value, bool):
        raise ValueError(f"{name}: expected True or False, got {shown(value)}")


def real(name: str, value: Any) -> None:
    """Raise ValueError unless `value` is a number of any size."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise ValueError(f"{name}: expected a number, got {shown(value)}")


def finite(
    name: str, value: Any, expected: str = "a finite number",
    *, low: float = -math.inf, high: float = math.inf, dtype: torch.dtype | None = None,
) -> float:  # fmt: skip
    """`value` as a float. Raise ValueError unless it is a finite number from `low` to `high`.

    expected: what the message asks for. dtype: float32 or float64, which must not overflow.
    """
    number = value
    if type(value) is not float:
        real(name, value)
        try:
            number = float(value)
        except OverflowError:  # a whole number of hundreds of digits
            number = math.inf
    if not (low <= number <= high and -LARGEST[dtype] <= number <= LARGEST[dtype]):
        kept = f" in {dtype}".replace("torch.", "") if dtype else ""
        raise ValueError(f"{name}: expected {expected}{kept}, got {shown(value)}")
    return number


def one_of(name: str, value: Any, known: Iterable[str]) -> None:
    """Raise ValueError unless `value` is one of the names."""
    names = [*known]
    if not isinstance(value, str) or value not in names:
        raise ValueError(f"{name}: expected one of {', '.join(names)}, got {shown(value)}")


def instance(name: str, value: Any, kind: type) -> None:
    """Raise ValueError unless `value` is an instance of `kind`."""
    if not isinstance(value, kind):
        raise ValueError(f"{name}: expected a {kind.__name__}, got {shown(value)}")


def tensor(name: str, value: Any, layout: str) -> None:
    """Raise ValueError unless `value` is a tensor. layout: its expected shape, for the message."""
    if not isinstance(value, Tensor):
        raise ValueError(f"{name}: expected a tensor {layout}, got {type(value).__name__}")


def floating(name: str, value: Any, layout: str) -> None:
    """Raise ValueError unless `value` is a floating tensor. layout: as for `tensor`."""
    tensor(name, value, layout)
    if value.layout is not torch.strided or value.is_nested:
        got = "a nested one" if value.is_nested else value.layout
        raise ValueError(f"{name}: expected a dense tensor {layout}, got {got}")
    if not value.dtype.is_floating_point or value.dtype.itemsize == 1:  # torch adds no float8
        expected = "a floating dtype of 16, 32 or 64 bits"
        raise ValueError(f"{name}: expected {expected}, got {value.dtype}")


def with_data(name: str, value: Tensor) -> None:
    """Raise ValueError if `value` is a tensor on meta, which has a shape but no data."""
    if value.is_meta:
        raise ValueError(f"{name}: expected a tensor with data, got one on {value.device}")


def unsharded(name: str, module: nn.Module) -> None:
    """Raise ValueError if a module's parameters are sharded over ranks, as by `fully_shard`."""
    sharding = sys.modules.get("torch.distributed.tensor")  # if not imported, nothing is sharded
    if sharding and any(isinstance(p, sharding.DTensor) for p in module.parameters()):
        raise ValueError(
            f"{name}: expected plain parameters, got sharded ones; load "
            "lsa.parallel.saving.full_state_dict(model) into a model of its own"
        )


def is_at_hand(x: Tensor) -> bool:
    """Whether the numbers in x can be read without a wait or a failure.

    On a GPU reading would wait. Under compilers and function transforms there are no numbers, and a
    trace would store them as constants.
    """
    return (
        not torch.compiler.is_compiling()
        and type(x) in (Tensor, nn.Parameter)
        and x.is_cpu
        and not is_in_function_transform()
        and not is_under_dispatch_mode()
        and not is_traced()
    )


def looked_up(embedding: nn.Embedding, tokens: Tensor) -> Tensor:
    """The embeddings of tokens. Raises ValueError for a number that is none; not on a GPU."""
    try:
        return embedding(tokens)
    except IndexError as error:  # on a GPU none is raised: checking would force a sync
        most = embedding.num_embeddings - 1
        wrong = next(n for n in tokens.flatten().tolist() if not 0 <= n <= most)
        raise ValueError(f"tokens: expected numbers from 0 to {most}, got {wrong}") from error
