"""What the operators of linear attention take and give: flat for torch, named for us.

An operator's arguments are flat. What they are, and in which order, is said once, by the five
named tuples here; dispatch.py takes them apart with `taken_apart`.

Shapes as in the public layout: q, k [B, T, H, K]; v, o [B, T, H, V]; S [B, H, K, V]; z [B, H, K].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, get_type_hints

from torch import Tensor


class Inputs(NamedTuple):
    """q, k, v, the state before them and the logarithm of the decay, if any.

    g: [B, T, H], or [1, 1, H] where it is the same for all tokens.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    S: Tensor | None
    z: Tensor | None
    g: Tensor | None


class Options(NamedTuple):
    """chunk_size: 0 leaves it to the implementation. with_z: z is wanted though not divided by.

    with_dg: the gradient of g is wanted; the sum itself does not ask.
    """

    mode: str
    chunk_size: int
    normalize: bool
    scale: float
    eps: float
    feature_map: str
    with_z: bool
    with_dg: bool


class Results(NamedTuple):
    """o and the state after it, then what the gradient needs; triton/call.py, Outputs."""

    o: Tensor
    S_T: Tensor
    z_T: Tensor
    den: Tensor
    states: Tensor
    exact: Tensor


class Given(NamedTuple):
    """The gradients of o and of the state after it."""

    do: Tensor
    dS: Tensor | None
    dz: Tensor | None


class Gradients(NamedTuple):
    """The gradients of the inputs; dg is empty where it is not wanted."""

    dq: Tensor
    dk: Tensor
    dv: Tensor
    dS: Tensor
    dz: Tensor
    dg: Tensor


def schema(arguments: tuple[type, ...], results: type) -> str:
    """An operator's signature in torch's words: the fields of named tuples, one after the other."""
    words = {Tensor: "Tensor", Tensor | None: "Tensor?", str: "str", int: "SymInt",
             bool: "bool", float: "float"}  # fmt: skip
    # A name may come twice: dS is a gradient that is given, and one that is found.
    fields = [f"{words[kind]} {name}" for group in arguments
              for name, kind in get_type_hints(group).items()]  # fmt: skip
    return f"({', '.join(fields)}) -> ({', '.join(['Tensor'] * len(results._fields))})"


def taken_apart(flat: Sequence[Any], *groups: type) -> list[Any]:
    """The flat arguments of an operator as the named tuples that they came from."""
    found, i = [], 0
    for group in groups:
        end = i + len(group._fields)
        found.append(group._make(flat[i:end]))
        i = end
    return found
