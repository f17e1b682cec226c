"""Runs compared in pairs that share seed, text and order, and differ in one thing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from statistics import mean, stdev
from typing import NamedTuple

from .records import Record, need
from .seed_error import t_95


class Pairs(NamedTuple):
    """Mean difference of pairs, in the unit of the differences.

    mean       mean difference
    error      its standard error; None for a single pair
    agreeing   number of differences with the sign of the mean
    count      number of pairs
    """

    mean: float
    error: float | None
    agreeing: int
    count: int

    @property
    def half(self) -> float | None:
        """Half of the 95% interval by Student's t; None for a single pair."""
        return None if self.error is None else t_95(self.count) * self.error

    def spread(self, digits: int = 3) -> str:
        """The size of the difference, with half of its 95% interval: "0.013 ± 0.002"."""
        size = f"{abs(self.mean):.{digits}f}"
        return size if self.half is None else f"{size} ± {self.half:.{digits}f}"

    def signed(self, digits: int = 3) -> str:
        """The same with its sign: "−0.013 ± 0.002"."""
        return f"{'−' if self.mean < 0 else '+'}{self.spread(digits)}"

    def of(self) -> str:
        """How many pairs agree in sign: "23 of 24"."""
        return f"{self.agreeing} of {self.count}"


def by_seed(first: Iterable[Record], second: Iterable[Record]) -> dict[int, float]:
    """The last validation loss of runs minus that of others, by seed.

    The runs of a list have one configuration and different seeds. Raises NotMeasuredError if no
    seed has both.
    """
    last, other = (
        {run["config"]["seed"]: run["tables"]["validation"]["loss"][-1] for run in runs}
        for runs in (first, second)
    )
    shared = need(sorted(last.keys() & other.keys()), "no seed of both")
    return {seed: last[seed] - other[seed] for seed in shared}


def differences(first: Iterable[Record], second: Iterable[Record]) -> list[float]:
    """The same differences, in the order of the seeds."""
    return [*by_seed(first, second).values()]


def compare(differences: Sequence[float]) -> Pairs:
    """Mean, standard error and signs of differences. Raises NotMeasuredError if there are none."""
    count = need(len(differences), "no pairs")
    middle = mean(differences)
    error = stdev(differences) / sqrt(count) if count > 1 else None
    agreeing = sum(x * middle > 0 for x in differences)
    return Pairs(middle, error, agreeing, count)


def compare_seeds(every: Iterable[Mapping[int, float]]) -> Pairs:
    """`compare` of each seed's mean over several `by_seed`. Raises NotMeasuredError for none.

    Runs of one seed share text and order over contexts and layers, so their differences are not
    independent; seeds are. Only seeds that all have are used.
    """
    maps = [*every]
    shared = set.intersection(*map(set, maps)) if maps else set()
    return compare([mean(one[seed] for one in maps) for seed in sorted(shared)])
