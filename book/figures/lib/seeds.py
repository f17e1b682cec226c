"""The number of seeds behind a result, and their spread, in words."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from .format import counted


def how_many_seeds(count: int) -> str:
    """ "one seed", "three seeds"."""
    return f"{counted(count)} seed{'' if count == 1 else 's'}"


def seeds_in_words(counts: Sequence[int]) -> str:
    """The seeds of several models: "one seed", "two seeds each", "one to three seeds"."""
    fewest, most = counted(min(counts)), counted(max(counts))
    if fewest == most:
        return "one seed" if most == "one" else f"{most} seeds each"
    return f"{fewest} to {most} seeds"


def bars(seeds: str) -> str:
    """A caption's sentence on error bars: "Two seeds each; bars span them." """
    return f"{seeds.capitalize()}{'' if seeds == 'one seed' else '; bars span them'}."


def mean_and_spread(values: Sequence[float]) -> str:
    """Losses over seeds: 1.623 ± 0.004, half of their range; a single seed is named as one."""
    if len(values) == 1:
        return f"{values[0]:.3f} (one seed)"
    return f"{fmean(values):.3f} ± {(max(values) - min(values)) / 2:.3f}"
