"""A trained model that reads on past the length of its training: the loss there."""

from __future__ import annotations

from ..lib.format import in_words
from ..lib.records import NotMeasuredError, Record, Row, learned, need, rows
from ..lib.tables import Missing, Table
from .measured import Mean, mean_of

EXPERIMENT = "whole_novels"
READERS = {
    "softmax": "all 270",
    "24-heads": "24",
    "confined": "none",
    "confined-adjacent": "none, adjacent",
    "states": "none, states",
    "states-adjacent": "none, states, adjacent",
    "states-fading": "the same, fading",
}


def stored(reader: str) -> Record:
    """The run in which some heads look back. Raises NotMeasuredError."""
    found = [run for run in learned(EXPERIMENT) if run["name"] == f"smollm2-{reader}"]
    return need(found, f"{EXPERIMENT}: no smollm2-{reader}")[0]


def limit() -> int:
    """Tokens of the longest texts in its training. Raises NotMeasuredError."""
    return stored("confined")["config"]["context"]


def parts(reader: str) -> dict[int, list[Row]]:
    """{first position of a doubling: a row for each novel that reaches its end}."""
    found: dict[int, list[Row]] = {}
    for one in rows(stored(reader), "positions"):
        if one["last"] == 2 * (one["first"] - 1):
            found.setdefault(one["first"], []).append(one)
    return found


def cost(reader: str, first: int) -> Mean:
    """Loss with the whole novel before a token, less that with a window of it, novel by novel.

    Above zero the far past does harm. Raises NotMeasuredError.
    """
    found = need(parts(reader).get(first), f"{EXPERIMENT}: {reader} not from {first}")
    return mean_of([one["whole"] - one["window"] for one in found])


def table() -> Table | Missing:
    """Cost of the far past by position, for each reader that has read."""
    read = {}
    for reader in READERS:
        try:
            read[reader] = parts(reader)
        except NotMeasuredError:
            continue
    if not any(read.values()):
        return Missing(EXPERIMENT)
    firsts = sorted({first for found in read.values() for first in found})
    cells = [
        [READERS[reader], *(str(cost(reader, first)) if first in found else "" for first in firsts)]
        for reader, found in read.items()
    ]
    titles = [f"{first:,} to {2 * (first - 1):,}" for first in firsts]
    return Table(["heads that look back", *titles], cells)


def numbers() -> dict[str, str]:
    """Numbers for the chapter."""
    return in_words(
        past_limit=lambda: f"{limit():,}",
        past_softmax=lambda: cost("softmax", limit() + 1),
        past_confined=lambda: cost("confined", limit() + 1),
        past_adjacent=lambda: cost("confined-adjacent", limit() + 1),
        past_fading=lambda: cost("states-fading", limit() + 1),
        past_states=lambda: cost("states-adjacent", limit() + 1),
    )
