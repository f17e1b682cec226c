"""Attention over several processes, measured by `rank_speed`."""

from __future__ import annotations

from ...explorable.figure import Axis, Choice, Explorable, Filter, Series
from ..lib.axes import TIME
from ..lib.format import in_words, percent, size, times, times_between
from ..lib.records import NotMeasuredError, Record, have, need, of_config, provenance, row, rows
from ..lib.tables import Missing, Table

EXPERIMENT = "rank_speed"
PLACES = ("short", "middle", "long")  # the sequences of each attention


def run() -> Record:
    """The stored run of several processes. Raises NotMeasuredError."""
    return need([one for one in have(EXPERIMENT) if rows(one)], f"{EXPERIMENT}: nothing stored")[0]


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


def before_last(attention: str) -> int:
    """Tokens of the second longest sequence. Raises NotMeasuredError."""
    all_lengths = lengths(attention)
    if len(all_lengths) < 2:
        raise NotMeasuredError(f"{EXPERIMENT}: one length of {attention}")
    return all_lengths[-2]


def speedup(attention: str, ranks: int, place: int = -1) -> float:
    """Speedup over one process, at the longest sequence by default. Raises NotMeasuredError."""
    by_ranks = seconds(attention, lengths(attention)[place])
    if ranks not in by_ranks:
        raise NotMeasuredError(f"{EXPERIMENT}: not on {ranks} processes")
    return by_ranks[1] / by_ranks[ranks]


def faster(attention: str, length: int, ranks: int) -> str:
    """Speedup over one process for prose, with the range from the quartiles. NotMeasuredError."""
    alone, together = (row(run(), attention=attention, length=length, ranks=n) for n in (1, ranks))
    return times_between(alone, together) if ranks > 1 else times(1)


def tensor_bytes() -> int:
    """Bytes of q at linear attention's longest sequence, in one process. NotMeasuredError."""
    config = run()["config"]
    return 4 * config["heads"] * config["width"] * lengths("linear")[-1]


def products(ranks: int) -> float:
    """Score products of a ring over those of one process, which fills the square and masks half.

    The ranks compute only the blocks on and below the diagonal of the P² blocks.
    """
    return (ranks + 1) / (2 * ranks)


def alone(attention: str, kept: str, column: str, place: int = -1) -> float:
    """A column of one process, at the longest sequence by default. Raises NotMeasuredError."""
    stored = of_config(have(EXPERIMENT), calls=9)
    points = rows(stored, "alone", attention=attention, kept=kept)
    if len(points) < abs(place):
        raise NotMeasuredError(f"{EXPERIMENT}: not alone")
    return sorted(points, key=lambda one: one["length"])[place][column]


def growth(attention: str, kept: str) -> float:
    """Processor time at the longest sequence over that at the shortest, for the same work.

    Linear attention's work is proportional to tokens, softmax's to their square. NotMeasuredError.
    """
    stored = of_config(have(EXPERIMENT), calls=9)
    first, *_, last = stored["config"][attention]
    work = (last / first) ** {"linear": 1, "softmax": 2}[attention]
    took = [
        row(stored, "alone", attention=attention, kept=kept, length=length)["processor"]
        for length in (first, last)
    ]
    return took[1] / took[0] / work


def timed_growth(attention: str) -> float:
    """A token's time at the longest sequence over that at the shortest. NotMeasuredError."""
    first, last = lengths(attention)[0], lengths(attention)[-1]
    return seconds(attention, last)[1] / seconds(attention, first)[1] * first / last


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
            "**Two processes are faster than one, on a computer of two cores.** Speed of attention "
            "with two heads, forward and backward, against one process. A process has one thread. "
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
            [one["attention"], f"{one['length']:,}", str(one["ranks"]),
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
    for attention in ("linear", "softmax"):
        for kept, name in {"no": "given_back", "yes": "kept"}.items():
            functions[f"{attention}_{name}"] = lambda a=attention, k=kept: times(growth(a, k))
    return in_words(
        **functions,
        linear_longest=lambda: f"{lengths('linear')[-1]:,}",
        linear_shortest=lambda: f"{lengths('linear')[0]:,}",
        softmax_longest=lambda: f"{lengths('softmax')[-1]:,}",
        ring_products=lambda: percent(products(4)),
        faults=lambda: f"{alone('linear', 'no', 'faults'):,.0f}",
        faults_kept=lambda: f"{alone('linear', 'yes', 'faults'):,.0f}",
        faults_before=lambda: f"{alone('linear', 'no', 'faults', -2):,.0f}",
        linear_before=lambda: f"{before_last('linear'):,}",
        tensor=lambda: size(tensor_bytes()),
        linear_timed=lambda: times(timed_growth("linear")),
        ring_block=lambda: size(4 * run()["config"]["heads"] * (lengths("softmax")[-1] // 2) ** 2),
    )
