"""The program that the draft prints, beside two modes: the table `draft` of `mode_speed`."""

from __future__ import annotations

from lsa.attention.compiled import CHUNK_SIZE

from ..index.mode_speed import cost, limits, narrowest
from ..lib.format import in_words, size, times, times_between
from ..lib.records import NotMeasuredError, Row, row

LENGTH = 4096  # tokens that the chapter mentions
LONGEST = 16384


def point(mode: str, length: int = LENGTH, direction: str = "forward") -> Row:
    """A timing without a normaliser. mode: `cumsum` for the draft's program, or a mode's name.

    Raises NotMeasuredError.
    """
    return row(narrowest(), "draft", mode=mode, length=length, **{"pass": direction})


def chunks_of(tokens: int) -> Row:
    """A timing of chunked mode's forward pass of the longest text. Raises NotMeasuredError."""
    wanted = {"length": LONGEST, "pass": "forward", "chunk_size": tokens}
    return row(narrowest(), "chunks", **wanted)


def crossing() -> float:
    """Tokens at which the program would overtake attention mode forwards. Raises NotMeasuredError.

    One grows with the length and the other with its square, so their ratio grows with the length.
    """
    return LENGTH * point("cumsum")["seconds"] / point("attention")["seconds"]


def growth(mode: str) -> float:
    """Forward time over that of a quarter of the length. Raises NotMeasuredError."""
    return point(mode)["seconds"] / point(mode, LENGTH // 4)["seconds"]


def traffic() -> float:
    """The time of the states' bytes at the speed of a copy, over the program's forward time.

    Each state is written once and read once. Raises NotMeasuredError.
    """
    if not (speeds := limits(narrowest())):
        raise NotMeasuredError("mode_speed: no limits")
    moved = cost(narrowest(), "chunked", LENGTH, "forward", 1).bytes
    return moved / speeds["copy"] / point("cumsum")["seconds"]


def numbers() -> dict[str, str]:
    """Numbers for the chapter on the three modes: the draft's program, and chunks of one token."""
    return in_words(
        draft_recurrent=lambda: times_between(point("cumsum"), point("recurrent")),
        draft_attention=lambda: times_between(point("cumsum"), point("attention")),
        draft_meets=lambda: f"{float(f'{crossing():.2g}'):,.0f}",
        draft_memory=lambda: size(point("cumsum")["peak"]),
        draft_traffic=lambda: times(1 / traffic()),
        chunk_one=lambda: times_between(chunks_of(1), chunks_of(CHUNK_SIZE)),
    )
