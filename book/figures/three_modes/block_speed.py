"""The modes inside a model: one block of GPT-2 in training, and the parts of its time."""

from __future__ import annotations

from lsa.cost import update_flops
from lsa.gpt import SCALES, gpt_config

from ...explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from ..index.mode_speed import stays_ahead
from ..lib.axes import LENGTH, TIME, TIME_A_TOKEN
from ..lib.format import counted, in_words, percent, times, times_between
from ..lib.records import (
    SCALE_LABELS,
    Record,
    Row,
    have,
    need,
    of_config,
    provenance,
    row,
    rows,
)
from ..lib.tables import Missing


def point(scale: str, mode: str, length: int) -> Row:
    """One block's update. Raises NotMeasuredError if it was not timed."""
    return row(of_config(have("block_speed"), scale=scale), mode=mode, length=length)


def seconds(scale: str, mode: str, length: int) -> float:
    """Seconds of one block's update. Raises NotMeasuredError if it was not timed."""
    return point(scale, mode, length)["seconds"]


def peak(scale: str, mode: str, length: int) -> int:
    """Peak bytes of one block's update. Raises NotMeasuredError if it was not timed."""
    return point(scale, mode, length)["peak"]


def lengths(scale: str, *modes: str) -> list[int]:
    """Sequence lengths at which all of these modes were measured, at least one.

    Raises NotMeasuredError.
    """
    run = of_config(have("block_speed"), scale=scale)
    measured = ({point["length"] for point in rows(run, mode=mode)} for mode in modes)
    common = sorted(set.intersection(*measured))
    return need(common, f"block_speed: no length of {scale} with {', '.join(modes)}")


def ratio_to_softmax(scale: str, length: int) -> float:
    """How many times faster chunked mode is than softmax. Raises NotMeasuredError."""
    return seconds(scale, "softmax", length) / seconds(scale, "chunked", length)


def over_none() -> list[float]:
    """Time of the small block in chunked mode over that without attention, by length."""
    return [
        seconds("124M", "chunked", length) / seconds("124M", "none", length)
        for length in lengths("124M", "chunked", "none")
    ]


def softmax_speed(length: int) -> float:
    """Operations a second of softmax in the small block, over those of a large product.

    Softmax: its update less that without attention. Raises NotMeasuredError.
    """
    run = of_config(have("block_speed"), scale="124M")
    flops = 6 * length**2 * SCALES["124M"]["d_model"]  # causal, forward and back
    took = seconds("124M", "softmax", length) - seconds("124M", "none", length)
    return flops / took / run["tables"]["limits"]["matmul"][0]


def overtakes(scale: str, fast: str, slow: str) -> int | None:
    """`stays_ahead` of two modes."""
    run = of_config(have("block_speed"), scale=scale)
    return stays_ahead(rows(run, mode=fast), rows(run, mode=slow))


def least_seconds(run: Record, mode: str, length: int) -> float:
    """Time of all of a block's arithmetic at the speed of a large matrix product."""
    attention = "softmax" if mode == "softmax" else "linear"
    options = {} if mode == "softmax" else {"mode": mode}
    shape = gpt_config(
        run["config"]["scale"], n_layer=1, vocab_size=0,
        attention=attention, attention_options=options,
    )  # fmt: skip
    flops = update_flops(shape, length) * length
    return flops / run["tables"]["limits"]["matmul"][0]


def numbers() -> dict[str, str]:
    """Numbers for the chapter on the three modes: a block."""

    def longest() -> int:
        return lengths("1.5B", "softmax", "chunked")[-1]

    def faster(scale: str, length: int) -> str:
        return times_between(point(scale, "softmax", length), point(scale, "chunked", length))

    def by_operations() -> float:
        run = of_config(have("block_speed"), scale="1.5B")
        return least_seconds(run, "softmax", longest()) / least_seconds(run, "chunked", longest())

    def over_attention() -> int:
        length = overtakes("1.5B", "chunked", "attention")
        return need(length, "block_speed: at no length measured")

    equal = {scale: 12 * SCALES[scale]["d_model"] for scale in ("1.5B", "nano")}
    return in_words(
        block_1024=lambda: faster("1.5B", 1024),
        block_4096=lambda: faster("1.5B", 4096),
        block_longest=lambda: faster("1.5B", longest()),
        block_length=lambda: f"{longest():,}",
        block_small=lambda: faster("124M", longest()),
        block_none_least=lambda: times(min(over_none())),
        block_none_most=lambda: times(max(over_none())),
        block_counted=lambda: times(by_operations()),
        block_softmax_speed=lambda: percent(softmax_speed(longest())),
        block_recurrent=lambda: times(
            max(
                point(scale, "recurrent", n)["seconds"] / point(scale, "chunked", n)["seconds"]
                for scale in ("1.5B", "124M")
                for n in lengths(scale, "recurrent", "chunked")
            )
        ),
        block_over_attention=lambda: f"{over_attention():,}",
        block_repeats=lambda: counted(point("1.5B", "softmax", longest())["repeats"]),
        blocks=lambda: SCALES["1.5B"]["n_layer"],
        equal_wide=lambda: f"{equal['1.5B']:,}",
        equal_nano=lambda: f"{equal['nano']:,}",
    )


def _scales(records: list[Record]) -> dict[str, str]:
    measured = {run["config"]["scale"] for run in records}
    return {name: label for name, label in SCALE_LABELS.items() if name in measured}


def _measured(run: Record) -> list[Series]:
    """A curve for each mode of a run, at the lengths at which softmax was timed too."""
    softmax = {row["length"]: row["seconds"] for row in rows(run, mode="softmax")}
    series = []
    for mode in dict.fromkeys(run["tables"]["rows"]["mode"]):
        points = [row for row in rows(run, mode=mode) if row["length"] in softmax]
        if not points:
            continue
        columns = {
            "length": [row["length"] for row in points],
            "ms": [row["seconds"] * 1e3 for row in points],
            "us_token": [row["seconds"] / row["length"] * 1e6 for row in points],
            "times": [softmax[row["length"]] / row["seconds"] for row in points],
            "peak": [row["peak"] / 2**30 for row in points],
        }
        keys = {"mode": mode, "scale": run["config"]["scale"]}
        series.append(Series(keys, columns, source=run["path"]))
    return series


def _ceilings(run: Record) -> list[Series]:
    """Lower bounds of softmax and chunked mode; attention mode's arithmetic is softmax's."""
    series = []
    for curve in _measured(run):
        mode, lengths = curve.keys["mode"], curve.columns["length"]
        if mode not in ("softmax", "chunked"):
            continue
        least = [least_seconds(run, mode, length) for length in lengths]
        columns = {
            "length": lengths,
            "ms": [s * 1e3 for s in least],
            "us_token": [s / length * 1e6 for s, length in zip(least, lengths, strict=True)],
        }
        series.append(Series(curve.keys, columns, label=f"bound, {mode}"))
    return series


def figure(id: str = "block-speed") -> Explorable | Missing:
    """Time and memory of a block's update against the length, by mode."""
    records = have("block_speed")
    if not records:
        return Missing("block_speed")
    scales = _scales(records)
    shown = "1.5B" if "1.5B" in scales else None
    return Explorable(
        id=id,
        caption=(
            "**In a block linear attention leads by less than in the layer alone, and from 512 "
            "tokens on by less in the wider of two.** One block of GPT-2 in training: forward, "
            "and the gradients of all its weights. Projections and the multilayer perceptron cost "
            "the same in every mode. Dashed under *Time*: bounds of the blocks with softmax and "
            "with chunked mode, all arithmetic at the speed of a large matrix product."
        ),
        alt=(
            "How many times as fast as with softmax a block's update is, against sequence length. "
            "At short lengths the lines lie close together; then chunked mode rises, and "
            "attention mode falls below one."
        ),
        series=[curve for run in records for curve in _measured(run)],
        ceilings=[curve for run in records for curve in _ceilings(run)],
        x=LENGTH,
        y=Choice(
            "Show",
            [
                TIME,
                TIME_A_TOKEN,
                Axis("times", "Faster than softmax", "×", log=10, digits=3),
                Axis("peak", "Peak memory", "GiB", log=10, digits=3),
            ],
            default="times",
        ),
        color="mode",
        mark="line+dot",
        controls=[
            Filter("scale", "Block of", options=scales, default=shown),
            Toggle("mode", "Mode"),
        ],
        provenance=provenance(records),
    )
