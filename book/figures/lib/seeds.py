"""How many seeds stand behind a number, and how far they lie apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

from .format import counted, listed
from .records import NotMeasuredError


def how_many_seeds(count: int) -> str:
    """ "one seed", "three seeds"."""
    return f"{counted(count)} seed{'' if count == 1 else 's'}"


def seeds_in_words(counts: Sequence[int]) -> str:
    """How many seeds several models have: "one seed", "two seeds each", "one to three seeds"."""
    fewest, most = counted(min(counts)), counted(max(counts))
    if fewest == most:
        return "one seed" if most == "one" else f"{most} seeds each"
    return f"{fewest} to {most} seeds"


def seeds_by_context(counts: Mapping[int, Sequence[int]]) -> str:
    """How many seeds several models have, by the context of their training, most seeds first:
    "three seeds each at 4,096 bytes, one seed at 256 and 16,384". Raises NotMeasuredError.
    """
    if not counts:
        raise NotMeasuredError("no seed of any context")
    contexts: dict[str, list[int]] = {}
    for context, each in sorted(counts.items(), key=lambda item: -sum(item[1])):
        told = seeds_in_words(each) if len(each) > 1 else how_many_seeds(*each)
        contexts.setdefault(told, []).append(context)
    parts = [f"{seeds} at {listed(f'{n:,}' for n in sorted(at))}" for seeds, at in contexts.items()]
    return ", ".join([f"{parts[0]} bytes", *parts[1:]])


def bars(seeds: str) -> str:
    """A caption's sentence about them: "Two seeds each; bars span them." """
    return f"{seeds.capitalize()}{'' if seeds == 'one seed' else '; bars span them'}."


def mean_and_spread(values: Sequence[float]) -> str:
    """Losses over seeds: 1.623 ± 0.004, half of their range; of one seed it says so."""
    if len(values) == 1:
        return f"{values[0]:.3f} (one seed)"
    return f"{mean(values):.3f} ± {(max(values) - min(values)) / 2:.3f}"
