"""One sampled token: its time and its memory, with a KV cache and with a recurrent state."""

from __future__ import annotations

from lsa.cost import tick_cost
from lsa.gpt import gpt_config

from ...explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from ..lib.format import duration, in_words, percent, size, times, times_between
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

SHORT = 1024  # a position at which a small model's bytes have doubled, but not its time


def figure(id: str = "sampling-speed") -> Explorable | Missing:
    """Time and state of one sampled token against its position."""
    records = have("sampling_speed")
    if not records:
        return Missing("sampling_speed")
    series = [curve for run in records for curve in _series(run)]
    scales = {run["config"]["scale"] for run in records}
    return Explorable(
        id=id,
        caption=(
            "**With a KV cache a token takes longer the later it comes; with a state it does "
            "not.** Time of the next token, by the number of tokens before it."
        ),
        alt=(
            "Milliseconds a token against position in the text. The KV cache's line rises from a "
            "few thousand tokens on; the recurrent state's line is flat."
        ),
        series=series,
        x=Axis("position", "Position in the text", "tokens", log=2),
        y=Choice(
            "Show",
            [
                Axis("ms", "Time per token", "ms", low="ms_low", high="ms_high", digits=3),
                Axis("state", "State kept", "MiB", log=10, digits=3),
                Axis("rate", "Throughput", "tokens/s", log=10, digits=3),
            ],
        ),
        color="attention",
        mark="line+dot",
        controls=[
            Filter(
                "scale",
                "Model",
                options=SCALE_LABELS,
                kind="select",
                default="124M" if "124M" in scales else None,
            ),
            Filter("batch", "Texts at once", default=1),
            Toggle("attention", "Attention"),
        ],
        provenance=provenance(records),
    )


def _series(run: Record) -> list[Series]:
    """A curve for each attention of a run."""
    config, series = run["config"], []
    for attention in dict.fromkeys(run["tables"]["rows"]["attention"]):
        points = rows(run, attention=attention)
        columns = {
            "position": [row["position"] for row in points],
            "ms": [row["seconds"] * 1e3 for row in points],
            "ms_low": [row["low"] * 1e3 for row in points],
            "ms_high": [row["high"] * 1e3 for row in points],
            "state": [row["state"] / 2**20 for row in points],
            "rate": [config["batch"] / row["seconds"] for row in points],
        }
        keys = {"attention": attention, "scale": config["scale"], "batch": config["batch"]}
        series.append(Series(keys, columns, source=run["path"]))
    return series


def tick(attention: str, position: int, scale: str = "124M", batch: int = 1) -> Row:
    """One measured token. Raises NotMeasuredError."""
    run = of_config(have("sampling_speed"), scale=scale, batch=batch)
    return row(run, attention=attention, position=position)


def seconds(attention: str, position: int, scale: str = "124M", batch: int = 1) -> float:
    """Seconds of one token. Raises NotMeasuredError."""
    return tick(attention, position, scale, batch)["seconds"]


def longest(scale: str = "124M", batch: int = 1) -> int:
    """The last position measured. Raises NotMeasuredError."""
    run = of_config(have("sampling_speed"), scale=scale, batch=batch)
    return max(point["position"] for point in rows(run))


def rises() -> int:
    """The first position at which a KV cache's token takes twice as long as the first.

    Raises NotMeasuredError.
    """
    points = rows(of_config(have("sampling_speed"), scale="124M", batch=1), attention="softmax")
    need(points, "sampling_speed: no softmax")
    points.sort(key=lambda point: point["position"])
    late = [point["position"] for point in points if point["seconds"] > 2 * points[0]["seconds"]]
    return need(late, "sampling_speed: the cache's token never takes so long")[0]


def crossing() -> int:
    """The position from which a KV cache of GPT-2 124M is larger than the state, by formula."""
    softmax, linear = (gpt_config("124M", attention=kind) for kind in ("softmax", "linear"))
    t = 1
    while tick_cost(softmax, t, itemsize=4).state <= tick_cost(linear, t, itemsize=4).state:
        t += 1
    return t


def spread(attention: str, scale: str = "124M") -> float:
    """By which share a model's slowest position takes longer than its fastest."""
    run = of_config(have("sampling_speed"), scale=scale, batch=1)
    seconds = [point["seconds"] for point in rows(run, attention=attention)]
    need(seconds, f"sampling_speed: no {attention}")
    return max(seconds) / min(seconds) - 1


def read(attention: str, position: int) -> float:
    """Bytes of weights and state, in float32, that a token of the 124M run moves, by count.

    Raises NotMeasuredError.
    """
    vocabulary = of_config(have("sampling_speed"), scale="124M")["config"]["vocab_size"]
    shape = gpt_config("124M", attention=attention, vocab_size=vocabulary)
    return tick_cost(shape, position, itemsize=4).bytes


def rates() -> tuple[float, float]:
    """Bytes a second of the first token with a cache, and of what the last reads in addition.

    Raises NotMeasuredError.
    """
    need(longest() > 1, "sampling_speed: no position after the first")
    bytes_, seconds_ = (
        [of("softmax", position) for position in (1, longest())] for of in (read, seconds)
    )
    more = (bytes_[1] - bytes_[0]) / (seconds_[1] - seconds_[0])
    return bytes_[0] / seconds_[0], more


def bytes_rise(position: int) -> float:
    """Counted bytes that a token at a position reads with nano's KV cache, over the first's."""
    config = gpt_config("nano", attention="softmax", vocab_size=256)
    there, first = (tick_cost(config, t, itemsize=4).bytes for t in (position, 1))
    return there / first


def batch_gain(attention: str, batch: int = 16, scale: str = "nano") -> float:
    """Tokens a second of `batch` texts at the last position, over those of one text."""
    last = longest(scale)
    one, several = (seconds(attention, last, scale, texts) for texts in (1, batch))
    return batch * one / several


def numbers() -> dict[str, str]:
    """Numbers for the chapter on sampling."""

    def ratio(scale: str) -> str:
        last = longest(scale)
        return times_between(tick("softmax", last, scale), tick("linear", last, scale))

    def gain(attention: str) -> str:
        """`batch_gain` for prose, with the range from the quartiles."""
        last = longest("nano")
        one, several = (tick(attention, last, "nano", batch) for batch in (1, 16))
        return times_between({key: 16 * one[key] for key in ("seconds", "low", "high")}, several)

    return in_words(
        longest=lambda: f"{longest():,}",
        kv_first=lambda: duration(seconds("softmax", 1)),
        kv_last=lambda: duration(seconds("softmax", longest())),
        state_first=lambda: duration(seconds("linear", 1)),
        state_last=lambda: duration(seconds("linear", longest())),
        state_spread=lambda: percent(spread("linear")),
        ratio=lambda: ratio("124M"),
        rises=lambda: f"{rises():,}",
        kv_size=lambda: size(tick("softmax", longest())["state"]),
        state_size=lambda: size(tick("linear", longest())["state"]),
        crossing=crossing,
        outweighs=lambda: f"{6 * gpt_config('124M').d_model:,}",
        nano_outweighs=lambda: f"{6 * gpt_config('nano').d_model:,}",
        nano_ratio=lambda: ratio("nano"),
        nano_bytes=lambda: times(bytes_rise(SHORT)),
        weights_rate=lambda: f"{rates()[0] / 1e9:.0f} GB/s",
        cache_rate=lambda: f"{rates()[1] / 1e9:.0f}",
        counted_ratio=lambda: times(read("softmax", longest()) / read("linear", longest())),
        nano_time=lambda: times_between(*(tick("softmax", at, "nano") for at in (SHORT, 1))),
        state_gain=lambda: gain("linear"),
        cache_gain=lambda: gain("softmax"),
    )


def front_numbers() -> dict[str, str]:
    """Numbers for the first page: sampling."""
    return in_words(
        tick_first=lambda: duration(seconds("softmax", 1)),
        tick_last=lambda: duration(seconds("softmax", 16384)),
        tick_state_first=lambda: duration(seconds("linear", 1)),
        tick_state=lambda: duration(seconds("linear", 16384)),
    )
