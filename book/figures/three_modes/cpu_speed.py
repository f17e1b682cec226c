"""Linear attention on one core of a CPU, compiled and in plain torch, beside a large product."""

from __future__ import annotations

from typing import Any

from lsa.attention.compiled import CHUNK_SIZE
from lsa.cost import mode_cost, training_cost

from ...explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from ..index.mode_speed import compiled_as
from ..lib.axes import LENGTH, PASSES, TIME
from ..lib.format import duration, duration_between, in_words, percent, times, times_between
from ..lib.records import (
    NotMeasuredError,
    Record,
    Row,
    have,
    need,
    of_config,
    provenance,
    row,
    rows,
)
from ..lib.tables import Missing, Table

COLOURED = {"compiled": "chunked"}  # the palette's name, with one colour on every page
IMPLEMENTATIONS = {
    "chunked": "compiled",
    "decayed": "compiled, with decay",
    "torch": "plain PyTorch",
    "softmax": "softmax",
}
BODIES = {"torch": "plain PyTorch", "avx2": "compiled, AVX2", "avx512": "compiled, AVX-512"}


def run() -> Record:
    """The stored run of whole texts. Raises NotMeasuredError if there is none."""
    whole = [stored for stored in have("cpu_speed") if stored["config"]["grid"]]
    return need(whole, "cpu_speed: nothing stored")[0]


def token_seconds() -> float:
    """Seconds of one token, 16 heads of 64, from a state to the next. Raises NotMeasuredError."""
    stored = of_config(have("cpu_speed"), grid=[], step=[16, 64, 1])
    took = rows(stored, "steps")
    compiled = [one["seconds"] for one in took if not one["step"].startswith("torch")]
    return min(need(compiled, "cpu_speed: no token by the compiled body"))


def as_product(point: Row, direction: str = "forward") -> float:
    """Time of a point's operations as one large matrix product.

    The operations of the compiled body's chunks count, without masked products.
    """
    formula = mode_cost if direction == "forward" else training_cost
    shape = point["length"], point["width"], point["width"]
    flops = formula(compiled_as("chunked", *shape[:2]), *shape, chunk_size=CHUNK_SIZE).flops
    return point["heads"] * flops / point["matmul"]


def point(implementation: str, length: int, direction: str = "forward", heads: int = 1) -> Row:
    """One measured point, heads of 64. Raises NotMeasuredError if it was not timed."""
    where = {"implementation": implementation, "length": length, "heads": heads, "width": 64}
    return row(run(), **where, **{"pass": direction})


def share(length: int, direction: str = "forward") -> float:
    """Share of a large product's speed that the compiled body reaches with one head of 64."""
    timed = point("compiled", length, direction)
    return as_product(timed, direction) / timed["seconds"]


def numbers() -> dict[str, str]:
    """Numbers for the chapters on the modes and on kernels: one core."""

    def faster(slow: str, length: int) -> str:
        return times_between(point(slow, length), point("compiled", length))

    more, least = (
        mode_cost(mode, 4096, 64, 64, chunk_size=CHUNK_SIZE) for mode in ("chunked", "recurrent")
    )
    return in_words(
        core_share=lambda: percent(share(8192)),
        core_share_both=lambda: percent(share(8192, "forward+backward")),
        core_share_64=lambda: percent(share(64)),
        core_softmax_8192=lambda: faster("softmax", 8192),
        core_softmax_64=lambda: faster("softmax", 64),
        core_torch_8192=lambda: faster("torch", 8192),
        core_decay=lambda: times_between(point("decayed", 8192), point("compiled", 8192)),
        core_decay_64=lambda: times_between(point("decayed", 64), point("compiled", 64)),
        core_both_64=lambda: times_between(
            *(point(name, 64, "forward+backward") for name in ("compiled", "softmax"))
        ),
        core_tick=lambda: duration(token_seconds()),
        core_chunk=lambda: CHUNK_SIZE,
        core_wider=lambda: times_between(step("avx2", "chunked"), step("avx512", "chunked")),
        core_more=lambda: times(more.flops / least.flops),
        core_compiled=lambda: times_between(
            step("torch", "recurrent"), step("avx512", "recurrent")
        ),
        core_token=lambda: times_between(step("avx512", "recurrent"), step("avx512", "chunked")),
    )


def steps() -> dict[tuple[str, str], Row]:
    """The points of `steps`, by body and mode. Raises NotMeasuredError if there are none."""
    points = {}
    for one in rows(run(), "steps"):
        body, mode = one["step"].split()
        points[body, mode] = one
    return need(points, "cpu_speed: no steps")


def step(body: str, mode: str) -> Row:
    """One of `steps`. Raises NotMeasuredError if there is none."""
    return need(steps().get((body, mode)), f"cpu_speed: no {body} {mode}")


def step_table() -> Table | Missing:
    """Token by token and in chunks, by body: time, quartiles, gain and share."""
    try:
        points = steps()
    except NotMeasuredError:
        return Missing("cpu_speed")
    cells = []
    for body in dict.fromkeys(body for body, _ in points):
        token, chunks = (points.get((body, mode)) for mode in ("recurrent", "chunked"))
        if not (token and chunks):
            continue
        part = percent(as_product(chunks) / chunks["seconds"])
        gain = times(token["seconds"] / chunks["seconds"])
        name = BODIES.get(body, f"compiled, {body}")
        cells.append([name, duration_between(token), duration_between(chunks), gain, part])
    titles = ["", "token by token", "in chunks", "chunks faster by", "of a large product"]
    return Table(titles, cells, wrap=True)


def _curves(record: Record) -> list[tuple[dict[str, Any], list[Row]]]:
    table = record["tables"]["rows"]
    shapes = dict.fromkeys(zip(table["heads"], table["width"], strict=True))
    return [
        ({"implementation": COLOURED.get(name, name), "pass": direction,
          "shape": f"{heads} × {width}"}, points)
        for heads, width in shapes
        for direction in PASSES
        for name in dict.fromkeys(table["implementation"])
        if (points := rows(record, implementation=name, heads=heads, width=width,
                           **{"pass": direction}))
    ]  # fmt: skip


def figure(id: str = "cpu-speed") -> Explorable | Missing:
    """Linear attention's speed as a share of a large product's on one core, by length."""
    try:
        record = run()
    except NotMeasuredError:
        return Missing("cpu_speed")
    series, ceilings = [], []
    for keys, points in _curves(record):
        lengths = [point["length"] for point in points]
        least = [as_product(point, keys["pass"]) for point in points]
        took = [point["seconds"] for point in points]
        parts = [100 * a / b for a, b in zip(least, took, strict=True)]
        columns = {"length": lengths, "ms": [1e3 * s for s in took], "share": parts}
        series.append(Series(keys, columns, source=record["path"]))
        if keys["implementation"] == "chunked":
            columns = {"length": lengths, "ms": [1e3 * s for s in least]}
            ceilings.append(Series(keys, columns, label="as one large product"))
    return Explorable(
        id=id,
        caption=(
            "**On long texts the compiled program comes nearest to a large product of matrices.** "
            f"A large product would take the time of its operations, in chunks of {CHUNK_SIZE} and "
            "without masked products, at the speed of one matrix product: dashed under *Time*."
        ),
        alt=(
            "Share of a large product's speed against sequence length: linear attention compiled "
            "rises the highest, in plain PyTorch to less than half of that, and softmax falls."
        ),
        series=series,
        ceilings=ceilings,
        x=LENGTH,
        y=Choice(
            "Show",
            [
                TIME,
                Axis("share", "Share of a large product's speed", "%", digits=2),
            ],
            default="share",
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
