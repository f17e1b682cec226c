"""A deep RNN, tick by tick and layer by layer: one function in several orders of work."""

from __future__ import annotations

from ...explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from ..lib.format import in_words, times
from ..lib.records import NotMeasuredError, Record, Row, have, need, provenance, rows
from ..lib.tables import Missing

ORDERS = ("time-major", "layer-major, tick by tick", "layer-major")
SHAPE = ("layers", "width", "length")


def figure(id: str = "rnn-orders") -> Explorable | Missing:
    """Seconds of a deep RNN against its layers, by order of work."""
    records = have("rnn_orders")
    series = [curve for run in records for curve in _series(run)]
    if not series:
        return Missing("rnn_orders")
    widths, lengths = (sorted({curve.keys[key] for curve in series}) for key in ("width", "length"))
    return Explorable(
        id=id,
        caption=(
            "**Time-major slows down once the weights of all layers no longer fit into the "
            "cache.** Time of a deep RNN by its number of layers, in three orders of work whose "
            "outputs agree. *Tick by tick* works layer by layer with the operations of time-major. "
            "One core."
        ),
        alt=(
            "Time for one layer and tick against the number of layers. Layer-major, it stays "
            "level. Time-major, it rises once the weights no longer fit into the cache."
        ),
        series=series,
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


def _series(run: Record) -> list[Series]:
    config, series = run["config"], []
    for width in config["widths"]:
        for length in config["lengths"]:
            shape = rows(run, width=width, length=length)
            base = {row["layers"]: row["seconds"] for row in shape if row["order"] == ORDERS[-1]}
            for order in ORDERS:
                points = [row for row in shape if row["order"] == order and row["layers"] in base]
                if not points:
                    continue
                keys = {"order": order, "width": width, "length": length}
                series.append(Series(keys, _columns(points, base), source=run["path"]))
    return series


def _columns(points: list[Row], base: dict[int, float]) -> dict[str, list]:
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


def here(points: list[Row]) -> Series:
    """Series of `experiments.rnn_orders.measure_here`, time-major; for `add_computer`."""
    by_order = {name: [row for row in points if row["order"] == name] for name in ORDERS}
    base = {row["layers"]: row["seconds"] for row in by_order[ORDERS[-1]]}
    keys = {key: points[0][key] for key in ("width", "length")}
    return Series(keys, _columns(by_order[ORDERS[0]], base))


def ratios(points: list[Row], **shape: int) -> tuple[float, float, float]:
    """Time-major over layer-major, and its two factors: the cache, and U for all ticks at once.

    Raises NotMeasuredError if not all three orders were timed.
    """
    seconds = {
        row["order"]: row["seconds"]
        for row in points
        if all(row[key] == value for key, value in shape.items())
    }
    if not {*ORDERS} <= seconds.keys():
        raise NotMeasuredError(f"rnn_orders: not every order of {shape}")
    time, ticks, layer = (seconds[order] for order in ORDERS)
    return time / layer, time / ticks, ticks / layer


def measured(records: list[Record]) -> list[Row]:
    """All rows of all records."""
    return [row for run in records for row in rows(run)]


def deepest(points: list[Row]) -> dict[str, int]:
    """The largest shape at which all three orders were timed. Raises NotMeasuredError."""
    whole = need(_whole(points), "rnn_orders: no shape in every order")
    largest = max(whole, key=lambda row: (row["weights"], row["length"]))
    return {key: largest[key] for key in SHAPE}


def _whole(points: list[Row]) -> list[Row]:
    """Rows whose shape was timed in every order."""
    orders: dict[tuple, set] = {}
    for row in points:
        orders.setdefault(tuple(row[key] for key in SHAPE), set()).add(row["order"])
    return [row for row in points if len(orders[tuple(row[key] for key in SHAPE)]) == len(ORDERS)]


def smallest() -> tuple[float, float, float]:
    """`ratios` of several layers with the fewest weights. Raises NotMeasuredError."""
    points = measured(have("rnn_orders"))
    deep = [row for row in _whole(points) if row["layers"] > 1]
    need(deep, "rnn_orders: no layers in every order")
    small = min(deep, key=lambda row: (row["weights"], -row["length"]))
    return ratios(points, **{key: small[key] for key in SHAPE})


def largest() -> tuple[float, float, float]:
    """`ratios` of the largest shape. Raises NotMeasuredError."""
    points = measured(have("rnn_orders"))
    return ratios(points, **deepest(points))


def order_costs() -> dict[float, list[float]]:
    """{MiB of weights: by width and length, time of time-major over the same work by layers}."""
    points, found = _whole(measured(have("rnn_orders"))), {}
    for row in points:
        if row["order"] == ORDERS[0]:
            cost = ratios(points, **{key: row[key] for key in SHAPE})[1]
            found.setdefault(row["weights"] / 2**20, []).append(cost)
    return found


def step() -> tuple[float, float]:
    """Between how many MiB the order begins to cost a quarter. Raises NotMeasuredError."""
    costs = order_costs()
    small = [size for size, ratios in costs.items() if max(ratios) < 1.25]
    large = [size for size, ratios in costs.items() if min(ratios) >= 1.25]
    need(small and large, "rnn_orders: no step in the weights")
    return max(small), min(large)


def numbers(layers: int = 12, length: int = 1024) -> dict[str, str]:
    """Sequential ticks at full parallelism, by formula; and measured numbers."""

    def shape() -> dict[str, int]:
        return deepest(measured(have("rnn_orders")))

    return in_words(
        wait_layers=lambda: layers,
        wait_tokens=lambda: length,
        wait_rnn=lambda: layers + length - 1,  # one for each diagonal
        rnn_layers=lambda: shape()["layers"],
        rnn_width=lambda: f"{shape()['width']:,}",
        rnn_total=lambda: times(largest()[0]),
        rnn_order=lambda: times(largest()[1]),
        rnn_together=lambda: times(largest()[2]),
        rnn_fits=lambda: f"{step()[0]:.0f}",
        rnn_spills=lambda: f"{step()[1]:.0f}",
    )
