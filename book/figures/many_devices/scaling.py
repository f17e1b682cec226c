"""Attention over several processes, measured: `rank_speed`."""

from __future__ import annotations

from ...explorable.figure import Axis, Choice, Explorable, Filter, Series
from ..lib.axes import TIME
from ..lib.format import in_words, times
from ..lib.records import NotMeasuredError, Record, have, provenance, rows
from ..lib.tables import Missing, Table

EXPERIMENT = "rank_speed"


def run() -> Record:
    """The stored run. Raises NotMeasuredError."""
    if not (found := have(EXPERIMENT)):
        raise NotMeasuredError(f"{EXPERIMENT}: nothing stored")
    return found[0]


def seconds(attention: str, length: int) -> dict[int, float]:
    """By the number of processes. Raises NotMeasuredError."""
    found = {
        row["ranks"]: row["seconds"] for row in rows(run(), attention=attention, length=length)
    }
    if 1 not in found:
        raise NotMeasuredError(f"{EXPERIMENT}: {attention} at {length} was not timed alone")
    return found


def speedup(attention: str, ranks: int) -> float:
    """Over one process, at the longest sequence. Raises NotMeasuredError."""
    longest = max(row["length"] for row in rows(run(), attention=attention))
    found = seconds(attention, longest)
    if ranks not in found:
        raise NotMeasuredError(f"{EXPERIMENT}: not on {ranks} processes")
    return found[1] / found[ranks]


def figure(id: str = "rank-speed") -> Explorable | Missing:
    """Times over one process, by the number of processes."""
    try:
        stored = run()
    except NotMeasuredError:
        return Missing(EXPERIMENT)
    series, lengths = [], {}
    for attention in ("linear", "softmax"):
        lengths[attention] = sorted({row["length"] for row in rows(stored, attention=attention)})
        for place, length in zip(("short", "middle", "long"), lengths[attention], strict=True):
            found = seconds(attention, length)
            columns = {
                "ranks": [*found],
                "faster": [found[1] / one for one in found.values()],
                "ms": [1e3 * one for one in found.values()],
            }
            keys = {"attention": attention, "length": place}
            series.append(Series(keys, columns, source=stored["path"]))
    told = " and ".join(
        f"{', '.join(f'{n:,}' for n in each)} ({name})" for name, each in lengths.items()
    )
    most = max(rows(stored), key=lambda row: row["ranks"])["ranks"]
    even = {"ranks": [1, most], "faster": [1, most]}
    return Explorable(
        id=id,
        caption=(
            "**What further processes bring, by the length of the text.** Attention of two heads, "
            "forward and backward, over processes of one thread each. Dashed: as many times as "
            f"fast as there are processes. Tokens in all: {told}."
        ),
        alt="Speed over one process against the number of processes, with a dashed diagonal.",
        series=series,
        ceilings=[Series({}, even, label="as many times as processes")],
        x=Axis("ranks", "Processes", log=2),
        y=Choice(
            "Show",
            [
                Axis("faster", "Faster than one process", "×", digits=3),
                TIME,
            ],
        ),
        color="attention",
        mark="line+dot",
        controls=[Filter("length", "Text", options=("short", "middle", "long"), default="long")],
        provenance=provenance([stored]),
    )


def table() -> Table | Missing:
    """Milliseconds and bytes of every row."""
    try:
        stored = run()
    except NotMeasuredError:
        return Missing(EXPERIMENT)
    cells = [
        [row["attention"], f"{row['length']:,}", str(row["ranks"]), f"{1e3 * row['seconds']:.1f}",
         f"{row['received']:,}"]
        for row in rows(stored)
    ]  # fmt: skip
    return Table(["attention", "tokens", "processes", "ms", "received, B"], cells)


def numbers() -> dict[str, str]:
    """Numbers for the chapter: two processes."""
    return in_words(
        linear_on_two=lambda: times(speedup("linear", 2)),
        softmax_on_two=lambda: times(speedup("softmax", 2)),
    )
