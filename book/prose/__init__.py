"""Sentences of the chapters that new results could contradict, each with what must hold for it.

A module a chapter, named like it with underscores. `VERDICTS` in it maps words of the chapter,
quoted as they stand there, to a function of the stored results.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ..figures.lib.records import NotMeasuredError

Holds = Callable[[], bool]


class Verdict(NamedTuple):
    """Words of a chapter, and whether the stored results bear them out."""

    chapter: str
    sentence: str
    holds: Holds


def every(found: Iterable[bool]) -> bool:
    """`all`, and at least one: of no results nothing is true."""
    answers = [*found]
    return bool(answers) and all(answers)


def verdicts() -> Iterator[Verdict]:
    """All of them, chapter by chapter."""
    for found in pkgutil.iter_modules(__path__):
        if not found.name.startswith("__"):
            module = importlib.import_module(f"{__name__}.{found.name}")
            for sentence, holds in module.VERDICTS.items():
                yield Verdict(found.name.replace("_", "-"), sentence, holds)


def is_contradicted(verdict: Verdict) -> bool:
    """Whether results say otherwise, or say nothing because they are not stored."""
    try:
        return not verdict.holds()
    except NotMeasuredError:
        return True
