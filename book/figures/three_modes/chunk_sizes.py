"""Chunked mode against its chunk size: the second table of `mode_speed`, and its prediction."""

from __future__ import annotations

from lsa.attention.compiled import CHUNK_SIZE
from lsa.cost import PEAKS, best_chunk_size

from ...explorable.figure import Axis, Explorable, Filter, Series
from ..index.mode_speed import cost, least_seconds, limits, narrowest, seconds
from ..lib.axes import PASSES, TIME
from ..lib.format import duration, in_words, listed, times
from ..lib.records import (
    NotMeasuredError,
    Record,
    Row,
    device_name,
    have,
    need,
    provenance,
    row,
    rows,
)
from ..lib.tables import Marked, Missing, Table

LENGTHS = (4096, 16384)  # tokens that the chapter mentions


def curves(records: list[Record]) -> list[Series]:
    """Measured time against chunk size, a curve for each length and pass."""
    series = []
    for run in records:
        for length in dict.fromkeys(run["tables"].get("chunks", {}).get("length", [])):
            for direction in PASSES:
                points = rows(run, "chunks", length=length, **{"pass": direction})
                if not points:
                    continue
                keys = {"mode": "chunked", "length": length, "pass": direction}
                columns = {
                    "chunk_size": [row["chunk_size"] for row in points],
                    "ms": [row["seconds"] * 1e3 for row in points],
                }
                series.append(Series(keys=keys, columns=columns, source=run["path"]))
    return series


def predicted(run: Record, length: int, direction: str, size: int) -> dict[str, float] | None:
    """Seconds of chunked mode's arithmetic, of its traffic with states, and of their sum."""
    if not (speeds := limits(run)):
        return None
    spent = cost(run, "chunked", length, direction, size)
    seconds = {
        "arithmetic": spent.flops / speeds["matmul"],
        "traffic": spent.bytes / speeds["copy"],
    }
    return seconds | {"predicted, both": sum(seconds.values())}


def predicted_lines(run: Record, length: int, direction: str) -> list[Series]:
    """These times against the chunk size, as dashed lines."""
    sizes = sorted({row["chunk_size"] for row in rows(run, "chunks")})
    seconds = [predicted(run, length, direction, size) for size in sizes]
    if None in seconds:
        return []
    keys = {"length": length, "pass": direction}
    return [
        Series(
            keys=keys,
            columns={"chunk_size": sizes, "ms": [each[name] * 1e3 for each in seconds]},
            label=name,
        )
        for name in seconds[0]
    ]


def fastest(run: Record, length: int, direction: str) -> Row:
    """The row of the fastest chunk size. Raises NotMeasuredError."""
    points = rows(run, "chunks", length=length, **{"pass": direction})
    need(points, f"{run['name']}: no chunk sizes measured at {length}")
    return min(points, key=lambda one: one["seconds"])


def level(run: Record, length: int, direction: str) -> set[int]:
    """Chunk sizes whose quartiles overlap those of the fastest. Raises NotMeasuredError."""
    high = fastest(run, length, direction)["high"]
    points = rows(run, "chunks", length=length, **{"pass": direction})
    return {one["chunk_size"] for one in points if one["low"] <= high}


def swept(length: int) -> float:
    """Chunked mode's forward time in the run's sweep over chunk sizes, over its bound.

    Raises NotMeasuredError.
    """
    run = narrowest()
    least = need(least_seconds(run, "chunked", length, "forward"), "mode_speed: no limits")
    of_chunks = {"length": length, "chunk_size": CHUNK_SIZE, "pass": "forward"}
    return row(run, "chunks", **of_chunks)["seconds"] / least


def a_token() -> list[float]:
    """Seconds of a token in recurrent mode, from 1,024 tokens on. Raises NotMeasuredError."""
    points = rows(narrowest(), mode="recurrent", **{"pass": "forward"})
    found = [one["seconds"] / one["length"] for one in points if one["length"] >= 1024]
    return need(found, "mode_speed: no recurrent mode")


def numbers() -> dict[str, str]:
    """Numbers for the chapter on the three modes: the fastest chunks and the predicted ones."""

    def run() -> Record:
        records = need(have("mode_speed"), "mode_speed: nothing stored")
        return records[0]

    def sizes(chunks: set[int | None]) -> str:
        if not chunks or None in chunks:
            raise NotMeasuredError("mode_speed: no chunk sizes, or no limits")
        return listed(f"{size}" for size in sorted(chunks))

    def elsewhere(length: int, direction: str) -> float:
        """Time of the same chunks in turns with the other modes, over that in turns with others."""
        own = row(run(), "chunks", length=length, chunk_size=CHUNK_SIZE, **{"pass": direction})
        return seconds(run(), "chunked", length, direction) / own["seconds"]

    cases = [(length, of) for length in LENGTHS for of in PASSES]
    return in_words(
        chunk_level=lambda: sizes(set.intersection(*(level(run(), *case) for case in cases))),
        chunk_elsewhere=lambda: times(max(elsewhere(*case) for case in cases)),
        swept_4096=lambda: times(swept(LENGTHS[0])),
        swept_16384=lambda: times(swept(LENGTHS[1])),
        token_least=lambda: duration(min(a_token())),
        token_most=lambda: duration(max(a_token())),
    )


def figure(id: str = "chunk-size", records: list[Record] | None = None) -> Explorable | Missing:
    """Time of chunked mode against the chunk size."""
    records = [run for run in records or have("mode_speed") if rows(run, "chunks")]
    if not records:
        return Missing("mode_speed --force", "A sweep over chunk sizes is not stored yet")
    lengths = sorted({length for run in records for length in run["tables"]["chunks"]["length"]})
    return Explorable(
        id=id,
        caption=(
            "**Long chunks take longer.** Time of chunked mode against "
            "its chunk size. Dashed: the time of its arithmetic, of its traffic, and of both in "
            "turn, if every state went to main memory. This program keeps the state in a cache."
        ),
        alt=(
            "Time against chunk size on logarithmic scales: a measured curve, level for short "
            "chunks and rising for long ones. One dashed line falls, for traffic; one rises, for "
            "arithmetic."
        ),
        series=curves(records),
        ceilings=[
            line
            for run in records
            for length in lengths
            for direction in PASSES
            for line in predicted_lines(run, length, direction)
        ],
        x=Axis("chunk_size", "Chunk size", "tokens", log=2),
        y=TIME,
        color="mode",
        mark="line+dot",
        controls=[
            Filter("length", "Length", default=lengths[-1]),
            Filter("pass", "Pass", options=PASSES, default="forward"),
        ],
        provenance=provenance(records),
    )


def table() -> Table:
    """Operations a byte and the best chunk for them, from data sheets and from measurements."""
    speeds = {name: (peak.flops, peak.bytes) for name, peak in PEAKS.items()}
    for run in have("mode_speed")[:1]:
        if measured := limits(run):
            speeds[f"{device_name(run)}, measured"] = measured["matmul"], measured["copy"]
    cells = [
        [name, f"{flops / traffic:.0f}", f"{best_chunk_size(64, 64, flops, traffic):.0f}"]
        for name, (flops, traffic) in speeds.items()
    ]
    return Table(["machine", "operations a byte", Marked("best $C$ at $d=64$")], cells, wrap=True)
