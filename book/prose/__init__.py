"""Sentences of the chapters that new results could contradict, each with its condition.

There is a module for each chapter, with the chapter's name in underscores, and one for captions.
Its `VERDICTS` maps a quotation to a function of the stored results.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, Protocol

from ..figures.lib.records import NotMeasuredError

BOOK = Path(__file__).parents[1]
CAPTIONS = "captions"
Holds = Callable[[], bool]


class Verdict(NamedTuple):
    """A quotation from a chapter or `CAPTIONS`, and whether the stored results support it."""

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


def source(verdict: Verdict) -> Path | None:
    """The file that a quotation is from: its chapter, or the module of a caption."""
    files = [BOOK / f"{verdict.chapter}.md"]
    if verdict.chapter == CAPTIONS:
        files = sorted((BOOK / "figures").rglob("*.py"))
    return next((file for file in files if verdict.sentence in _text(file)), None)


@cache
def _text(file: Path) -> str:
    """A page in one line, or all strings of a module."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        nodes = ast.walk(ast.parse(text))
        strings = [node.value for node in nodes if isinstance(node, ast.Constant)]
        text = "\n".join(string for string in strings if isinstance(string, str))
    return " ".join(text.split())


def is_contradicted(verdict: Verdict) -> bool:
    """Whether results contradict a sentence, or are missing."""
    try:
        return not verdict.holds()
    except NotMeasuredError:
        return True
