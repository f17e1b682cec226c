"""The book's definitions as functions: sequences, distributions, sampling, causality.

A sequence is a tuple, or a tensor [B, T, ...] with time on axis 1. A distribution over a small
set is a dictionary from outcomes to probabilities. A distribution over sequences is a function,
because its table would have |X|^t rows. Probabilities may be floats or fractions.Fraction;
with fractions every identity here is exact.

Letters as in the book: X is an alphabet, x a sequence and h a sequence transformation. A function g
maps prefixes to distributions of the next token, and f maps sequences of length t to probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any, TypeVar

import torch
from torch import Tensor

from .checks import finite, shown, tensor

Token = Hashable
Probability = float | Fraction
Distribution = Mapping[Token, Probability]
T = TypeVar("T")


class Counted:
    """A function that counts its calls, to compare the costs of different ways to use it."""

    def __init__(self, function: Callable) -> None:
        self.function = function
        self.calls = 0

    def __call__(self, *args: Any) -> Any:
        self.calls += 1
        return self.function(*args)


def sequences(alphabet: Iterable[T], t: int) -> Iterator[tuple[T, ...]]:
    """Seq_t X: all |X|^t sequences of length t, in the order of the alphabet."""
    return product(alphabet, repeat=t)


def independent(p: Distribution, q: Distribution) -> dict[tuple[Token, Token], Probability]:
    """The distribution of a pair of independent halves: p(x) q(y)."""
    return {(x, y): p[x] * q[y] for x in p for y in q}


def autoregressive(g: Callable[[tuple], Distribution], t: int) -> Callable[[tuple], Probability]:
    """A_t(g): the probability of x_1 ... x_t is the product of g(x_1 ... x_{i-1})(x_i), i = 1..t.

    The result raises ValueError for a sequence whose length is not t.
    """

    def f(x: tuple) -> Probability:
        if len(x) != t:
            raise ValueError(f"x: expected a sequence of length {t}, got {len(x)}")
        return math.prod(g(x[:i])[x[i]] for i in range(t))

    return f


def conditional(
    f: Callable[[tuple], Probability], alphabet: Iterable[Token], t: int
) -> Callable[[tuple], dict[Token, Probability]]:
    """A g with A_t(g) = f: the share of each next token in the mass that f gives a prefix.

    Where f gives a prefix no mass, and from length t on, any distribution would do; the uniform one
    is returned.
    """
    alphabet = tuple(alphabet)

    def mass(prefix: tuple) -> Probability:
        return sum(f(prefix + rest) for rest in sequences(alphabet, t - len(prefix)))

    def g(prefix: tuple) -> dict[Token, Probability]:
        total = mass(prefix) if len(prefix) < t else 0
        if total == 0:
            return dict.fromkeys(alphabet, Fraction(1, len(alphabet)))
        return {x: mass((*prefix, x)) / total for x in alphabet}

    return g


def log_likelihood(g: Callable[[tuple], Distribution], data: Iterable[tuple]) -> float:
    """The log of the probability that all of data were drawn independently from A_t(g), in nats.

    A sum of logarithms, since the product would underflow. -inf if some sequence is impossible.
    """
    p = [g(x[:i])[x[i]] for x in data for i in range(len(x))]
    return math.fsum(map(math.log, p)) if all(p) else -math.inf


def sample_by_walking(p: Callable[[T], Probability], outcomes: Iterable[T], rng: Random) -> T:
    """Draw from p: go through the outcomes until their summed probability exceeds u.

    The slow way when the outcomes are all of Seq_t X. Raises ValueError if no outcome has any
    probability, and for one that is negative or not finite.
    """
    u, total, chosen = rng.random(), 0, []
    for x in outcomes:
        probability = p(x)
        if not 0 <= probability < math.inf:
            raise ValueError(f"p: expected 0 or more, and finite, got {shown(probability)}")
        if probability:
            chosen = [x]
        total += probability
        if total > u:
            return x
    # Rounding can leave a float sum just under u < 1; then the last possible outcome is returned.
    if not chosen:
        raise ValueError("p: expected some outcome with positive probability, got none")
    return chosen[0]


def sample_autoregressively(g: Callable[[tuple], Distribution], t: int, rng: Random) -> tuple:
    """Draw from A_t(g) token by token: t evaluations of g instead of t |X|^t."""
    x = ()
    for _ in range(t):
        p = g(x)
        x = (*x, sample_by_walking(p.__getitem__, p, rng))
    return x


def take_last(h: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """L(h): the last output of h. Defined on sequences with at least one element."""
    return lambda x: h(x)[:, -1] if isinstance(x, Tensor) else h(x)[-1]


def all_prefixes(g: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """L^-1(g): g of every prefix, (g(x_1), g(x_1 x_2), ..., g(x_1 ... x_t)). Always causal.

    A tensor x [B, T, ..] needs T >= 1: without an element the shape of g is unknown.
    """

    def h(x: Any) -> Any:
        if isinstance(x, Tensor):
            if not x.shape[1]:
                raise ValueError("x: expected at least one element in a tensor")
            return torch.stack([g(x[:, :i]) for i in range(1, x.shape[1] + 1)], dim=1)
        return tuple(g(x[:i]) for i in range(1, len(x) + 1))

    return h


def is_prefix(x: tuple, y: tuple) -> bool:
    """The causal order x <= y: y continues x, or equals it."""
    return y[: len(x)] == x


def is_causal(h: Callable[[tuple], tuple], alphabet: Iterable[Token], max_length: int) -> bool:
    """Whether h is causal for all x of length <= max_length, by the definition.

    h(x) is as long as x, and h(x_1 ... x_i) = h(x)_1 ... _i.
    """
    alphabet = tuple(alphabet)
    return all(
        len(h(x)) == t and h(x[:i]) == h(x)[:i]
        for t in range(max_length + 1)
        for x in sequences(alphabet, t)
        for i in range(t + 1)
    )


def is_order_preserving(
    h: Callable[[tuple], tuple], alphabet: Iterable[Token], max_length: int
) -> bool:
    """Whether x <= y implies h(x) <= h(y), over every pair of length at most max_length."""
    alphabet = tuple(alphabet)
    everything = [x for t in range(max_length + 1) for x in sequences(alphabet, t)]
    return all(is_prefix(h(x), h(y)) for y in everything for x in everything if is_prefix(x, y))


@torch.no_grad()
def is_causal_at(h: Callable[[Tensor], Tensor], x: Tensor, *, atol: float = 1e-4) -> bool:
    """Whether h is causal at one tensor x [B, T, ...]: cutting x short keeps earlier outputs.

    True is evidence, not a proof: other tensors are not tried. atol absorbs the rounding of sums in
    another order. Raises ValueError if x is no tensor, or if h does not give as many outputs as
    inputs.
    """
    tensor("x", x, "[B, T, ...]")
    if x.dim() < 2:
        raise ValueError(f"x: expected [B, T, ...], got {[*x.shape]}")
    finite("atol", atol, "0 or more, and finite", low=0)
    y = h(x)
    tensor("h", y, "[B, T, ...]")
    if y.shape[:2] != x.shape[:2]:
        wanted, got = list(x.shape[:2]), list(y.shape[:2])
        raise ValueError(f"h: expected outputs [B, T] as its inputs, {wanted}, got {got}")
    return all(
        torch.allclose(h(x[:, :i]), y[:, :i], rtol=0, atol=atol) for i in range(1, x.shape[1])
    )


@torch.no_grad()
def influence(h: Callable[[Tensor], Tensor], x: Tensor, *, atol: float = 1e-4) -> Tensor:
    """Mask of the outputs that change when one input changes: [T, T], row j the input, column i.

    x: [1, T, D]. Input j is replaced by its negative plus one. A causal h has no entry below the
    diagonal (i < j).
    """
    y = h(x)
    rows = []
    for j in range(x.shape[1]):
        changed = x.clone()
        changed[:, j] = 1 - x[:, j]
        rows.append((h(changed) - y).abs().amax(dim=(0, 2)) > atol)
    return torch.stack(rows)
