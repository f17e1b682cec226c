"""Linear attention on one core of a CPU, compiled and in plain torch, beside the core's limit."""

from __future__ import annotations

from typing import Any

from lsa.cost import least_bytes, mode_cost, training_cost

from ...explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from ..lib.axes import LENGTH, TIME
from ..lib.format import duration, in_words, times
from ..lib.records import NotMeasuredError, Record, Row, have, provenance, row, rows
from ..lib.tables import Missing, Table

CHUNK = 64  # tokens: at which the limit's operations are counted
IMPLEMENTATIONS = {
    "compiled": "compiled",
    "decayed": "compiled, with decay",
    "torch": "plain PyTorch",
    "softmax": "softmax",
}
PASSES = {"forward": "forward", "forward+backward": "forward and backward"}
SETS = {"torch": "plain PyTorch", "avx2": "compiled, AVX2", "avx512": "compiled, AVX-512"}
MODES = {"recurrent": "token by token", "chunked": "in chunks"}


def run() -> Record:
    """The stored run. Raises NotMeasuredError where there is none."""
    for found in have("cpu_speed"):
        return found
    raise NotMeasuredError("cpu_speed: nothing stored")


def limit(record: Record, point: Row, direction: str = "forward") -> float:
    """Seconds of a point's operations at the speed of a large product, or of its bytes.

    Counted at chunks of 64 tokens, of whose products the masked half is left out; inputs and
    outputs travel once, as fast as a copy.
    """
    formula = mode_cost if direction == "forward" else training_cost
    shape = point["length"], point["width"], point["width"]
    flops = formula("chunked", *shape, chunk_size=min(CHUNK, point["length"])).flops
    moved = least_bytes(*shape, itemsize=4, training=direction != "forward")
    copy = record["tables"]["limits"]["copy"][0]
    return point["heads"] * max(flops / point["matmul"], moved / copy)


def seconds(implementation: str, length: int, heads: int = 1, direction: str = "forward") -> float:
    """Seconds of one call, heads of 64. Raises NotMeasuredError where it was not timed."""
    found = {"implementation": implementation, "length": length, "heads": heads, "width": 64}
    return row(run(), **found, **{"pass": direction})["seconds"]


def share(length: int, direction: str = "forward") -> float:
    """Share of the limit that the compiled body reaches with one head of 64."""
    found = {"implementation": "compiled", "length": length, "heads": 1, "width": 64}
    point = row(run(), **found, **{"pass": direction})
    return limit(run(), point, direction) / point["seconds"]


def numbers() -> dict[str, str]:
    """Numbers for the chapter on the three modes: one core."""

    def percent(length: int, direction: str = "forward") -> str:
        return f"{100 * share(length, direction):.0f}%"

    def faster(slow: str, length: int) -> str:
        return times(seconds(slow, length) / seconds("compiled", length))

    return in_words(
        core_share=lambda: percent(8192),
        core_share_both=lambda: percent(8192, "forward+backward"),
        core_share_64=lambda: percent(64),
        core_softmax_64=lambda: faster("softmax", 64),
        core_softmax_8192=lambda: faster("softmax", 8192),
        core_torch_64=lambda: faster("torch", 64),
        core_torch_8192=lambda: faster("torch", 8192),
        core_decay=lambda: times(seconds("decayed", 8192) / seconds("compiled", 8192)),
    )


def steps() -> Table | Missing:
    """From plain PyTorch, token by token, to the limit: each step's time, gain and share."""
    try:
        points = rows_of_steps(run())
    except NotMeasuredError:
        return Missing("cpu_speed")
    lines, before = [], None
    for name, point in points:
        gain = "" if before is None else times(before / point["seconds"])
        part = limit(run(), point) / point["seconds"]
        lines.append([name, duration(point["seconds"]), gain, f"{100 * part:.1f}%"])
        before = point["seconds"]
    lines.append(["the limit", duration(limit(run(), points[0][1])), "", "100%"])
    return Table(["", "a call", "faster by", "of the limit"], lines, align="lrrr")


def rows_of_steps(record: Record) -> list[tuple[str, Row]]:
    """The steps, slowest first, each with its name. Raises NotMeasuredError where there is none."""
    columns = record["tables"].get("steps") or {}
    points = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    if not points:
        raise NotMeasuredError("cpu_speed: no steps")
    named = []
    for point in sorted(points, key=lambda point: -point["seconds"]):
        body, mode = point["step"].split()
        named.append((f"{SETS.get(body, f'compiled, {body}')}, {MODES[mode]}", point))
    return named


def _curves(record: Record) -> list[tuple[dict[str, Any], list[Row]]]:
    table = record["tables"]["rows"]
    shapes = dict.fromkeys(zip(table["heads"], table["width"], strict=True))
    return [
        ({"implementation": name, "pass": direction, "shape": f"{heads} × {width}"}, points)
        for heads, width in shapes
        for direction in PASSES
        for name in IMPLEMENTATIONS
        if (points := rows(record, implementation=name, heads=heads, width=width,
                           **{"pass": direction}))
    ]  # fmt: skip


def figure(id: str = "cpu-speed") -> Explorable | Missing:
    """How near linear attention comes to the limit of one core, by length."""
    try:
        record = run()
    except NotMeasuredError:
        return Missing("cpu_speed")
    series, ceilings = [], []
    for keys, points in _curves(record):
        lengths = [point["length"] for point in points]
        least = [limit(record, point, keys["pass"]) for point in points]
        took = [point["seconds"] for point in points]
        parts = [100 * a / b for a, b in zip(least, took, strict=True)]
        columns = {"length": lengths, "ms": [1e3 * s for s in took], "share": parts}
        series.append(Series(keys, columns, source=record["path"]))
        if keys["implementation"] == "compiled":
            columns = {"length": lengths, "ms": [1e3 * s for s in least]}
            ceilings.append(Series(keys, columns, label="limit"))
    return Explorable(
        id=id,
        caption=(
            "**How near linear attention comes to the limit of one core.** All on one thread, in "
            "turns. Dashed: the operations of chunked mode, in chunks of 64, at the speed of a "
            "large product of matrices, or its inputs and outputs at that of a copy, whichever is "
            "longer."
        ),
        alt=(
            "Time against sequence length on logarithmic scales, of linear attention compiled and "
            "in plain PyTorch, and of softmax, with the limit of the core below them."
        ),
        series=series,
        ceilings=ceilings,
        x=LENGTH,
        y=Choice(
            "Show",
            [
                TIME,
                Axis("share", "The limit's time over its own", "%", digits=2),
            ],
        ),
        color="implementation",
        mark="line+dot",
        controls=[
            Filter("shape", "Heads × width"),
            Filter("pass", "Pass", options=PASSES),
            Toggle("implementation", "Attention", options=IMPLEMENTATIONS),
        ],
        provenance=provenance([record]),
    )
