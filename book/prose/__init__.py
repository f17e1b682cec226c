"""Sentences of the chapters that new results could contradict, each with its condition.

There is a module for each chapter, with the chapter's name in underscores. Its `VERDICTS` maps a
quotation from the chapter to a function of the stored results.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

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
