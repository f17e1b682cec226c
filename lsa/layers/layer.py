"""The interface of a layer: a causal map of sequences, its machine and its costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from inspect import signature
from types import FunctionType
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from ..attention.call import without_autocast
from ..checks import finite, floating, unsharded, whole
from ..machines import StateMachine


class Layer(Protocol):
    """[B, T, D] to [B, T, D], and the same token by token: unroll(machine())(x) == layer(x).

    Costs count mixing the tokens of one sequence. Projections, the products with the weights of its
    nn.Linear modules, are left out: they take 2 FLOPs a weight and token in every layer. So are
    exponentials, activations, biases and norms. A multiply-add is 2 FLOPs, masked products count
    half, and a product of complex numbers is 4 multiply-adds.
    """

    def __call__(self, x: Tensor) -> Tensor: ...

    def modules(self) -> Iterator[nn.Module]:
        """As every nn.Module has it: the layer and its parts."""
        ...

    def machine(self) -> StateMachine:
        """One token a tick: [B, D] to [B, D]."""
        ...

    def sequence_flops(self, T: int) -> int:
        """FLOPs of T tokens at once, in the mode that the layer is set to."""
        ...

    def tick_flops(self, t: int) -> int:
        """FLOPs of tick t, counted from 1."""
        ...

    def state_numbers(self, t: int) -> int:
        """Numbers in the state after t ticks. A complex number is two."""
        ...


def checking_input(layer: Any) -> None:
    """Make the class of a module [B, T, D] to [B, T, D] raise ValueError for another input.

    It also shows the arguments that it was made with.
    """
    layer.__init__ = _keeping_arguments(layer.__init__)
    layer.extra_repr = lambda self: ", ".join(f"{k}={v!r}" for k, v in self.made_with.items())
    for name in ("forward", "weights"):
        method = getattr(layer, name, None)
        if method and not hasattr(method, "__wrapped__"):  # else it is checked already
            setattr(layer, name, _checking_forward(method, f"{layer.__name__}.{name}"))


def checking(layer: Any) -> None:
    """Make a layer's class raise ValueError for inputs and counts that do not fit."""
    checking_input(layer)
    if not hasattr(layer.machine, "__wrapped__"):
        layer.machine = _checking_machine(layer.machine)
    for method, name, least in (
        ("sequence_flops", "T", 0), ("tick_flops", "t", 1), ("state_numbers", "t", 0),
    ):  # fmt: skip
        setattr(layer, method, _checking(getattr(layer, method), name, least))


def _keeping_arguments(init: Callable[..., None]) -> Callable[..., None]:
    taken = signature(init)

    @wraps(init)
    def made(self: Any, d_model: int, *args: Any, **options: Any) -> None:
        init(self, d_model, *args, **options)
        self.d_model = d_model
        _, *named = taken.bind(self, d_model, *args, **options).arguments.items()
        self.made_with = dict(named)

    return made


def _check_input(x: Any, layout: str, d_model: int) -> None:
    """Raise ValueError unless x is a floating tensor of the layout, whose last axis is d_model."""
    floating("x", x, layout)
    if x.dim() != layout.count(",") + 1 or x.shape[-1] != d_model:
        raise ValueError(f"x: expected {layout} with D = {d_model}, got {[*x.shape]}")


def _check_kind(x: Tensor, layer: Any, error: Exception) -> None:
    """Raise ValueError if x has a dtype or device that no weight of the layer has.

    Called after an error only. Under autocast dtypes may differ, so devices alone are compared.
    """
    if isinstance(error, torch.OutOfMemoryError):
        return
    is_cast = not x.is_meta and torch.is_autocast_enabled(x.device.type)
    for kind in ("device",) if is_cast else ("dtype", "device"):
        expected, got = [getattr(one, kind) for one in layer.parameters()], getattr(x, kind)
        if expected and got not in expected:
            raise ValueError(f"x: expected the layer's {kind} {expected[0]}, got {got}") from error


def check_batch(state: Any, x: Tensor, error: Exception | None = None) -> None:
    """Raise ValueError if x [B, ...] has another batch than the state, unless the state's is one.

    Before the step: some layers would give each text of the state the same new token.
    """
    if (batch := _batch(state)) not in (None, 1, len(x)):
        raise ValueError(f"x: expected the state's batch {batch}, got {len(x)}") from error


def _checking_forward(forward: Callable, name: str) -> Callable:
    @wraps(forward)
    def checked(self: Any, x: Tensor, *args: Any, **options: Any) -> Tensor:
        _check_input(x, "[B, T, D]", self.d_model)
        try:
            return forward(self, x, *args, **options)
        except RuntimeError as error:
            _check_kind(x, self, error)
            raise

    # torch.compile counts recompilations by code object, and stops after eight.
    made = cast("FunctionType", checked)
    made.__code__ = made.__code__.replace(co_name=name)
    return checked


def _checking_machine(machine: Callable) -> Callable:
    @wraps(machine)
    def checked(self: Any) -> StateMachine:
        unsharded("machine", self)
        made, d_model = machine(self), self.d_model

        def checking(advance: Callable, layout: str) -> Callable[[Any, Tensor], tuple[Any, Tensor]]:
            def through(state: Any, x: Tensor) -> tuple[Any, Tensor]:
                _check_input(x, layout, d_model)
                if not torch.compiler.is_compiling():
                    check_batch(state, x)
                try:
                    return advance(state, x)
                except (RuntimeError, ValueError) as error:
                    _check_kind(x, self, error)
                    raise

            return through

        many = made.many and checking(made.many, "[B, T, D]")
        return replace(made, step=checking(made.step, "[B, D]"), many=many)

    return checked


def _batch(state: Any) -> int | None:
    """The batch of a state's first tensor, if it has one."""
    if isinstance(state, Tensor):
        return len(state) if state.dim() else None
    if isinstance(state, tuple | list):
        return next((n for one in state if (n := _batch(one)) is not None), None)
    return len(state.k) if getattr(state, "nbytes", 0) else None


def _checking(count: Callable[[Any, int], int], name: str, least: int) -> Callable[[Any, int], int]:
    @wraps(count)
    def checked(self: Any, tokens: int) -> int:
        whole(name, tokens, least)
        return count(self, tokens)

    return checked


def unrounded(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without autocast, in its arguments' dtypes; the first argument is a tensor.

    States are float32 sums whose terms may cancel, and ticks and whole texts must give the same.
    """

    @wraps(function)
    def wide(x: Tensor, *args: Any, **options: Any) -> Any:
        with without_autocast(x):
            return function(x, *args, **options)

    return wide


class StartingLinear(nn.Linear):
    """A projection that keeps its own first weights; a model does not initialise them.

    A decay rate must start in the range that its paper gives, not at zero.
    """


def starting_log_steps(dt_min: float, dt_max: float, *shape: int) -> Tensor:
    """log Δ of the given shape, uniform between the logarithms of dt_min and dt_max.

    Raises ValueError unless 0 < dt_min <= dt_max, and both finite numbers.
    """
    for name, value in (("dt_min", dt_min), ("dt_max", dt_max)):
        finite(name, value)
    if not 0 < dt_min <= dt_max:
        raise ValueError(f"dt_min: expected above 0 and at most dt_max {dt_max}, got {dt_min}")
    return torch.empty(*shape).uniform_(math.log(dt_min), math.log(dt_max))


class ResidualLinear(nn.Linear):
    """A layer's last projection, into the residual stream; in a deep model it starts smaller.

    Radford et al. (2019), section 2.3: this keeps the size of the sum of all branches. A layer's
    state takes its dtype and device from this weight. (torch's dynamic quantisation replaces
    nn.Linear only, and turns its weight into a method.)
    """
