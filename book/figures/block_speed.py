"""The modes inside a model: one block of GPT-2 in training, and where its time goes."""

from __future__ import annotations

from lsa.cost import update_flops
from lsa.gpt import gpt_config

from ..explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from .results import SCALE_LABELS, Record, provenance, rows, stored
from .words import Missing, have


def seconds(scale: str, mode: str, length: int) -> float:
    """Of one block's update. Raises LookupError where it was not measured."""
    for one in stored("block_speed"):
        if one["config"]["scale"] == scale:
            for row in rows(one, mode=mode, length=length):
                return row["seconds"]
    raise LookupError(f"block_speed: no {mode} mode of {scale} at {length}")


def lengths(scale: str, *modes: str) -> list[int]:
    """At which all of these modes were measured."""
    found = [
        {row["length"] for row in rows(one, mode=mode)}
        for one in stored("block_speed")
        if one["config"]["scale"] == scale
        for mode in modes
    ]
    return sorted(set.intersection(*found))


def overtakes(scale: str, fast: str, slow: str) -> int | None:
    """The shortest length from which `fast` stays ahead of `slow`; None if it never does."""
    ahead = None
    for length in reversed(lengths(scale, fast, slow)):
        if seconds(scale, fast, length) >= seconds(scale, slow, length):
            break
        ahead = length
    return ahead


def doubles(scale: str, mode: str, base: int) -> int | None:
    """The shortest length at which a token takes twice what it takes at `base`; None if none."""
    token = seconds(scale, mode, base) / base
    longer = (length for length in lengths(scale, mode) if length > base)
    return next((n for n in longer if seconds(scale, mode, n) / n >= 2 * token), None)


def least_seconds(one: Record, mode: str, length: int) -> float:
    """All of a block's arithmetic at the speed of a large matrix product."""
    attention = "softmax" if mode == "softmax" else "linear"
    options = {} if mode == "softmax" else {"mode": mode}
    shape = gpt_config(
        one["config"]["scale"], n_layer=1, vocab_size=0,
        attention=attention, attention_options=options,
    )  # fmt: skip
    flops = update_flops(shape, length) * length
    return flops / one["tables"]["limits"]["matmul"][0]


def _scales(records: list[Record]) -> dict[str, str]:
    measured = {one["config"]["scale"] for one in records}
    return {name: label for name, label in SCALE_LABELS.items() if name in measured}


def blocks(id: str = "block-speed") -> Explorable | Missing:
    """Time and memory of a block's update against the length, by mode."""
    records = have("block_speed")
    if not records:
        return Missing("block_speed")
    series, ceilings = [], []
    for one in records:
        softmax = {row["length"]: row["seconds"] for row in rows(one, mode="softmax")}
        for mode in dict.fromkeys(one["tables"]["rows"]["mode"]):
            points = rows(one, mode=mode)
            keys = {"mode": mode, "scale": one["config"]["scale"]}
            at = [row["length"] for row in points]
            columns = {
                "length": at,
                "ms": [row["seconds"] * 1e3 for row in points],
                "us_token": [row["seconds"] / row["length"] * 1e6 for row in points],
                "times": [softmax[row["length"]] / row["seconds"] for row in points],
                "peak": [row["peak"] / 2**30 for row in points],
            }
            series.append(Series(keys, columns, source=one["path"]))
            if mode not in ("softmax", "chunked"):
                continue  # attention mode's arithmetic is softmax's, recurrent mode's a little less
            least = [least_seconds(one, mode, length) for length in at]
            bound = {
                "length": at,
                "ms": [s * 1e3 for s in least],
                "us_token": [s / length * 1e6 for s, length in zip(least, at, strict=True)],
            }
            ceilings.append(Series(keys, bound, label=f"limit, {mode}"))
    return Explorable(
        id=id,
        caption=(
            "**One block of GPT-2 in training.** Forward, and the gradients of all its weights. "
            "Projections and the multilayer perceptron cost the same in every mode; attention is "
            "what sets the lines apart, the later the wider the model. Dashed: all the arithmetic "
            "of softmax's and of chunked mode's block at the speed of a large matrix product."
        ),
        alt=(
            "Time of a block's update against sequence length on logarithmic scales. At short "
            "lengths the lines lie close together; then attention mode bends upwards first, "
            "softmax later, and chunked mode least."
        ),
        series=series,
        ceilings=ceilings,
        x=Axis("length", "Sequence length", "tokens", log=2),
        y=Choice(
            "Show",
            [
                Axis("ms", "Time", "ms", log=10, digits=3),
                Axis("us_token", "Time per token", "µs", log=10, digits=3),
                Axis("times", "Faster than softmax", "×", log=10, digits=3),
                Axis("peak", "Peak memory", "GiB", log=10, digits=3),
            ],
        ),
        color="mode",
        mark="line+dot",
        controls=[
            Filter("scale", "Block of", options=_scales(records), default="1.5B"),
            Toggle("mode", "Mode"),
        ],
        provenance=provenance(records),
    )
