"""The number of seeds behind a result, and their spread, in words."""

from __future__ import annotations

from collections.abc import Sequence

from .format import counted
from .pairs import compare


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


def mean_over_seeds(values: Sequence[float]) -> str:
    """Losses over seeds: 1.623 ± 0.011, its 95% interval; a single seed is named as one."""
    return f"{compare(values).spread()}{' (one seed)' if len(values) == 1 else ''}"
