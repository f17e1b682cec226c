"""One attention layer in every mode: measured times beside the limits of the hardware.

Limits are the rooflines of `lsa.cost`, at the speeds of a copy and of a large matrix product in the
same run. `roofline` draws them against the vendors' peaks.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from lsa.attention.compiled import CHUNK_SIZE
from lsa.cost import Cost, least_bytes, mode_cost, training_cost

from ...explorable import palette
from ...explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from ..lib.axes import LENGTH, PASSES, TIME, TIME_A_TOKEN
from ..lib.format import counted, in_words, percent, size, times, times_between
from ..lib.records import Record, Row, have, need, provenance, row, rows
from ..lib.tables import Missing

ITEM_BYTES = {"float32": 4, "bfloat16": 2}
GPU_CHUNK = 64  # tokens, if no size was chosen and registers are not full


def cost(
    run: Record, mode: str, length: int, direction: str, chunk_size: int | None = None
) -> Cost:
    """Costs of a stored point, for all its heads together; steps do not add up.

    chunk_size: None for that of the timed program.
    """
    config = run["config"]
    if chunk_size is None and run["provenance"]["device"]["kind"] == "cpu":
        mode, chunk_size = compiled_as(mode, length, config["width"]), CHUNK_SIZE
    formula = mode_cost if direction == "forward" else training_cost
    head = formula(
        mode, length, config["width"], config["width"],
        chunk_size=chunk_size or GPU_CHUNK, itemsize=ITEM_BYTES[config["dtype"]],
    )  # fmt: skip
    count = config["batch"] * config["heads"]
    return Cost(head.flops * count, head.bytes * count, head.steps, head.state * count)


def compiled_as(mode: str, length: int, width: int) -> str:
    """The mode whose products the compiled program forms: a short text is one chunk."""
    return "attention" if mode == "chunked" and length <= width else mode


def limits(run: Record) -> dict[str, float] | None:
    """`copy` B/s and `matmul` FLOP/s of a record's device, if they were measured."""
    table = run["tables"].get("limits")
    return {name: values[0] for name, values in table.items()} if table else None


def least_seconds(run: Record, mode: str, length: int, direction: str) -> float | None:
    """The roofline of a stored point on its own device; None without measured limits.

    It counts the arithmetic of the timed program without masked products, and its inputs and
    outputs once each: everything else may stay in a cache. Steps are not counted. A step waits for
    one multiply-add, which takes less time than the arithmetic of a step on a CPU.
    """
    speeds = limits(run)
    if not speeds:
        return None
    config = run["config"]
    ends = least_bytes(
        length, config["width"], config["width"],
        itemsize=ITEM_BYTES[config["dtype"]], training=direction != "forward",
    )  # fmt: skip
    spent = cost(run, mode, length, direction)
    moved = ends * config["batch"] * config["heads"]
    return replace(spent, bytes=moved).seconds(speeds["matmul"], speeds["copy"])


def narrowest() -> Record:
    """The stored run with the fewest heads. Raises NotMeasuredError if there is none."""
    records = need(have("mode_speed"), "mode_speed: nothing stored")
    return min(records, key=lambda run: run["config"]["heads"])


def point(run: Record, mode: str, length: int, direction: str = "forward+backward") -> Row:
    """One measured point. Raises NotMeasuredError if there is none."""
    return row(run, mode=mode, length=length, **{"pass": direction})


def seconds(run: Record, mode: str, length: int, direction: str = "forward+backward") -> float:
    """Seconds of one call. Raises NotMeasuredError if it was not timed."""
    return point(run, mode, length, direction)["seconds"]


def ratio_to_softmax(length: int, direction: str = "forward+backward") -> float:
    """How many times faster chunked mode is than softmax, in the run with the fewest heads.

    Raises NotMeasuredError if one of the two was not timed.
    """
    run = narrowest()
    return seconds(run, "softmax", length, direction) / seconds(run, "chunked", length, direction)


def overtakes(run: Record, fast: str, slow: str, direction: str = "forward+backward") -> int | None:
    """`stays_ahead` of two modes."""
    timed = (rows(run, mode=mode, **{"pass": direction}) for mode in (fast, slow))
    return stays_ahead(*timed)


def stays_ahead(fast: list[Row], slow: list[Row]) -> int | None:
    """The shortest length from which `fast` stays ahead of `slow`, by more than their quartiles.

    None if it never does.
    """
    fast_at, slow_at = ({point["length"]: point for point in points} for points in (fast, slow))
    ahead = None
    for length in sorted(fast_at.keys() & slow_at.keys(), reverse=True):
        if fast_at[length]["high"] >= slow_at[length]["low"]:
            break
        ahead = length
    return ahead


def token_ratios() -> list[float]:
    """Recurrent mode's forward time over chunked mode's, at each length.

    Raises NotMeasuredError.
    """
    run = narrowest()
    lengths = [point["length"] for point in rows(run, mode="recurrent", **{"pass": "forward"})]
    need(lengths, "mode_speed: no recurrent mode")
    return [
        seconds(run, "recurrent", n, "forward") / seconds(run, "chunked", n, "forward")
        for n in lengths
    ]


def times_limit(mode: str, length: int) -> float:
    """Seconds of a forward pass over its roofline. Raises NotMeasuredError if one is missing."""
    run = narrowest()
    least = need(least_seconds(run, mode, length, "forward"), "mode_speed: no limits")
    return seconds(run, mode, length, "forward") / least


def doublings(mode: str, direction: str) -> list[float]:
    """Time over that of half the length, for 1,024 tokens or more. Raises NotMeasuredError."""
    took = {
        one["length"]: one["seconds"] for one in rows(narrowest(), mode=mode, **{"pass": direction})
    }
    ratios = [took[2 * n] / took[n] for n in took if n >= 1024 and 2 * n in took]
    return need(ratios, f"mode_speed: no {mode} at twice 1,024")


def attention_behind(length: int, direction: str = "forward+backward") -> float:
    """Time of attention mode over that of softmax. Raises NotMeasuredError."""
    softmax, attention = (
        seconds(narrowest(), mode, length, direction) for mode in ("softmax", "attention")
    )
    return attention / softmax


def quadratic_doublings() -> list[float]:
    """The `doublings` of softmax and of attention mode, both passes. Raises NotMeasuredError."""
    each = product(("softmax", "attention"), PASSES)
    return [ratio for one in each for ratio in doublings(*one)]


def longest(mode: str) -> int:
    """The longest text that a mode was timed on. Raises NotMeasuredError."""
    measured = need(rows(narrowest(), mode=mode), f"mode_speed: no {mode} mode")
    return max(point["length"] for point in measured)


def over_chunked(mode: str, at: str) -> str:
    """A mode's time over that of chunked mode at the longest text of a mode. NotMeasuredError."""
    length = longest(at)
    return times_between(*(point(narrowest(), each, length) for each in (mode, "chunked")))


def last_doubling() -> float:
    """Chunked mode's time at its longest text over that at half of it. Raises NotMeasuredError."""
    last = longest("chunked")
    one, other = (seconds(narrowest(), "chunked", n, "forward") for n in (last // 2, last))
    return other / one


def numbers() -> dict[str, str]:
    """Numbers for the chapter on the three modes: one layer."""

    def ahead(fast: str, slow: str, direction: str = "forward+backward") -> str:
        length = overtakes(narrowest(), fast, slow, direction)
        return f"{length:,}" if length else "no length measured"

    def memory(mode: str) -> str:
        return size(point(narrowest(), mode, longest("attention"))["peak"])

    def same_program(direction: str) -> str:
        attention, chunked = (
            seconds(narrowest(), mode, 64, direction) for mode in ("attention", "chunked")
        )
        return percent(attention / chunked - 1)

    attention, recurrent = (mode_cost(mode, 1024, 64, 64) for mode in ("attention", "recurrent"))
    return in_words(
        flops_ratio=lambda: times(attention.flops / recurrent.flops),
        dense_ratio=lambda: times(2 * attention.flops / recurrent.flops),
        token_span=lambda: " to ".join(times(end(token_ratios())) for end in (min, max)),
        recurrent_over_attention=lambda: ahead("recurrent", "attention", "forward"),
        chunked_over_softmax=lambda: ahead("chunked", "softmax"),
        longest=lambda: f"{longest('chunked'):,}",
        longest_softmax=lambda: over_chunked("softmax", "chunked"),
        longest_attention=lambda: f"{longest('attention'):,}",
        attention_over_chunked=lambda: over_chunked("attention", "attention"),
        softmax_over_chunked=lambda: over_chunked("softmax", "attention"),
        chunked_last_doubling=lambda: times(last_doubling()),
        attention_512=lambda: times(attention_behind(512, "forward")),
        attention_longest=lambda: times(attention_behind(longest("attention"), "forward")),
        attention_512_both=lambda: times(attention_behind(512)),
        doubling_least=lambda: times(min(quadratic_doublings())),
        doubling_most=lambda: times(max(quadratic_doublings())),
        attention_longest_both=lambda: times(attention_behind(longest("attention"))),
        same_forward=lambda: same_program("forward"),
        same_both=lambda: same_program("forward+backward"),
        memory_softmax=lambda: memory("softmax"),
        memory_linear=lambda: memory("chunked"),
        fewest_repeats=lambda: counted(min(one["repeats"] for one in rows(narrowest()))),
        **{
            f"limit_{mode}": lambda mode=mode: times(times_limit(mode, longest("attention")))
            for mode in ("attention", "recurrent", "chunked")
        },
    )


def _groups(records: list[Record]) -> list[tuple[Record, dict[str, Any], list[dict[str, Any]]]]:
    """(record, keys, points) of every curve."""
    return [
        (run, {"mode": mode, "pass": direction, "heads": run["config"]["heads"]}, points)
        for run in records
        for mode in dict.fromkeys(run["tables"]["rows"]["mode"])
        for direction in PASSES
        if (points := rows(run, mode=mode, **{"pass": direction}))
    ]


def _controls(records: list[Record]) -> list[Filter | Toggle]:
    heads = [Filter("heads", "Heads")] if len(records) > 1 else []
    return [*heads, Filter("pass", "Pass", options=PASSES), Toggle("mode", "Mode")]


def figure(id: str = "mode-speed") -> Explorable | Missing:
    """Time and memory of one attention layer against the length, for each mode."""
    records = have("mode_speed")
    if not records:
        return Missing("mode_speed")
    return Explorable(
        id=id,
        caption=(
            "**Chunked mode is the fastest on long texts.** One head, computed in four ways. "
            "Softmax and attention mode grow with the square of the length, recurrent and chunked "
            "mode with the length."
        ),
        alt=(
            "Time against sequence length on logarithmic scales. Attention mode and softmax bend "
            "upwards together; recurrent and chunked mode rise more slowly, chunked mode below."
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
                source=run["path"],
            )
            for run, keys, points in _groups(records)
        ],
        x=LENGTH,
        y=Choice(
            "Show",
            [
                Axis("ms", "Time", "ms", log=10, low="ms_low", high="ms_high", digits=3),
                TIME_A_TOKEN,
                Axis("peak", "Peak memory", "MiB", log=10, digits=3),
            ],
        ),
        color="mode",
        mark="line+dot",
        controls=_controls(records),
        provenance=provenance(records),
    )


def rooflines(id: str = "mode-limits", records: list[Record] | None = None) -> Explorable | Missing:
    """Every measured curve with its roofline."""
    records = [run for run in records or have("mode_speed") if limits(run)]
    if not records:
        what = "The speeds of a copy and of a matrix product are not stored yet"
        return Missing("mode_speed --force", what)
    series, ceilings = [], []
    for run, keys, points in _groups(records):
        lengths = [row["length"] for row in points]
        seconds = [row["seconds"] for row in points]
        least = [least_seconds(run, keys["mode"], length, keys["pass"]) for length in lengths]
        ratio = [took / bound for took, bound in zip(seconds, least, strict=True)]
        columns = {"length": lengths, "ms": [s * 1e3 for s in seconds], "times": ratio}
        series.append(Series(keys=keys, columns=columns, source=run["path"]))
        name = palette.label(keys["mode"])
        bound = {"length": lengths, "ms": [s * 1e3 for s in least]}
        ceilings.append(Series(keys=keys, columns=bound, label=f"bound, {name.lower()}"))
    return Explorable(
        id=id,
        caption=(
            "**On long texts recurrent mode is the farthest from its roofline.** The bound, dashed "
            "under *Time*, is the time of the arithmetic at the speed of a large matrix product "
            "or, if longer, of inputs and outputs at the speed of a copy. Both speeds are measured "
            "in the same run. Softmax and attention mode form the same products, so their bounds "
            "coincide."
        ),
        alt=(
            "Time over its bound against sequence length on logarithmic scales. All four curves "
            "fall at first; on long texts recurrent mode stays above the others."
        ),
        series=series,
        ceilings=ceilings,
        x=LENGTH,
        y=Choice(
            "Show",
            [
                TIME,
                Axis("times", "Times its bound", "×", log=10, digits=3),
            ],
            default="times",
        ),
        color="mode",
        mark="line+dot",
        controls=_controls(records),
        provenance=provenance(records),
    )
