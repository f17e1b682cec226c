"""Figures of the first part: Taylor's machine, and two orders of a deep RNN.

Beside each figure, its caption's findings and the table that its chapter takes from the same
results. Where nothing is stored yet a chapter shows how to measure it.
"""

from __future__ import annotations

from typing import Any

from ..explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from .results import Record, duration, provenance, rows, size, stored, times
from .words import Missing, Table, have, percent

Row = dict[str, Any]


# Taylor


def taylor_error(id: str = "taylor-error") -> Explorable | Missing:
    """Error of Taylor attention against the terms kept and the state, even and odd apart."""
    records = have("taylor_error")
    if not records:
        return Missing("taylor_error")
    widths = sorted(one["config"]["width"] for one in records)
    shown = 64 if 64 in widths else widths[-1]
    return Explorable(
        id=id,
        caption=_taylor_caption(taylor_rows(shown), shown),
        alt=(
            "Relative error against softmax on a logarithmic scale. With an even number of terms "
            "it falls steadily, the slower the larger the scores; with an odd number it is far "
            "larger and jumps about once scores are large."
        ),
        series=[one for record in records for one in _taylor_series(record)],
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
            Filter("width", "Width K", options=widths, default=shown),
            Toggle("scores", "Scores", default=["near 1", "near 2", "near 4"]),
            Toggle("terms", "n"),
        ],
        provenance=provenance(records),
    )


def taylor_rows(width: int) -> list[Row]:
    """All rows of one key width."""
    found = [one for one in stored("taylor_error") if one["config"]["width"] == width]
    return [row for one in found for row in rows(one)]


def _taylor_series(one: Record) -> list[Series]:
    series = []
    for scale in one["config"]["scales"]:
        for parity, terms in enumerate(("even", "odd")):
            points = [row for row in rows(one, scale=scale) if row["degree"] % 2 == parity]
            if not points:
                continue
            columns = {name: [row[name] for row in points] for name in ("degree", "state")}
            for name in ("rms", "worst", "negative"):
                columns[name] = [100 * row[name] for row in points]
            keys = {"scores": f"near {scale:g}", "terms": terms, "width": one["config"]["width"]}
            series.append(Series(keys, columns, source=one["path"]))
    return series


def _taylor_caption(found: list[Row], width: int) -> str:
    """The finding: what even n buy, and what odd ones do."""
    at = {(row["scale"], row["degree"]): row for row in found}
    scales = sorted({row["scale"] for row in found})
    even = max(row["degree"] for row in found if row["degree"] % 2 == 0)
    low, high = (at[scale, even] for scale in (scales[0], scales[-1]))
    odd = max(
        (row for row in found if row["degree"] % 2 and row["scale"] == scales[-1]),
        key=lambda row: row["rms"],
    )
    after_odd = at[scales[-1], odd["degree"] + 1]
    return (
        "**The exponential can be bought back, at the price of a state that grows with every "
        f"term.** With n = {even}, outputs are {percent(low['rms'])} off where *scores*, q·k/√K, "
        f"have a standard deviation of {scales[0]:g}, and {percent(high['rms'])} off where it is "
        f"{scales[-1]:g}. Only even n are of use for large scores: with n = {odd['degree']}, "
        f"{percent(odd['negative'])} of the weights are negative there, the normaliser passes "
        f"near zero, and the error is {percent(odd['rms'])}, against {percent(after_odd['rms'])} "
        f"with one term more. Keys and values of width {width}."
    )


def taylor_table(width: int = 64) -> Table | Missing:
    """What each number of terms costs a head: features, state, time of a tick; and its error."""
    records = [one for one in have("taylor_error") if one["config"]["width"] == width]
    if not records:
        return Missing("taylor_error")
    one = records[0]
    ticks = one["tables"].get("ticks", {})
    seconds = dict(zip(ticks.get("degree", ()), ticks.get("seconds", ()), strict=True))
    scales = [scale for scale in one["config"]["scales"] if scale >= 1]
    cells = []
    for degree in one["config"]["degrees"]:
        of = {row["scale"]: row for row in rows(one, degree=degree)}
        if len(of) < len(one["config"]["scales"]):
            continue  # stopped in the middle of this degree
        state = of[scales[0]]["state"]
        cells.append(
            [
                str(degree),
                f"{state:,}",
                f"{max(1, round(state / (2 * width))):,}",
                duration(seconds[degree]) if degree in seconds else "–",
                *(percent(of[scale]["rms"]) for scale in scales),
            ]
        )
    errors = [f"error, scores near {scale:g}" for scale in scales]
    return Table(["n", "numbers a head", "tokens of KV cache", "one tick", *errors], cells)


# The two orders of a deep RNN

ORDERS = ("time-major", "layer-major, tick by tick", "layer-major")


def rnn_orders(id: str = "rnn-orders") -> Explorable | Missing:
    """Seconds of a deep RNN against its layers, by the order of its work."""
    records = have("rnn_orders")
    if not records:
        return Missing("rnn_orders")
    points = [row for one in records for row in rows(one)]
    widths, lengths = (sorted({row[key] for row in points}) for key in ("width", "length"))
    return Explorable(
        id=id,
        caption=_rnn_caption(points),
        alt=(
            "Time for one layer and tick against the number of layers. Layer by layer it stays "
            "level. Tick by tick it rises once the weights no longer fit into the cache."
        ),
        series=[one for record in records for one in _rnn_series(record)],
        x=Axis("layers", "Layers", log=2),
        y=Choice(
            "Show",
            [
                Axis("box", "Time per layer and tick", "µs", low="box_low", high="box_high"),
                Axis("ms", "Time in all", "ms", log=10, digits=3),
                Axis("ratio", "Time, layer-major = 1", "", digits=3),
                Axis("weights", "Weights", "MiB", log=10, digits=3),
            ],
        ),
        color="order",
        mark="line+dot",
        controls=[
            Filter("width", "Width D", options=widths, default=widths[-1]),
            Filter("length", "Tokens", options=lengths, default=lengths[-1]),
            Toggle("order", "Order", options=list(ORDERS)),
        ],
        provenance=provenance(records),
    )


def _rnn_series(one: Record) -> list[Series]:
    config, series = one["config"], []
    for width in config["widths"]:
        for length in config["lengths"]:
            shape = rows(one, width=width, length=length)
            base = {row["layers"]: row["seconds"] for row in shape if row["order"] == ORDERS[-1]}
            for order in ORDERS:
                points = [row for row in shape if row["order"] == order]
                if not points:
                    continue
                keys = {"order": order, "width": width, "length": length}
                series.append(Series(keys, _rnn_columns(points, base), source=one["path"]))
    return series


def _rnn_columns(points: list[Row], base: dict[int, float]) -> dict[str, list]:
    def per_box(name: str) -> list[float]:
        return [row[name] / row["layers"] / row["length"] * 1e6 for row in points]

    return {
        "layers": [row["layers"] for row in points],
        "box": per_box("seconds"),
        "box_low": per_box("low"),
        "box_high": per_box("high"),
        "ms": [row["seconds"] * 1e3 for row in points],
        "ratio": [row["seconds"] / base[row["layers"]] for row in points],
        "weights": [row["weights"] / 2**20 for row in points],
    }


def rnn_here(points: list[Row]) -> Series:
    """Rows measured by a reader, of one width and length, time-major; for `add_machine`.

    Each row: layers, width, length, seconds, weights; and layer_major, the other order's seconds.
    """
    rows_ = [{"low": row["seconds"], "high": row["seconds"], **row} for row in points]
    base = {row["layers"]: row["layer_major"] for row in points}
    keys = {key: points[0][key] for key in ("width", "length")}
    return Series(keys, _rnn_columns(rows_, base))


def rnn_ratios(points: list[Row], **shape: int) -> tuple[float, float, float]:
    """Time-major over layer-major, and its two factors: the cache's, and U's all at once."""
    seconds = {
        row["order"]: row["seconds"]
        for row in points
        if all(row[key] == value for key, value in shape.items())
    }
    time, ticks, layer = (seconds[order] for order in ORDERS)
    return time / layer, time / ticks, ticks / layer


def _rnn_caption(points: list[Row]) -> str:
    def described(row: Row) -> str:
        layers = f"{row['layers']} layers" if row["layers"] > 1 else "one layer"
        return f"{layers} of width {row['width']} ({size(row['weights'])} of weights)"

    deep = [row for row in points if row["layers"] > 1] or points
    large = max(deep, key=lambda row: (row["weights"], row["length"]))
    small = min(deep, key=lambda row: (row["weights"], -row["length"]))
    keys = ("layers", "width", "length")
    whole, cache, together = rnn_ratios(points, **{key: large[key] for key in keys})
    _, small_cache, _ = rnn_ratios(points, **{key: small[key] for key in keys})
    return (
        "**The same function, the same operations, another order.** With "
        f"{described(large)} and {large['length']} tokens, going tick by tick through all layers "
        f"takes {times(whole)} the time of going layer by layer. The order alone accounts for a "
        f"factor of {times(cache)}, as the middle program shows, and computing a layer's outputs "
        f"all at once for {times(together)}. With {described(small)} time-major takes "
        f"{times(small_cache)} the time of the middle program. The outputs of all three agree. "
        "On one core."
    )
