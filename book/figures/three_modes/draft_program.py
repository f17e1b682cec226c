"""The program that the draft prints, beside the package's modes: the run of `draft_speed`."""

from __future__ import annotations

from ..lib.format import in_words, size, times, times_between
from ..lib.records import Record, Row, have, need, row

LENGTH = 4096  # tokens that the chapter mentions


def run() -> Record:
    """The stored run. Raises NotMeasuredError if there is none."""
    records = need(have("draft_speed"), "draft_speed: nothing stored")
    return records[0]


def point(program: str, length: int = LENGTH) -> Row:
    """Timing of a forward pass without a normaliser. Raises NotMeasuredError."""
    return row(run(), program=program, length=length, **{"pass": "forward"})


def traffic() -> float:
    """The program's forward time over that of its bytes at the speed of a copy.

    Each outer product and each state is written once and read once. Raises NotMeasuredError.
    """
    states = LENGTH * run()["config"]["width"] ** 2 * 4
    (copy,) = run()["tables"]["limits"]["copy"]
    return point("cumsum")["seconds"] / (4 * states / copy)


def numbers() -> dict[str, str]:
    """Numbers for the chapter on the three modes: the draft's program, and chunks of one token."""
    return in_words(
        draft_recurrent=lambda: times_between(point("cumsum"), point("recurrent")),
        draft_attention=lambda: times_between(point("cumsum"), point("attention")),
        draft_memory=lambda: size(point("cumsum")["peak"]),
        draft_traffic=lambda: times(traffic()),
        chunk_one=lambda: times_between(point("chunks of one token"), point("chunked")),
    )
