"""Sentences of the chapters that new results could contradict, each with its condition.

There is a module for each chapter, with the chapter's name in underscores. Its `VERDICTS` maps a
quotation from the chapter to a function of the stored results.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from ..figures.lib.records import NotMeasuredError

Holds = Callable[[], bool]


class Verdict(NamedTuple):
    """A quotation from a chapter, and whether the stored results support it."""

    chapter: str
    sentence: str
    holds: Holds


def every(results: Iterable[bool]) -> bool:
    """`all`, but False for no results."""
    answers = [*results]
    return bool(answers) and all(answers)


class Estimate(Protocol):
    """A mean with half of its 95% interval, None if a single value has none."""

    @property
    def mean(self) -> float: ...
    @property
    def half(self) -> float | None: ...


def is_above(estimate: Estimate) -> bool:
    """Whether the 95% interval of a mean lies above zero."""
    return estimate.half is not None and estimate.mean > estimate.half


def is_below(estimate: Estimate) -> bool:
    """Whether the 95% interval of a mean lies below zero."""
    return estimate.half is not None and estimate.mean < -estimate.half


def is_undecided(estimate: Estimate) -> bool:
    """Whether the 95% interval of a mean includes zero."""
    return estimate.half is not None and abs(estimate.mean) <= estimate.half


def verdicts() -> Iterator[Verdict]:
    """All verdicts, chapter by chapter."""
    for module_info in pkgutil.iter_modules(__path__):
        if not module_info.name.startswith("__"):
            module = importlib.import_module(f"{__name__}.{module_info.name}")
            for sentence, holds in module.VERDICTS.items():
                yield Verdict(module_info.name.replace("_", "-"), sentence, holds)


def is_contradicted(verdict: Verdict) -> bool:
    """Whether results contradict a sentence, or are missing."""
    try:
        return not verdict.holds()
    except NotMeasuredError:
        return True
