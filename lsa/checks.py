"""What arguments are held to: one line naming the argument, what was expected, what came."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from torch import Tensor


def whole(name: str, value: Any, least: int = 1) -> None:
    """Raise ValueError unless `value` is a whole number, `least` or more."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise ValueError(f"{name}: expected a whole number, got {value!r:.60}")
    if value < least:
        raise ValueError(f"{name}: expected at least {least}, got {value}")


def real(name: str, value: Any) -> None:
    """Raise ValueError unless `value` is a number; its size is the caller's to check."""
    if not isinstance(value, Real):
        raise ValueError(f"{name}: expected a number, got {value!r:.60}")


def one_of(name: str, value: Any, known: Iterable[str]) -> None:
    """Raise ValueError unless `value` is one of the names."""
    names = [*known]
    if value not in names:
        raise ValueError(f"{name}: expected one of {', '.join(names)}, got {value!r:.60}")


def tensor(name: str, value: Any, layout: str) -> None:
    """Raise ValueError unless `value` is a tensor; `layout` says of which shape."""
    if not isinstance(value, Tensor):
        raise ValueError(f"{name}: expected a tensor {layout}, got {type(value).__name__}")
