"""All layers at equal width: time of a tick as the text grows, and of a training step."""

from __future__ import annotations

from typing import Any

from lsa.layers import LAYERS

from ...explorable import palette
from ...explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from ..lib.format import duration, in_words, size, times, times_between
from ..lib.records import NotMeasuredError, Record, Row, have, provenance, rows
from ..lib.tables import Missing

SHORT, MIDDLE, LONG, BATCH = 256, 4096, 16384, 16  # tokens and texts that the prose mentions
SHOWN = ("softmax", "linear", "delta", "rwkv", "s6")  # no two look alike in the plot


def _runs(table: str) -> list[Record]:
    return [run for run in have("layer_speed") if run["tables"].get(table)]


def _times(points: list[Row], unit: float) -> dict[str, list]:
    """Columns of seconds and their quartiles, in a unit of `unit` per second."""
    return {name: [unit * row[name] for row in points] for name in ("seconds", "low", "high")}


def _figure(series: list[Series], shown: list[Axis], *controls: Filter, **rest: Any) -> Explorable:
    """A line for each layer; `shown` are the axes that a reader can choose."""
    drawn = {one.keys["layer"] for one in series}
    labels = {name: palette.label(name) or name for name in LAYERS if name in drawn}
    default = [name for name in SHOWN if name in drawn] or None
    return Explorable(
        series=series,
        y=Choice("Show", shown),
        color="layer",
        mark="line+dot",
        controls=[*controls, Toggle("layer", "Layer", options=labels, default=default)],
        **rest,
    )


def tick_figure(id: str = "layer-ticks") -> Explorable | Missing:
    """Microseconds of a tick, and the state, against the tokens read before."""
    records = _runs("ticks")
    if not records:
        return Missing("layer_speed")
    series = []
    for run in records:
        for layer in dict.fromkeys(run["tables"]["ticks"]["layer"]):
            points = rows(run, "ticks", layer=layer)
            if not all(row["state"] for row in points):
                continue  # an empty state has no place on a log axis
            columns = {name: [row[name] for row in points] for name in ("position", "state")}
            keys = {"layer": layer, "batch": run["config"]["batch"]}
            series.append(Series(keys, columns | _times(points, 1e6), source=run["path"]))
    batches = sorted({one.keys["batch"] for one in series})
    return _figure(
        series,
        [
            Axis("seconds", "One tick", "µs", log=10, digits=3, low="low", high="high"),
            Axis("state", "State", "bytes", log=10, digits=3),
        ],
        Filter("batch", "Texts at a time", options=batches),
        id=id,
        caption=(
            "**Softmax's tick takes longer as the text grows.** Layers with their projections, "
            f"width {records[0]['config']['d_model']}. With a state of fixed size "
            "no operations are added."
        ),
        alt=(
            "Time of one tick against the tokens read, on logarithmic scales. Softmax attention "
            "rises with the length of the text; layers with a state of fixed size stay level."
        ),
        x=Axis("position", "Tokens read before", "tokens", log=2),
        provenance=provenance(records),
    )


def update_figure(id: str = "layer-updates") -> Explorable | Missing:
    """Milliseconds of forward and backward against the length of the sequence."""
    records = _runs("updates")
    if not records:
        return Missing("layer_speed")
    by_layer: dict[str, list] = {}
    for run in records:
        for row in rows(run, "updates"):
            by_layer.setdefault(row["layer"], []).append(row)
    series = []
    for layer, points in by_layer.items():
        points.sort(key=lambda row: row["length"])
        columns = {"length": [row["length"] for row in points], **_times(points, 1e3)}
        columns["token"] = [1e6 * row["seconds"] / row["length"] for row in points]
        series.append(Series({"layer": layer}, columns))
    return _figure(
        series,
        [
            Axis("seconds", "One step", "ms", log=10, digits=3, low="low", high="high"),
            Axis("token", "A token of it", "µs", log=10, digits=3),
        ],
        id=id,
        caption=(
            f"**At {LONG:,} tokens a step of linear attention is {ahead_in_words()} as fast as "
            "softmax’s.** Each layer with its projections, forward and backward, one sequence, "
            f"width {records[0]['config']['d_model']}. Lines end early where all products of two "
            "tokens do not fit into memory."
        ),
        alt=(
            "Time of forward and backward against the length of the sequence on logarithmic "
            "scales, a line a layer; the quadratic ones rise twice as steeply."
        ),
        x=Axis("length", "Length of the sequence", "tokens", log=2),
        provenance=provenance(records),
    )


def tick(layer: str, batch: int, position: int) -> Record:
    """One row of the ticks. Raises NotMeasuredError."""
    for run in _runs("ticks"):
        if run["config"]["batch"] == batch:
            for row in rows(run, "ticks", layer=layer, position=position):
                return row
    raise NotMeasuredError("layer_speed")


def _step(layer: str, length: int) -> Row:
    """Seconds of a training step, and their quartiles. Raises NotMeasuredError."""
    for run in _runs("updates"):
        for row in rows(run, "updates", layer=layer, length=length):
            return row
    raise NotMeasuredError("layer_speed")


def ahead(layer: str, other: str, length: int) -> float:
    """Seconds of a training step of `other` over those of `layer`."""
    return _step(other, length)["seconds"] / _step(layer, length)["seconds"]


def step_grows(layer: str) -> float:
    """Seconds of a training step at the longest text over those at a quarter of its length."""
    return _step(layer, LONG)["seconds"] / _step(layer, MIDDLE)["seconds"]


def _ahead(layer: str, other: str, length: int) -> str:
    """`ahead` for prose, with the range from the quartiles."""
    return times_between(_step(other, length), _step(layer, length))


def ahead_in_words() -> str:
    """How many times as fast as softmax linear attention makes a long step."""
    return in_words(ahead=lambda: times(ahead("linear", "softmax", LONG)))["ahead"]


def numbers() -> dict[str, str]:
    """Numbers for the chapter on the relatives: ticks and training steps."""

    def rate(layer: str) -> str:
        """Tokens a second over all texts, each after a long one."""
        return f"{BATCH / tick(layer, BATCH, LONG)['seconds']:,.0f}"

    functions = {
        f"rate_{name}": lambda name=name: rate(name) for name in ("softmax", "linear", "s6")
    }
    functions |= {
        f"tick_{name}_{at}": lambda name=name, at=at: duration(tick(name, 1, at)["seconds"])
        for name in ("softmax", "linear")
        for at in (1, LONG)
    }
    kept = ("softmax", "linear", "s6")
    functions |= {
        f"kept_{name}": lambda name=name: size(tick(name, BATCH, LONG)["state"]) for name in kept
    }
    behind = {
        f"step_{name}": lambda name=name: _ahead("softmax", name, LONG)
        for name in ("delta", "mamba", "s4d")
    }
    return in_words(
        layer_texts=lambda: BATCH,
        layer_tokens=lambda: f"{LONG:,}",
        step_short=lambda: _ahead("softmax", "linear", SHORT),
        step_linear=lambda: _ahead("linear", "softmax", LONG),
        step_gated=lambda: _ahead("gated", "softmax", LONG),
        step_length=lambda: f"{SHORT:,}",
        step_middle=lambda: f"{MIDDLE:,}",
        step_delta_grows=lambda: f"{step_grows('delta'):.0f}-fold",
        **functions,
        **behind,
    )
