"""Every layer at equal width: what a tick takes as the text grows, and a training step."""

from __future__ import annotations

from lsa.layers import LAYERS

from ..explorable import palette
from ..explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from .results import Record, have, provenance, rows
from .words import Missing, duration, times

SHOWN = ("softmax", "linear", "gated", "delta", "rwkv", "s4d", "s6", "mamba")


def _runs(table: str) -> list[Record]:
    return [run for run in have("layer_speed") if run["tables"].get(table)]


def _labels(drawn: set[str]) -> dict[str, str]:
    return {name: palette.label(name) or name for name in LAYERS if name in drawn}


def _toggle(drawn: set[str]) -> Toggle:
    default = [name for name in SHOWN if name in drawn] or None
    return Toggle("layer", "Layer", options=_labels(drawn), default=default)


def tick_figure(id: str = "layer-ticks") -> Explorable | Missing:
    """Microseconds of a tick, and the state, against the tokens read before."""
    records = _runs("ticks")
    if not records:
        return Missing("layer_speed")
    series = []
    for run in records:
        for layer in dict.fromkeys(run["tables"]["ticks"]["layer"]):
            found = rows(run, "ticks", layer=layer)
            columns = {name: [row[name] for row in found] for name in ("position", "state")}
            for name in ("seconds", "low", "high"):
                columns[name] = [1e6 * row[name] for row in found]
            keys = {"layer": layer, "batch": run["config"]["batch"]}
            series.append(Series(keys, columns, source=run["path"]))
    drawn = {one.keys["layer"] for one in series}
    batches = sorted({one.keys["batch"] for one in series})
    return Explorable(
        id=id,
        caption=_tick_caption(records[0]),
        alt=(
            "Time of one tick against the tokens read, on logarithmic scales. Softmax attention "
            "rises with the length of the text; layers with a state of fixed size stay level."
        ),
        series=series,
        x=Axis("position", "Tokens read before", "tokens", log=2),
        y=Choice(
            "Show",
            [
                Axis("seconds", "One tick", "µs", log=10, digits=3, low="low", high="high"),
                Axis("state", "State", "bytes", log=10, digits=3),
            ],
        ),
        color="layer",
        mark="line+dot",
        controls=[Filter("batch", "Texts at a time", options=batches), _toggle(drawn)],
        provenance=provenance(records),
    )


def _tick_caption(run: Record) -> str:
    found = rows(run, "ticks", layer="softmax")
    grown = ""
    if len(found) > 1:
        first, last = found[0], found[-1]
        grown = (
            f" A tick of softmax attention takes {duration(first['seconds'])} at the start and "
            f"{duration(last['seconds'])} after {last['position']:,} tokens, "
            f"{times(last['seconds'] / first['seconds'])}."
        )
    return (
        f"**A state of fixed size has a fixed price.** Layers alone, width "
        f"{run['config']['d_model']}.{grown}"
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
    for layer, found in by_layer.items():
        found.sort(key=lambda row: row["length"])
        columns = {"length": [row["length"] for row in found]}
        for name in ("seconds", "low", "high"):
            columns[name] = [1e3 * row[name] for row in found]
        columns["token"] = [1e6 * row["seconds"] / row["length"] for row in found]
        series.append(Series({"layer": layer}, columns))
    return Explorable(
        id=id,
        caption=(
            "**One step of training of each layer alone**, forward and backward, one sequence, "
            f"width {records[0]['config']['d_model']}. Those that form all products of two tokens "
            "end where the memory does."
        ),
        alt=(
            "Time of forward and backward against the length of the sequence on logarithmic "
            "scales, a line a layer; the quadratic ones rise twice as steeply."
        ),
        series=series,
        x=Axis("length", "Length of the sequence", "tokens", log=2),
        y=Choice(
            "Show",
            [
                Axis("seconds", "One step", "ms", log=10, digits=3, low="low", high="high"),
                Axis("token", "A token of it", "µs", log=10, digits=3),
            ],
        ),
        color="layer",
        mark="line+dot",
        controls=[_toggle(set(by_layer))],
        provenance=provenance(records),
    )
