"""Attention over several processes, measured by `rank_speed`."""

from __future__ import annotations

from ...explorable.figure import Axis, Choice, Explorable, Filter, Series
from ..lib.axes import TIME
from ..lib.format import in_words, percent, times, times_between
from ..lib.records import NotMeasuredError, Record, have, need, provenance, row, rows
from ..lib.tables import Missing, Table

EXPERIMENT = "rank_speed"
NAMES = {"plain": "linear, without ranks"}
PLACES = ("short", "middle", "long")  # the sequences of each attention


def run() -> Record:
    """The stored run. Raises NotMeasuredError."""
    return need(have(EXPERIMENT), f"{EXPERIMENT}: nothing stored")[0]


def seconds(attention: str, length: int) -> dict[int, float]:
    """Seconds by number of processes. Raises NotMeasuredError."""
    by_ranks = {
        row["ranks"]: row["seconds"] for row in rows(run(), attention=attention, length=length)
    }
    if 1 not in by_ranks:
        raise NotMeasuredError(f"{EXPERIMENT}: {attention} at {length} was not timed alone")
    return by_ranks


def lengths(attention: str) -> list[int]:
    """Lengths in tokens, shortest first. Raises NotMeasuredError."""
    ascending = sorted({row["length"] for row in rows(run(), attention=attention)})
    return need(ascending, f"{EXPERIMENT}: no {attention}")


def speedup(attention: str, ranks: int, place: int = -1) -> float:
    """Speedup over one process, at the longest sequence by default. Raises NotMeasuredError."""
    by_ranks = seconds(attention, lengths(attention)[place])
    if ranks not in by_ranks:
        raise NotMeasuredError(f"{EXPERIMENT}: not on {ranks} processes")
    return by_ranks[1] / by_ranks[ranks]


def faster(attention: str, length: int, ranks: int) -> str:
    """Speedup over one process for prose, with the range from the quartiles. NotMeasuredError."""
    if attention == "plain":
        return ""
    alone, together = (row(run(), attention=attention, length=length, ranks=n) for n in (1, ranks))
    return times_between(alone, together) if ranks > 1 else times(1)


def products(ranks: int) -> float:
    """Score products of a ring over those of one process, which fills the square and masks half.

    The ranks compute only the blocks on and below the diagonal of the P² blocks.
    """
    return (ranks + 1) / (2 * ranks)


def over_plain(ranks: int, place: int = -1) -> str:
    """Speedup over one process without ranks, with its range, for prose. NotMeasuredError."""
    length = lengths("linear")[place]
    plain = row(run(), attention="plain", length=length)
    return times_between(plain, row(run(), attention="linear", length=length, ranks=ranks))


def figure(id: str = "rank-speed") -> Explorable | Missing:
    """Speedup over one process, by the number of processes."""
    try:
        stored = run()
    except NotMeasuredError:
        return Missing(EXPERIMENT)
    series, drawn = [], {}
    for attention in ("linear", "softmax"):
        try:
            drawn[attention] = lengths(attention)
        except NotMeasuredError:
            continue
        for place, length in zip(PLACES, drawn[attention], strict=False):
            by_ranks = seconds(attention, length)
            columns = {
                "ranks": [*by_ranks],
                "faster": [by_ranks[1] / one for one in by_ranks.values()],
                "ms": [1e3 * one for one in by_ranks.values()],
            }
            keys = {"attention": attention, "length": place}
            series.append(Series(keys, columns, source=stored["path"]))
    totals = " and ".join(
        f"{', '.join(f'{n:,}' for n in each)} ({name})" for name, each in drawn.items()
    )
    most = max(rows(stored), key=lambda row: row["ranks"])["ranks"]
    even = {"ranks": [1, most], "faster": [1, most]}
    return Explorable(
        id=id,
        caption=(
            "**Two processes are faster than one that runs the same program.** Speed of attention "
            "with two heads, forward and backward, against one that runs the same program. Each "
            "has one thread. "
            f"Dashed: speed in proportion to the processes. Tokens in all: {totals}."
        ),
        alt="Speed over one process against the number of processes, with a dashed diagonal.",
        series=series,
        ceilings=[Series({}, even, label="in proportion")],
        x=Axis("ranks", "Processes", log=2),
        y=Choice("Show", [Axis("faster", "Faster than one process", "×", digits=3), TIME]),
        color="attention",
        mark="line+dot",
        controls=[
            Filter("length", "Text", options=PLACES, default=series[-1].keys["length"]),
        ],
        provenance=provenance([stored]),
    )


def table() -> Table | Missing:
    """Milliseconds, speedup over one process, and bytes of every row."""
    try:
        stored = run()
    except NotMeasuredError:
        return Missing(EXPERIMENT)
    cells = []
    for one in rows(stored):
        shape = one["attention"], one["length"], one["ranks"]
        cells.append(
            [NAMES.get(one["attention"], one["attention"]), f"{one['length']:,}", str(one["ranks"]),
             f"{1e3 * one['seconds']:.1f}", faster(*shape), f"{one['received']:,}"]
        )  # fmt: skip
    titles = ["attention", "tokens", "processes", "ms", "over one process", "received, B"]
    return Table(titles, cells)


def numbers() -> dict[str, str]:
    """Numbers for the chapter: the shortest and the longest sequence."""
    functions = {
        f"{attention}_on_{name}{end}": lambda a=attention, n=ranks, i=place: faster(
            a, lengths(a)[i], n
        )
        for attention in ("linear", "softmax")
        for name, ranks in {"two": 2, "four": 4}.items()
        for end, place in {"": -1, "_short": 0}.items()
    }
    return in_words(
        **functions,
        ring_products=lambda: percent(products(4)),
        plain_on_one=lambda: over_plain(1),
        plain_on_two=lambda: over_plain(2),
        plain_on_two_short=lambda: over_plain(2, 0),
    )
