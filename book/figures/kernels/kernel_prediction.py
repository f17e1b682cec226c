"""Predicted times of the kernels, and how near other kernels came to their bounds."""

from __future__ import annotations

from itertools import product
from math import sqrt

from IPython.display import HTML

from lsa.cost import PEAKS, least_bytes

from ...explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from ...explorable.markup import json_script
from ..lib.axes import PASSES
from ..lib.format import counted, in_words
from ..lib.records import NotMeasuredError, Row, have, need, provenance, rows
from ..lib.tables import Missing
from .kernel_speed import COLUMNS, LADDERS, LAUNCHES, shape_label
from .published import LARGE, PUBLISHED

IMPLEMENTATIONS = {
    "chunked": "ours",
    "normalised": "ours, normalised",
    "stored states": "stored states",
    "stored normalised": "stored states, normalised",
    "fla": "fla",
}
SOURCES = {"reported": "measured or published", "predicted": "predicted"}
BOTH = "forward+backward"
SHAPE = ("batch", "length", "heads", "width")
CASE = ("shapes", *SHAPE, "normalized", "pass")


def stored(table: str) -> list[Row]:
    """Rows of the stored prediction. Raises NotMeasuredError if there are none."""
    matching = [row for run in have("kernel_prediction") for row in rows(run, table)]
    return need(matching, f"kernel_prediction: no {table}")


def nearness() -> tuple[float, float]:
    """The share of their bytes' time in fla's published times, for the large shapes."""
    (assumed,) = stored("assumed")
    return assumed["near"], assumed["nearest"]


def account() -> list[Row]:
    """Every case of the stored prediction. Raises NotMeasuredError if nothing is stored."""
    return stored("rows")


def _of_case(row: Row, implementation: str) -> tuple[float, float]:
    """Predicted time of a case as a CUDA graph, at best and at worst."""
    (predicted,) = (
        one
        for one in stored("expected")
        if (one["implementation"], one["launch"]) == (implementation, "graph")
        and all(one[key] == row[key] for key in CASE)
    )
    return predicted["low"], predicted["high"]


def expected(row: Row) -> tuple[float, float]:
    """The least and the most seconds that our call should take, as a CUDA graph."""
    return _of_case(row, "ours")


def expected_of_stored(row: Row) -> tuple[float, float]:
    """The same for the design that stores every chunk's state."""
    return _of_case(row, "stored states")


def published_seconds(row: Row, library: str = "fla") -> float | None:
    """Published time of a library for this shape and pass; None if there is none."""
    for entry in PUBLISHED:
        if entry[:4] == tuple(row[key] for key in SHAPE):
            return 1e-3 * entry[COLUMNS[library, row["pass"]]]
    return None


def measured(row: Row) -> tuple[float, float] | None:
    """Seconds of our call on an H100, at best and at worst; None until it is measured.

    With the launch that the row names, or as a CUDA graph.
    """
    ours = "ours" if row["normalized"] == "no" else "ours, normalised"
    launch, keys = row.get("launch", "graph"), (*SHAPE, "pass")
    for run in have("kernel_speed"):
        if "H100" in run["provenance"]["device"]["name"]:
            for one in rows(run, implementation=ours, launch=launch):
                if all(one[key] == row[key] for key in keys):
                    return one["low"], one["high"]
    return None


def _share(row: Row, seconds: float) -> float:
    """Part of the memory limit of an H100 that a call of this shape and time reaches."""
    B, T, H, d = (row[key] for key in SHAPE)
    moved = B * T * H * least_bytes(1, d, d, training=row["pass"] != "forward")
    return moved / PEAKS["H100 SXM"].bytes / seconds


def bet() -> dict[str, str | int | None]:
    """The subject of a reader's bet: the largest published shape of heads of 128, forwards.

    Its label and, in percent of the limit, our prediction, fla's published and our measured call.
    Raises NotMeasuredError.
    """

    def tokens(row: Row) -> int:
        return row["batch"] * row["length"] * row["heads"]

    row = max(large(128, "no", "forward"), key=tokens)
    (best, worst), timed = expected(row), measured(row)
    seconds = {
        "low": worst,
        "high": best,
        "fla": published_seconds(row),
        "measured": timed and sqrt(timed[0] * timed[1]),
    }
    shares = {name: took and round(100 * _share(row, took)) for name, took in seconds.items()}
    return {"shape": shape_label(*(row[key] for key in SHAPE)), **shares}


def data() -> HTML | Missing:
    """`bet` as JSON in a script element, for the stage of this name."""
    try:
        return HTML(json_script(bet(), id="bet-data"))
    except NotMeasuredError:
        return Missing("kernel_prediction")


def _drawn(bars: list[tuple[Row, float, float]]) -> dict[str, list]:
    """Columns of rows with a least and a most time; the bar is their geometric mean."""
    columns: dict[str, list] = {name: [] for name in ("shape", *AXES)}
    for row, low, high in bars:
        B, T, H, d = (row[key] for key in SHAPE)
        middle = sqrt(low * high)
        shares = (100 * _share(row, seconds) for seconds in (middle, high, low))
        times = (1e3 * seconds for seconds in (middle, low, high))
        for name, value in zip(columns, (shape_label(B, T, H, d), *shares, *times), strict=True):
            columns[name].append(value)
    return columns


def _bars(predicted: list[Row]) -> dict[tuple[str, str], list[tuple[Row, float, float]]]:
    """Columns of these rows, by implementation and by source."""
    bars: dict[tuple[str, str], list[tuple[Row, float, float]]] = {}

    def add(name: str, source: str, row: Row, seconds: tuple[float, float] | None) -> None:
        if seconds:
            bars.setdefault((name, source), []).append((row, *seconds))

    for row in predicted:
        plain, ours = row["normalized"] == "no", row["implementation"] == "ours"
        name = "stored states" if plain else "stored normalised"
        if ours:
            name = "chunked" if plain else "normalised"
        add(name, "predicted", row, (row["low"], row["high"]))
        if ours:
            add(name, "reported", row, measured(row))
        if ours and plain:
            reported = published_seconds(row)
            add("fla", "reported", row, reported and (reported, reported))
    return bars


AXES = ("share", "share_low", "share_high", "ms", "ms_low", "ms_high")


def figure(id: str = "predicted-speed") -> Explorable | Missing:
    """Predicted shares of the memory limit, and predicted times."""
    try:
        predicted = stored("expected")
    except NotMeasuredError:
        return Missing("kernel_prediction")
    predicted = sorted(predicted, key=lambda row: row["batch"] * row["length"] * row["heads"])
    series = []
    for view in product(LADDERS, PASSES, LAUNCHES):
        where = dict(zip(("shapes", "pass", "launch"), view, strict=True))
        here = [row for row in predicted if all(row[key] == value for key, value in where.items())]
        for (name, source), cells in _bars(here).items():
            series.append(
                Series({"implementation": name, "source": source, **where}, _drawn(cells))
            )
    return Explorable(
        id=id,
        caption=(
            "**Predicted, not measured: on large shapes our plain kernels come nearer to the "
            "memory limit than stored states.** Share of an H100's limit that each kernel should "
            "reach, as a CUDA graph or called from Python. Lines: the predicted range. "
            "Filled: fla's published calls from Python, and our own once they are measured."
        ),
        alt=(
            "Bars of the share of the memory limit, by shape, with wide lines of uncertainty. "
            "Ours is ahead of stored states for large shapes; for normalised heads of 256 the line "
            "reaches to both sides of theirs."
        ),
        series=series,
        x=Choice(
            "Show",
            [
                Axis(
                    "share", "Share of the limit", "%", digits=2, range=(0, 100),
                    low="share_low", high="share_high",
                ),
                Axis("ms", "Time", "ms", digits=2, low="ms_low", high="ms_high"),
            ],
        ),
        y=Axis("shape", "B × T × H × d"),
        color="implementation",
        dash="source",
        mark="bar",
        controls=[
            Filter("shapes", "Shapes", options=LADDERS),
            Filter("pass", "Pass", options=PASSES),
            Filter("launch", "Launch", options=LAUNCHES),
            Toggle("implementation", "Kernel", options=IMPLEMENTATIONS),
            Toggle("source", "From", options=SOURCES),
        ],
        provenance=provenance(have("kernel_prediction")),
        aspect=1,
    )  # fmt: skip


def large(width: int, normalized: str, kind: str) -> list[Row]:
    """The published shapes with heads of a width and many tokens. Raises NotMeasuredError."""
    shapes = [
        row
        for row in account()
        if row["shapes"] == "ladder"
        and (row["width"], row["normalized"], row["pass"]) == (width, normalized, kind)
        and row["batch"] * row["length"] * row["heads"] >= LARGE
    ]
    return need(shapes, f"kernel_prediction: no heads of {width}, {kind}")


def times_ahead(width: int, kind: str, library: str = "fla") -> tuple[float, float]:
    """Published time over ours, at worst and at best."""
    ratios = [
        published / seconds
        for row in large(width, "no", kind)
        if (published := published_seconds(row, library))
        for seconds in expected(row)
    ]
    return min(ratios), max(ratios)


def normaliser_cost() -> float:
    """Predicted cost of the normaliser with heads of 128, at most, as a share of the time."""
    pairs = [
        pair
        for kind in PASSES
        for pair in zip(large(128, "yes", kind), large(128, "no", kind), strict=True)
    ]
    return max(
        a / b - 1
        for normal, plain in pairs
        for a, b in zip(expected(normal), expected(plain), strict=True)
    )


def numbers() -> dict[str, str]:
    """Numbers for the appendix on kernels: the prediction."""

    def ahead(kind: str, library: str = "fla") -> str:
        low, high = times_ahead(128, kind, library)
        return f"{low:.1f} to {high:.1f}"

    return in_words(
        near=lambda: f"{100 * nearness()[0]:.0f}%",
        nearest_account=lambda: f"{100 * nearness()[1]:.0f}%",
        large_shapes=lambda: counted(len(large(128, "no", "forward"))),
        ahead_forward=lambda: ahead("forward"),
        ahead_both=lambda: ahead(BOTH),
        helion_forward=lambda: ahead("forward", "Helion"),
        helion_both=lambda: ahead(BOTH, "Helion"),
    )
