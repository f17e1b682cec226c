"""Figures and numbers of the three modes: measured times beside the limits of the machine.

Limits are those of `lsa.cost`: for a CPU with a copy and a matrix product that the same run
measured, for other GPUs with their vendor's peaks.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from experiments.harness import record
from lsa.cost import PEAKS, Cost, least_bytes, mode_cost, training_cost

from ..explorable import palette
from ..explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from .results import Record, device_name, provenance, rows, stored

PASSES = {"forward": "forward", "forward+backward": "forward and backward"}
ITEM_BYTES = {"float32": 4, "bfloat16": 2}
PARTS_OF_NAMES = {  # how the driver calls what a data sheet describes
    "A100 80GB SXM": "A100-SXM4-80GB",
    "H100 SXM": "H100 80GB HBM3",
    "H200": "H200",
    "RTX 4090": "RTX 4090",
}
CHUNK = 64  # of a record whose chunks nobody chose


def cost(one: Record, mode: str, length: int, direction: str, chunk_size: int = CHUNK) -> Cost:
    """What a stored point has to spend, all its heads together; steps do not add up."""
    config = one["config"]
    formula = mode_cost if direction == "forward" else training_cost
    head = formula(
        mode, length, config["width"], config["width"],
        chunk_size=chunk_size, itemsize=ITEM_BYTES[config["dtype"]],
    )  # fmt: skip
    count = config["batch"] * config["heads"]
    return Cost(head.flops * count, head.bytes * count, head.steps, head.state * count)


def limits(one: Record) -> dict[str, float] | None:
    """`copy` B/s, `matmul` FLOP/s and `call` s of a record's machine, if they were measured."""
    table = one["tables"].get("limits")
    return {name: values[0] for name, values in table.items()} if table else None


def least_seconds(
    one: Record, mode: str, length: int, direction: str, chunk_size: int = CHUNK
) -> float | None:
    """The roofline of a stored point on its own machine; None without measured limits.

    Of the traffic only inputs and outputs are charged, once each: all else may stay in a cache.
    On a CPU a step of recurrent mode is a call into the library or more. The other modes' steps
    are taken inside calls, and a GPU's inside one kernel: they are not charged.
    """
    found = limits(one)
    if not found:
        return None
    waits = mode == "recurrent" and one["provenance"]["device"]["kind"] == "cpu"
    config = one["config"]
    ends = least_bytes(
        length, config["width"], config["width"],
        itemsize=ITEM_BYTES[config["dtype"]], training=direction != "forward",
    )  # fmt: skip
    spent = replace(
        cost(one, mode, length, direction, chunk_size),
        bytes=ends * config["batch"] * config["heads"],
    )
    return spent.seconds(found["matmul"], found["copy"], found["call"] if waits else 0.0)


def _groups(records: list[Record]) -> list[tuple[Record, dict[str, Any], list[dict[str, Any]]]]:
    """(record, keys, points) of every curve."""
    return [
        (one, {"mode": mode, "pass": direction, "heads": one["config"]["heads"]}, points)
        for one in records
        for mode in dict.fromkeys(one["tables"]["rows"]["mode"])
        for direction in PASSES
        if (points := rows(one, mode=mode, **{"pass": direction}))
    ]


def _controls(records: list[Record], default: str) -> list[Filter | Toggle]:
    heads = [Filter("heads", "Heads")] if len(records) > 1 else []
    return [
        *heads, Filter("pass", "Pass", options=PASSES, default=default), Toggle("mode", "Mode"),
    ]  # fmt: skip


def modes(id: str = "mode-speed") -> Explorable:
    """Time and memory of one attention layer against the length, by mode."""
    records = stored("mode_speed")
    return Explorable(
        id=id,
        caption=(
            "**One head, four ways to compute it.** Attention mode and softmax grow with the "
            "square of the length; recurrent and chunked mode grow with the length. Chunked mode "
            "takes the better of both."
        ),
        alt=(
            "Time against sequence length on logarithmic scales. Recurrent mode is slowest at most "
            "lengths; attention mode and softmax bend upwards; chunked mode stays lowest at long "
            "lengths."
        ),
        series=[
            Series(
                keys=keys,
                columns={
                    "length": [row["length"] for row in points],
                    "ms": [row["seconds"] * 1e3 for row in points],
                    "ms_low": [row["low"] * 1e3 for row in points],
                    "ms_high": [row["high"] * 1e3 for row in points],
                    "us_token": [row["seconds"] / row["length"] * 1e6 for row in points],
                    "peak": [row["peak"] / 2**20 for row in points],
                },
                source=one["path"],
            )
            for one, keys, points in _groups(records)
        ],
        x=Axis("length", "Sequence length", "tokens", log=2),
        y=Choice(
            "Show",
            [
                Axis("ms", "Time", "ms", log=10, low="ms_low", high="ms_high", digits=3),
                Axis("us_token", "Time per token", "µs", log=10, digits=3),
                Axis("peak", "Peak memory", "MiB", log=10, digits=3),
            ],
        ),
        color="mode",
        mark="line+dot",
        controls=_controls(records, "forward+backward"),
        provenance=provenance(records),
    )


def rooflines(id: str = "mode-limits", records: list[Record] | None = None) -> Explorable | None:
    """Every curve beside its roofline; None where no machine's limits are stored."""
    records = [one for one in records or stored("mode_speed") if limits(one)]
    if not records:
        return None
    series, ceilings = [], []
    for one, keys, points in _groups(records):
        lengths = [row["length"] for row in points]
        seconds = [row["seconds"] for row in points]
        least = [least_seconds(one, keys["mode"], length, keys["pass"]) for length in lengths]
        ratio = [took / bound for took, bound in zip(seconds, least, strict=True)]
        columns = {"length": lengths, "ms": [s * 1e3 for s in seconds], "times": ratio}
        series.append(Series(keys=keys, columns=columns, source=one["path"]))
        name = palette.label(keys["mode"])
        bound = {"length": lengths, "ms": [s * 1e3 for s in least]}
        ceilings.append(Series(keys=keys, columns=bound, label=f"limit, {name.lower()}"))
    return Explorable(
        id=id,
        caption=(
            "**Every curve beside its roofline.** Solid: measured. Dashed, in the same colour: the "
            "least time that mode can take on this machine, whichever is longest of its "
            "arithmetic at the speed of a large matrix product, its inputs and outputs at that of "
            "a copy, and its steps at that of the smallest call; all three measured in the same "
            "run. Softmax and attention mode form the same products, so their limits coincide."
        ),
        alt=(
            "Time against sequence length on logarithmic scales: four measured curves, each above "
            "a dashed line of its own colour that bounds it from below."
        ),
        series=series,
        ceilings=ceilings,
        x=Axis("length", "Sequence length", "tokens", log=2),
        y=Choice(
            "Show",
            [
                Axis("ms", "Time", "ms", log=10, digits=3),
                Axis("times", "Times its limit", "×", log=10, digits=3),
            ],
        ),
        color="mode",
        mark="line+dot",
        controls=_controls(records, "forward"),
        provenance=provenance(records),
    )


def chunk_curves(records: list[Record]) -> list[Series]:
    """Measured time against chunk size, one curve a length and pass."""
    curves = []
    for one in records:
        for length in dict.fromkeys(one["tables"].get("chunks", {}).get("length", [])):
            for direction in PASSES:
                points = rows(one, "chunks", length=length, **{"pass": direction})
                if not points:
                    continue
                keys = {"mode": "chunked", "length": length, "pass": direction}
                columns = {
                    "chunk_size": [row["chunk_size"] for row in points],
                    "ms": [row["seconds"] * 1e3 for row in points],
                }
                curves.append(Series(keys=keys, columns=columns, source=one["path"]))
    return curves


def bills(one: Record, length: int, direction: str, size: int) -> dict[str, float] | None:
    """Seconds of chunked mode's arithmetic and traffic, states included, and of one after other."""
    if not (speeds := limits(one)):
        return None
    spent = cost(one, "chunked", length, direction, size)
    found = {
        "arithmetic": spent.flops / speeds["matmul"],
        "traffic": spent.bytes / speeds["copy"],
    }
    return found | {"predicted, both": sum(found.values())}


def chunk_bills(one: Record, length: int, direction: str) -> list[Series]:
    """The bills against the chunk size, as dashed lines."""
    sizes = sorted({row["chunk_size"] for row in rows(one, "chunks")})
    paid = [bills(one, length, direction, size) for size in sizes]
    if None in paid:
        return []
    keys = {"length": length, "pass": direction}
    return [
        Series(
            keys=keys,
            columns={"chunk_size": sizes, "ms": [each[name] * 1e3 for each in paid]},
            label=name,
        )
        for name in paid[0]
    ]


def best_chunk(one: Record, length: int, direction: str) -> tuple[int, int | None]:
    """The fastest chunk size measured, and the one for which the bills say so, if there are any.

    Raises LookupError where no chunk sizes were measured.
    """
    points = rows(one, "chunks", length=length, **{"pass": direction})
    if not points:
        raise LookupError(f"{one['name']}: no chunk sizes measured at {length}")
    fastest = min(points, key=lambda row: row["seconds"])["chunk_size"]
    if not limits(one):
        return fastest, None
    paid = {
        row["chunk_size"]: bills(one, length, direction, row["chunk_size"])["predicted, both"]
        for row in points
    }
    return fastest, min(paid, key=paid.get)


def chunk_sentence(one: Record) -> str:
    """Which chunk size was the fastest, beside the one predicted; empty where none was measured."""
    parts = []
    for length in dict.fromkeys(one["tables"].get("chunks", {}).get("length", [])):
        for direction, name in PASSES.items():
            fastest, predicted = best_chunk(one, length, direction)
            guess = f" (the bills say {predicted:,})" if predicted else ""
            parts.append(f"{fastest:,} at {length:,} tokens, {name}{guess}")
    if not parts:
        return ""
    return f"The fastest chunk sizes on this machine: {'; '.join(parts)}."


def chunk_sizes(id: str = "chunk-size", records: list[Record] | None = None) -> Explorable | None:
    """Time of chunked mode against the chunk size; None where it was not measured."""
    records = [one for one in records or stored("mode_speed") if rows(one, "chunks")]
    if not records:
        return None
    lengths = sorted({length for one in records for length in one["tables"]["chunks"]["length"]})
    return Explorable(
        id=id,
        caption=(
            "**Short chunks move states, long chunks form products.** Time of chunked mode against "
            "its chunk size. Dashed: what its arithmetic and its traffic cost by the formula, and "
            "both together. One rises and the other falls, so the best size lies in between."
        ),
        alt=(
            "Time against chunk size on logarithmic scales: a measured curve with a lowest point "
            "in the middle, a falling dashed line for traffic and a rising one for arithmetic."
        ),
        series=chunk_curves(records),
        ceilings=[
            line
            for one in records
            for length in lengths
            for direction in PASSES
            for line in chunk_bills(one, length, direction)
        ],
        x=Axis("chunk_size", "Chunk size", "tokens", log=2),
        y=Axis("ms", "Time", "ms", log=10, digits=3),
        color="mode",
        mark="line+dot",
        controls=[
            Filter("length", "Length", default=lengths[-1]),
            Filter("pass", "Pass", options=PASSES, default="forward"),
        ],
        provenance=provenance(records),
    )


def machines() -> str:
    """What the explorable `roofline` needs, as JSON in a script element.

    devices: name, peaks in FLOP/s and B/s, s a step, bytes of a number, and measured points of
    forward passes: mode, length, seconds, heads, at width d. Steps are charged to the modes in
    `waits` (see `least_seconds`).
    """
    devices = {
        name: {
            "name": f"NVIDIA {name}", "flops": peak.flops, "bytes": peak.bytes,
            "step": peak.step, "item": 2, "waits": ["recurrent", "chunked"],
            "vendor": True, "points": [],
        }
        for name, peak in PEAKS.items()
    }  # fmt: skip
    for one in record.load("mode_speed"):
        name = device_name(one)
        known = next((key for key, part in PARTS_OF_NAMES.items() if part in name), name)
        device = devices.setdefault(known, _measured_device(one))
        device["width"] = one["config"]["width"]
        heads = one["config"]["batch"] * one["config"]["heads"]
        device["points"] += [
            [row["mode"], row["length"], row["seconds"], heads]
            for row in rows(one, **{"pass": "forward"})
        ]
    text = json.dumps(list(devices.values()), separators=(",", ":")).replace("</", "<\\/")
    return f'<script type="application/json" id="machines-data">{text}</script>'


def _measured_device(one: Record) -> dict[str, Any]:
    """A machine that no data sheet describes; its speeds are None until they are measured."""
    speeds = limits(one) or dict.fromkeys(("matmul", "copy", "call"))
    cpu = one["provenance"]["device"]["kind"] == "cpu"
    return {
        "name": f"{device_name(one)} (measured here)", "flops": speeds["matmul"],
        "bytes": speeds["copy"], "step": speeds["call"],
        "item": ITEM_BYTES[one["config"]["dtype"]], "waits": ["recurrent"] if cpu else [],
        "vendor": False, "points": [],
    }  # fmt: skip
