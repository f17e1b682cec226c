"""The book's figures and the numbers in its prose, each a function of stored results.

A chapter says `figures.loss()` and shows what it gets. Which runs exist decides what is drawn:
a figure shows the best device for which runs are stored, and lists what has not been measured.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import Any

from experiments.harness import record
from lsa.gpt import SCALES

from ..explorable.figure import (
    Axis,
    Choice,
    Crossing,
    Explorable,
    Filter,
    Provenance,
    Series,
    Toggle,
)

Record = dict[str, Any]
SCALE_LABELS = {"nano": "nano, 0.8M", **{name: name for name in SCALES if name != "nano"}}
CLEARLY = 0.05  # nats a byte
CONTEXTS = [256, 1024, 2048, 4096, 16384, 65536, 131072]


def say(**values: object) -> None:
    """Glue values for use in the prose: {glue:text}`name`."""
    from myst_nb import glue

    for name, value in values.items():
        glue(name, str(value), display=False)


def stored(experiment: str, **wanted: list) -> list[Record]:
    """The whole runs of one device: a GPU before a CPU, then the device that has most of them.

    wanted: keys of the configuration and the values of each that a device must have runs of,
    where words were written for them. Runs that were stopped are drawn only while no other are.
    """
    records = record.load(experiment)
    if not records:
        command = f"python -m experiments run {experiment}"
        raise LookupError(f"results/{experiment}: nothing stored; {command}")

    devices: dict[tuple, list[Record]] = {}
    for one in [one for one in records if one["complete"]] or records:
        device = one["provenance"]["device"]
        place = (device["kind"] == "cuda", device["name"], device["count"])
        devices.setdefault(place, []).append(one)

    def rank(place: tuple) -> tuple:
        found = devices[place]
        fits = all({one["config"][key] for one in found} >= {*wanted[key]} for key in wanted)
        is_gpu, name, count = place
        return fits, is_gpu, len(found), name, count

    return devices[max(devices, key=rank)]


def device_name(one: Record) -> str:
    """How a device is named to a reader: "AMD EPYC, 2 threads"."""
    device = one["provenance"]["device"]
    if device["kind"] == "cpu":
        return f"{device['name']}, {device['count']} threads"
    return device["name"] if device["count"] == 1 else f"{device['count']} × {device['name']}"


def provenance(records: Iterable[Record]) -> list[Provenance]:
    """The line under a figure, one entry a record.

    The command is the one that measures the whole figure again; what was typed for a single run
    is in its file.
    """
    return [
        Provenance(
            device=device_name(one),
            commit=one["provenance"]["commit"][:7],
            date=one["provenance"]["started"][:10],
            command=f"python -m experiments run {one['experiment']}",
            href=f"../{one['path']}",
        )
        for one in records
    ]


def curve(one: Record) -> dict[str, list]:
    """Validation loss against updates and minutes of training, the untrained model left out."""
    tables = one["tables"]
    seconds = [0.0, *accumulate(tables["train"]["seconds"])]
    validation = tables["validation"]
    points = [
        (update, loss)
        for update, loss in zip(validation["update"], validation["loss"], strict=True)
        if update
    ]
    return {
        "update": [update for update, _ in points],
        "minutes": [seconds[update] / 60 for update, _ in points],
        "loss": [loss for _, loss in points],
    }


def ngram_loss() -> dict[int, float]:
    """Held-out loss of counting models, by how many letters they look at together."""
    (one,) = stored("ngram_baseline")
    return dict(zip(*(one["tables"]["rows"][name] for name in ("order", "loss")), strict=True))


def yardsticks(records: list[Record]) -> list[Series]:
    """Grey lines: the counting models that the runs of each plot have passed, and the next."""
    named = {2: "letter pairs", 3: "letter triples"}
    lines = []
    for key in sorted({(one["config"]["scale"], one["config"]["context"]) for one in records}):
        curves = [
            curve(one)
            for one in records
            if (one["config"]["scale"], one["config"]["context"]) == key
        ]
        best = min(min(one["loss"]) for one in curves)
        worst = max(max(one["loss"]) for one in curves)
        for order, level in ngram_loss().items():
            if order == 1 or level > worst:
                continue
            columns = {"loss": [level, level]}
            for column in ("update", "minutes"):
                ends = [(one[column][0], one[column][-1]) for one in curves]
                columns[column] = [min(first for first, _ in ends), max(last for _, last in ends)]
            lines.append(
                Series(
                    keys=dict(zip(("scale", "context"), key, strict=True)),
                    columns=columns,
                    label=f"counting {named.get(order, f'{order} letters')}",
                )
            )
            if level < best:
                break
    return lines


def loss(id: str = "headline") -> Explorable:
    """Loss on held-out novels by updates and by time: the book's first figure."""
    records = [one for one in stored("loss_curves") if curve(one)["update"]]
    return Explorable(
        id=id,
        caption=(
            "**The same GPT-2 with and without the exponential.** Loss on five novels that were "
            "never trained on. Both read the same bytes in the same order. Dashed: what counting "
            "letters achieves. At 256 bytes both learn, softmax more; the longer the context, the "
            "more updates linear attention makes in the same *time*."
        ),
        alt=(
            "Falling curves of validation loss at one context length, for softmax and for linear "
            "attention, against minutes of training or against updates."
        ),
        series=[
            Series(
                keys={key: one["config"][key] for key in ("attention", "scale", "context")},
                columns=curve(one),
                source=one["path"],
            )
            for one in records
        ],
        x=Choice(
            "Against",
            [
                Axis("update", "Updates"),
                Axis("minutes", "Time", "minutes of training", digits=3),
            ],
            default="minutes",
        ),
        y=Axis("loss", "Loss", "nats per byte", digits=4),
        color="attention",
        mark="line+dot",
        controls=[
            Filter("scale", "Model", options=SCALE_LABELS, kind="select"),
            Filter("context", "Context", options=CONTEXTS, default=first_shown(records)),
            Toggle("attention", "Attention"),
        ],
        ceilings=yardsticks(records),
        readouts=[Crossing("loss", "Loss to reach", compare=("softmax", "linear"))],
        provenance=provenance([*records, *stored("ngram_baseline")]),
    )


def first_shown(records: list[Record]) -> int:
    """The longest context at which a model of the smallest scale has clearly passed letter pairs.

    There the plot shows learning, and not only what reading costs. Where there is none, the
    longest of all.
    """
    scale = next(name for name in SCALES if any(one["config"]["scale"] == name for one in records))
    found = [one for one in records if one["config"]["scale"] == scale]
    learned = [one for one in found if leaves_pairs(one) is not None]
    return max(one["config"]["context"] for one in learned or found)


def leaves_pairs(one: Record) -> int | None:
    """The first update at which a run was seen clearly below letter pairs."""
    points = zip(*(curve(one)[name] for name in ("update", "loss")), strict=True)
    return next((update for update, loss in points if loss < ngram_loss()[2] - CLEARLY), None)


def pair(records: list[Record], scale: str, context: int) -> tuple[Record, Record]:
    """The softmax and the linear run of one scale and context."""
    found = {
        one["config"]["attention"]: one
        for one in records
        if one["config"]["scale"] == scale and one["config"]["context"] == context
    }
    return found["softmax"], found["linear"]


def minutes_to(one: Record, loss: float) -> float | None:
    """After how many minutes of training the validation loss had come down to `loss`."""
    found = curve(one)
    points = list(zip(found["minutes"], found["loss"], strict=True))
    for (before, high), (after, low) in pairwise(points):
        if high > loss >= low:
            return before + (after - before) * (high - loss) / (high - low)
    return None


def seconds_per_update(one: Record) -> float:
    """Median seconds of an update."""
    seconds = sorted(one["tables"]["train"]["seconds"])
    return seconds[len(seconds) // 2]


def loss_after(one: Record, updates: int) -> float:
    """Validation loss after so many updates; raises LookupError where it was not measured."""
    table = one["tables"]["validation"]
    for update, value in zip(table["update"], table["loss"], strict=True):
        if update == updates:
            return value
    raise LookupError(f"{one['name']}: no validation after {updates} updates")


def common_updates(*records: Record) -> int:
    """The last number of updates after which all of these runs were validated."""
    return max(set.intersection(*({*one["tables"]["validation"]["update"]} for one in records)))


def signed(difference: float, digits: int = 3) -> str:
    """ "0.012 higher" or "0.012 lower"; "the same" when it rounds to nothing."""
    if round(abs(difference), digits) == 0:
        return "the same"
    return f"{abs(difference):.{digits}f} {'higher' if difference > 0 else 'lower'}"


def times(ratio: float) -> str:
    """A ratio as a reader would say it: 1.04×, 7.3×, 120×."""
    if ratio < 1.95:
        return f"{ratio:.2f}×"
    return f"{ratio:.1f}×" if ratio < 19.5 else f"{ratio:.0f}×"


def duration(seconds: float) -> str:
    """Seconds in the unit that fits: 310 µs, 4.2 ms, 1.3 s."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def size(count: float) -> str:
    """Bytes in the unit that fits, powers of 1024: 16 KiB, 1.5 GiB."""
    for unit, one in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= one:
            return f"{count / one:.3g} {unit}"
    return f"{count:.0f} B"


def rows(one: Record, table_name: str = "rows", /, **wanted: object) -> list[dict[str, Any]]:
    """The rows of a record's table in which every named column has the value wanted."""
    table = one["tables"].get(table_name, {})
    every = [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
    return [row for row in every if all(row[key] == value for key, value in wanted.items())]


def sampling(id: str = "sampling-speed") -> Explorable:
    """Time and state of one sampled token against its position."""
    records = stored("sampling_speed")
    series = []
    for one in records:
        for attention in dict.fromkeys(one["tables"]["rows"]["attention"]):
            points = rows(one, attention=attention)
            series.append(
                Series(
                    keys={
                        "attention": attention,
                        "scale": one["config"]["scale"],
                        "batch": one["config"]["batch"],
                    },
                    columns={
                        "position": [row["position"] for row in points],
                        "ms": [row["seconds"] * 1e3 for row in points],
                        "ms_low": [row["low"] * 1e3 for row in points],
                        "ms_high": [row["high"] * 1e3 for row in points],
                        "state": [row["state"] / 2**20 for row in points],
                        "rate": [one["config"]["batch"] / row["seconds"] for row in points],
                    },
                    source=one["path"],
                )
            )
    scales = {one["config"]["scale"] for one in records}
    return Explorable(
        id=id,
        caption=(
            "**The price of one more token.** With a KV cache it rises with everything written so "
            "far; with a recurrent state the thousandth token costs what the first did."
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
