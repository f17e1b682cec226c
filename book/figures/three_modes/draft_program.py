"""The program that the draft prints, beside the package's modes: the run of `draft_speed`."""

from __future__ import annotations

from ..lib.format import in_words, percent, times_between
from ..lib.records import Record, Row, have, need, row

LENGTH = 4096  # tokens that the chapter mentions
SAME = ("recurrent", "chunks of one token")  # forwards one program of the package


def run() -> Record:
    """The stored run. Raises NotMeasuredError if there is none."""
    records = need(have("draft_speed"), "draft_speed: nothing stored")
    return records[0]


def point(program: str, length: int = LENGTH) -> Row:
    """Timing of a forward pass without a normaliser. Raises NotMeasuredError."""
    return row(run(), program=program, length=length, **{"pass": "forward"})


def named_twice() -> float:
    """The largest ratio of the forward times of one program, timed under two names."""
    return max(
        one / other
        for length in run()["config"]["lengths"]
        for pair in [[point(name, length)["seconds"] for name in SAME]]
        for one, other in (pair, pair[::-1])
    )


def numbers() -> dict[str, str]:
    """Numbers for the chapter on the three modes: the draft's program, and chunks of one token."""
    return in_words(
        draft_recurrent=lambda: times_between(point("cumsum"), point("recurrent")),
        draft_attention=lambda: times_between(point("cumsum"), point("attention")),
        named_twice=lambda: percent(named_twice() - 1),
        chunk_one=lambda: times_between(point("chunks of one token"), point("chunked")),
    )
