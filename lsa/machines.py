"""State machines: a sequence model seen one token at a time.

A state machine is a triple (S, s_0, r): a set of states, a first state, and a step
r(s, x) = (s', y). Unrolled over a sequence it is a causal sequence transformation. Every layer of
this package obeys the law

    unroll(layer.machine())(x) == layer(x)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class StateMachine:
    """(S, s_0, r) with an optional shortcut for many ticks at once.

    initial_state: s_0. Tensors in it may have a batch size of one; they broadcast.
    step: r, from (state, x) to (state, y). It never changes the state that it is given.
    many: from (state, xs) to (state, ys), equal to ticking through xs, but it may compute the ticks
        in parallel. Without it ticks are taken one by one.
    last: from (state, xs) to (state, y), only the last of many's ys, where that is cheaper:
        sampling needs the logits of a prompt's last position only.
    vocab_size: number of tokens, or None if inputs are not tokens.
    max_length: the most ticks, or None if there is no limit.
    """

    initial_state: Any
    step: Callable[[Any, Any], tuple[Any, Any]]
    many: Callable[[Any, Any], tuple[Any, Any]] | None = None
    last: Callable[[Any, Any], tuple[Any, Any]] | None = None
    vocab_size: int | None = None
    max_length: int | None = None

    def prefill(self, state: Any, xs: Any) -> tuple[Any, Any]:
        """Take all of xs: a tensor [B, T, ...] or a plain sequence. Returns (state, ys)."""
        return self.many(state, xs) if self.many else _tick_through(self, state, xs)

    def read(self, state: Any, xs: Any) -> tuple[Any, Any]:
        """Take all of xs, at least one, and return only the last output. Returns (state, y)."""
        if self.last:
            return self.last(state, xs)
        state, ys = self.prefill(state, xs)
        return state, ys[:, -1] if isinstance(ys, Tensor) else ys[-1]


def check_machine(machine: object) -> None:
    """Raise ValueError, naming the argument, unless it is a StateMachine."""
    if not isinstance(machine, StateMachine):
        got = type(machine).__name__
        raise ValueError(f"machine: expected a StateMachine, got {got}; a layer's is machine()")


def _tick_through(machine: StateMachine, state: Any, xs: Tensor | Sequence) -> tuple[Any, Any]:
    if not isinstance(xs, Tensor):
        ys = []
        for x in xs:
            state, y = machine.step(state, x)
            ys.append(y)
        return state, tuple(ys)
    if xs.shape[1] == 0:
        # Only a tick shows the shape of an output, so one is taken and discarded.
        _, y = machine.step(state, xs.new_zeros(xs.shape[0], *xs.shape[2:]))
        return state, y.new_empty(y.shape[0], 0, *y.shape[1:])
    ys = []
    for x in xs.unbind(1):
        state, y = machine.step(state, x)
        ys.append(y)
    return state, torch.stack(ys, dim=1)


def unroll(machine: StateMachine) -> Callable[[Any], Any]:
    """U: the causal sequence transformation that a machine computes, tick by tick.

    The result takes a tensor [B, T, ...] (time is axis 1) and returns one, or takes any
    other sequence and returns a tuple. It never uses `machine.many`: it is the definition
    that shortcuts are tested against.
    """
    check_machine(machine)
    return lambda xs: _tick_through(machine, machine.initial_state, xs)[1]


def tape(g: Callable[[Any], Any]) -> StateMachine:
    """P(g): the machine that remembers every input and recomputes g at each tick.

    g takes a tuple of inputs (or a tensor [B, t, ...] if the inputs are tensors [B, ...]) and
    returns one output. This is the slowest machine, and the reference for the others.
    """

    def step(state: tuple, x: Any) -> tuple[tuple, Any]:
        state = (*state, x)
        return state, g(torch.stack(state, dim=1) if isinstance(x, Tensor) else state)

    return StateMachine(initial_state=(), step=step)


def single(many: Callable[[Any, Tensor], tuple[Any, Tensor]]) -> Callable[..., tuple[Any, Tensor]]:
    """A step by a function of many ticks: one token is a text of length one."""

    def step(state: Any, x: Tensor) -> tuple[Any, Tensor]:
        state, y = many(state, x.unsqueeze(1))
        return state, y.squeeze(1)

    return step


def elementwise(f: Callable[[Tensor], Tensor]) -> StateMachine:
    """The machine without a state: f on the last axis, so it takes many ticks at once."""
    return StateMachine(
        initial_state=(),
        step=lambda state, x: (state, f(x)),
        many=lambda state, xs: (state, f(xs)),
        last=lambda state, xs: (state, f(xs[:, -1])),
    )


def stack(*machines: StateMachine) -> StateMachine:
    """Composition of machines: each reads the outputs of the one before. S = S_1 x ... x S_n."""

    def thread(advance: Callable) -> Callable[[tuple, Any], tuple[tuple, Any]]:
        def through(states: tuple, x: Any) -> tuple[tuple, Any]:
            # Python calls every machine. torch.compile can take the whole step as one graph.
            after = []
            for machine, state in zip(machines, states, strict=True):
                state, x = advance(machine, state, x)
                after.append(state)
            return tuple(after), x

        return through

    def last(states: tuple, xs: Any) -> tuple[tuple, Any]:
        first, final = stack(*machines[:-1]), machines[-1]
        before, xs = first.prefill(states[:-1], xs)
        after, y = final.read(states[-1], xs)
        return (*before, after), y

    return StateMachine(
        initial_state=tuple(machine.initial_state for machine in machines),
        step=thread(lambda machine, state, x: machine.step(state, x)),
        many=thread(lambda machine, state, xs: machine.prefill(state, xs)),
        last=last if machines else None,
        vocab_size=machines[0].vocab_size if machines else None,
        max_length=min((m.max_length for m in machines if m.max_length is not None), default=None),
    )


def residual(machine: StateMachine) -> StateMachine:
    """The machine of x + machine(x)."""

    def add(advance: Callable) -> Callable[[Any, Tensor], tuple[Any, Tensor]]:
        def through(state: Any, x: Tensor) -> tuple[Any, Tensor]:
            state, y = advance(state, x)
            return state, x + y

        return through

    return StateMachine(
        initial_state=machine.initial_state,
        step=add(machine.step),
        many=add(machine.prefill),
        vocab_size=machine.vocab_size,
        max_length=machine.max_length,
    )


def of_tokens(machine: StateMachine) -> StateMachine:
    """The machine of tokens: its errors name `tokens` where a layer's would name `x`."""

    def naming(advance: Callable, layout: str) -> Callable[[Any, Any], tuple[Any, Any]]:
        def through(state: Any, tokens: Any) -> tuple[Any, Any]:
            if not isinstance(tokens, Tensor) or tokens.dim() != layout.count(",") + 1:
                got = [*tokens.shape] if isinstance(tokens, Tensor) else type(tokens).__name__
                raise ValueError(f"tokens: expected a tensor {layout}, got {got}")
            try:
                return advance(state, tokens)
            except ValueError as error:
                if not str(error).startswith("x: expected the state's batch"):
                    raise
                raise ValueError(f"tokens{str(error)[1:]}") from error

        return through

    many, last = (naming(one, "[B, T]") for one in (machine.prefill, machine.read))
    return replace(machine, step=naming(machine.step, "[B]"), many=many, last=last)


def state_bytes(state: Any) -> int:
    """Bytes of every tensor and cache in a machine's state; counters are left out."""
    if hasattr(state, "nbytes"):
        return int(state.nbytes)
    return sum(map(state_bytes, state)) if isinstance(state, tuple | list) else 0
