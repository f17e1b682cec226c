"""Taylor attention: its error against softmax, and the size of its state."""

from __future__ import annotations

import math

from ...explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from ..lib.format import duration, percent
from ..lib.records import Record, Row, have, provenance, rows
from ..lib.tables import Missing, Table

SHOWN = ("deviation 1", "deviation 2", "deviation 4")


def state_numbers(width: int, degree: int) -> int:
    """Numbers in a head's state: S and z of (K + n choose n) features, values as wide as keys."""
    return math.comb(width + degree, degree) * (width + 1)


def cached_tokens(state: int, width: int) -> int:
    """The longest KV cache with no more numbers than a state, in tokens."""
    return state // (2 * width)


def figure(id: str = "taylor-error") -> Explorable | Missing:
    """Error of Taylor attention against the number of terms and the state, even and odd apart."""
    records = have("taylor_error")
    if not records:
        return Missing("taylor_error")
    widths = sorted(run["config"]["width"] for run in records)
    shown = 64 if 64 in widths else widths[-1]
    curves = [series for run in records for series in _series(run)]
    scores = dict.fromkeys(series.keys["scores"] for series in curves)
    return Explorable(
        id=id,
        caption=(
            "**With even n every two more terms bring the outputs closer to softmax. With odd n "
            "and large scores the error stays above 100%. Each term makes the state larger.** "
            "Error of the outputs by the number of terms n, for scores q·k/√d of the chosen "
            "standard deviation."
        ),
        alt=(
            "Relative error against softmax on a logarithmic scale. With an even number of terms "
            "it falls steadily, the slower the larger the scores; with an odd number it is far "
            "larger and jumps about once scores are large."
        ),
        series=curves,
        x=Choice(
            "Against",
            [
                Axis("degree", "Terms kept, n"),
                Axis("state", "State of a head", "numbers", log=10, digits=3),
            ],
        ),
        y=Choice(
            "Show",
            [
                Axis("rms", "Relative error", "%", log=10, digits=3),
                Axis("worst", "Worst output's error", "%", log=10, digits=3),
                Axis("negative", "Negative weights", "% of all", digits=3),
            ],
        ),
        color="scores",
        dash="terms",
        mark="line+dot",
        controls=[
            Filter("width", "Width d", options=widths, default=shown),
            Toggle("scores", "Scores", default=[name for name in SHOWN if name in scores] or None),
            Toggle("terms", "n"),
        ],
        provenance=provenance(records),
    )


def measured(width: int) -> list[Row]:
    """All rows of one key width."""
    runs = [run for run in have("taylor_error") if run["config"]["width"] == width]
    return [row for run in runs for row in rows(run)]


def _series(run: Record) -> list[Series]:
    series = []
    for scale in run["config"]["scales"]:
        for parity, terms in enumerate(("even", "odd")):
            points = [row for row in rows(run, scale=scale) if row["degree"] % 2 == parity]
            if not points:
                continue
            columns = {name: [row[name] for row in points] for name in ("degree", "state")}
            for name in ("rms", "worst", "negative"):
                columns[name] = [100 * row[name] for row in points]
            keys = {
                "scores": f"deviation {scale:g}",
                "terms": terms,
                "width": run["config"]["width"],
            }
            series.append(Series(keys, columns, source=run["path"]))
    return series


def table(width: int = 64) -> Table | Missing:
    """Costs by number of terms: a head's features, state, time of a tick; and its error."""
    records = [run for run in have("taylor_error") if run["config"]["width"] == width]
    if not records:
        return Missing("taylor_error")
    run = records[0]
    ticks = run["tables"].get("ticks", {})
    seconds = dict(zip(ticks.get("degree", ()), ticks.get("seconds", ()), strict=True))
    scales = [scale for scale in run["config"]["scales"] if scale >= 1]
    cells = []
    for degree in run["config"]["degrees"]:
        of = {row["scale"]: row for row in rows(run, degree=degree)}
        if len(of) < len(run["config"]["scales"]):
            continue  # stopped in the middle of this degree
        state = of[scales[0]]["state"]
        cells.append(
            [
                str(degree),
                f"{state:,}",
                f"{cached_tokens(state, width):,}",
                duration(seconds[degree]) if degree in seconds else "–",
                *(percent(of[scale]["rms"]) for scale in scales),
            ]
        )
    errors = [f"error, deviation {scale:g}" for scale in scales]
    return Table(["n", "numbers a head", "tokens of KV cache", "one tick", *errors], cells)


def numbers(width: int = 64) -> dict[str, str]:
    """Numbers for the chapter: a head's states, by formula."""
    texts = {"linear_numbers": f"{width * width + width:,}"}
    for n in (2, 4):
        state = state_numbers(width, n)
        texts[f"taylor_{n}_numbers"] = f"{state:,}"
        texts[f"taylor_{n}_tokens"] = f"{cached_tokens(state, width):,}"
    return texts
