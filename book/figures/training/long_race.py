"""The long race: loss and recall of a repeated passage against megabytes read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from statistics import fmean

from ...explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from ..lib.axes import MINUTES
from ..lib.format import listed
from ..lib.pairs import Pairs, compare
from ..lib.records import Record, Row, learned, need, provenance, row, rows
from ..lib.tables import Missing

EXPERIMENT = "long_race"
SEEDS = (0, 1)  # the figure shows the first
PAIR = ("linear", "softmax")
CONTROL = ("linear", "linear, near only")
MODELS = {
    "softmax": "Softmax",
    "linear": "Linear",
    "window": "Softmax, last 128",
    "linear, near only": "Linear, near only",
}
TEXTS = {"all": (0, True), "again": (1, True), "some": (0, False)}  # seed, whether it reads all
DISTANCES = (64, 128, 256, 512, 896)
EARLY, MIDDLE = 305, 2440  # updates after which the lead of the chapter's sentences is taken
RATE, TWICE = 2e-3, 4e-3  # runs at other rates are no part of these comparisons
SOME, ALL = 4880, 17080  # updates of runs that do not read all text, and of those that do
LITTLE, MUCH = 0.1, 0.25  # gain after 64 bytes of a model that does not copy, and of one that does
EVERYWHERE = (1, 1024)  # positions in a window
PARTS = ((1, 127), (128, 255), (256, 511), (512, 1024))  # of a window, from its first byte


def runs(seed: int = 0, *, whole: bool = False, rate: float = RATE) -> dict[str, Record]:
    """The complete run of a seed of each model that has one, of the plan's scale.

    whole: those that read all training novels.
    """
    by_model = {
        run["config"]["model"]: run
        for run in learned(EXPERIMENT)
        if run["complete"] and "again" in run["tables"]
        if run["config"]["seed"] == seed and run["config"]["scale"] == "nano"
        if run["config"]["learning_rate"] == rate
        if (run["config"]["updates"] > SOME) == whole
    }
    return {model: by_model[model] for model in MODELS if model in by_model}


def megabytes(run: Record, updates: int) -> float:
    """Text read after a number of updates."""
    return updates * run["config"]["spans"] * run["config"]["context"] / 1e6


def of_novels(positions: Iterable[Row], within: tuple[int, int] = EVERYWHERE) -> list[float]:
    """Loss of each novel: the mean over its positions, all by default."""
    sums: dict[int, float] = defaultdict(float)
    tokens: dict[int, int] = defaultdict(int)
    for one in positions:
        if within[0] <= one["first"] and one["last"] <= within[1]:
            here = one["last"] - one["first"] + 1
            sums[one["novel"]] += here * one["loss"]
            tokens[one["novel"]] += here
    return [sums[novel] / tokens[novel] for novel in sums]


def by_novel(run: Record, within: tuple[int, int] = EVERYWHERE) -> dict[int, list[float]]:
    """Held-out loss of each novel, by updates."""
    groups: dict[int, list[Row]] = defaultdict(list)
    for one in rows(run, "positions"):
        groups[one["update"]].append(one)
    return {update: of_novels(each, within) for update, each in groups.items()}


def losses(run: Record) -> dict[int, float]:
    """Held-out loss by updates: mean over all positions and novels."""
    return {update: fmean(each) for update, each in by_novel(run).items()}


def gains(run: Record, distance: int) -> dict[int, tuple[float, float]]:
    """By updates: the mean gain on a passage that comes again, and half of its 95% interval."""
    places: dict[int, list[float]] = defaultdict(list)
    for one in rows(run, "again", distance=distance):
        places[one["update"]].append(one["gain"])
    pairs = {update: compare(each) for update, each in places.items()}
    return {update: (one.mean, one.half or 0) for update, one in pairs.items()}


def timed() -> list[Record]:
    """The run that times an update of each model, if it is stored."""
    return [run for run in learned(EXPERIMENT) if "speed" in run["tables"]]


def pace(model: str) -> Row:
    """Seconds of an update: median and quartiles. Raises NotMeasuredError."""
    return row(need(timed(), f"{EXPERIMENT}: no seconds of an update")[0], "speed", model=model)


def _series(run: Record, text: str) -> Series:
    loss = losses(run)
    columns: dict[str, list[float]] = {
        "megabytes": [megabytes(run, update) for update in loss],
        "loss": [*loss.values()],
    }
    if timed():
        each = pace(run["config"]["model"])["seconds"] / 60
        columns["minutes"] = [update * each for update in loss]
    for distance in DISTANCES:
        means, halves = zip(*gains(run, distance).values(), strict=True)
        columns[f"gain_{distance}"] = [*means]
        columns[f"low_{distance}"] = [a - b for a, b in zip(means, halves, strict=True)]
        columns[f"high_{distance}"] = [a + b for a, b in zip(means, halves, strict=True)]
    keys = {"model": run["config"]["model"], "text": text}
    return Series(keys, columns, source=run["path"])


def _gain_axis(distance: int) -> Axis:
    return Axis(
        f"gain_{distance}", f"Gain {distance} bytes later", "nats per byte", digits=3,
        low=f"low_{distance}", high=f"high_{distance}",
    )  # fmt: skip


def figure(id: str = "long-race") -> Explorable | Missing:
    """Loss, and gain on a repeated passage at five distances, against megabytes read."""
    texts = {text: runs(seed, whole=whole) for text, (seed, whole) in TEXTS.items()}
    every = [run for found in texts.values() for run in found.values()]
    if not every:
        return Missing(EXPERIMENT)
    read = Axis("megabytes", "Text read", "MB", digits=3)
    return Explorable(
        id=id,
        caption=_caption(every[0]),
        alt=(
            "Held-out loss, or the gain on a passage that comes again, against the megabytes of "
            "text read or the time, one line for each model."
        ),
        series=[_series(run, text) for text, found in texts.items() for run in found.values()],
        x=Choice("Against", [read, MINUTES], default="megabytes") if timed() else read,
        y=Choice(
            "Show",
            [Axis("loss", "Loss", "nats per byte"), *map(_gain_axis, DISTANCES)],
            default="gain_256",
        ),
        color="model",
        mark="line+dot",
        controls=[
            Filter("text", "Trained on", options=_amounts(texts)),
            Toggle("model", "Model", options=MODELS),
        ],
        provenance=provenance([*every, *timed()]),
    )


def _amounts(texts: dict[str, dict[str, Record]]) -> dict[str, str]:
    """The text that the runs have read, in words."""
    ends = {
        text: f"{megabytes(run, run['config']['updates']):.0f} MB"
        for text, found in texts.items()
        for run in found.values()
    }
    return {
        text: {"all": f"all, {end}", "again": "all, second seed"}.get(text, end)
        for text, end in ends.items()
    }


def _caption(run: Record) -> str:
    return (
        "**With all the text softmax begins to copy; linear attention does not.** "
        f"Models of {run['config']['size']} parameters. *Gain*: how much lower the "
        "loss of a passage is when it comes again; bars: 95% intervals over "
        f"{run['config']['places']} places. *All*: every training novel once. "
        "Time is updates times the median seconds of one, measured on a quiet CPU."
    )


def of(model: str, seed: int = 0, *, whole: bool = False) -> Record:
    """The complete run of a model. Raises NotMeasuredError."""
    return need(runs(seed, whole=whole).get(model), f"{EXPERIMENT}: no {model} of seed {seed}")


def seeds_of(*models: str, whole: bool = False) -> list[int]:
    """The seeds that have a complete run of each of these models."""
    return [seed for seed in SEEDS if {*models} <= {*runs(seed, whole=whole)}]


def each_seed(told: Callable[[int], str], *models: str, whole: bool = False) -> str:
    """What is told of each seed of these models: "1.280 and 1.277". Raises NotMeasuredError."""
    found = [told(seed) for seed in seeds_of(*models, whole=whole)]
    return listed(need(found, f"{EXPERIMENT}: no {models}"))


def onset(seed: int) -> tuple[int, int]:
    """Updates of all text between which softmax begins to copy. Raises NotMeasuredError."""
    run = of("softmax", seed, whole=True)
    found = {update: gain for update, (gain, _) in gains(run, 64).items()}
    copies = need([one for one in found if found[one] > MUCH], f"{run['name']}: no copy")[0]
    return [one for one in found if one < copies and found[one] < LITTLE][-1], copies


def read(*, whole: bool, update: int | None = None) -> str:
    """Text that linear attention has read, at the end by default. Raises NotMeasuredError."""
    run = of("linear", whole=whole)
    return f"{megabytes(run, update or run['config']['updates']):.0f} MB"


def more_with_all(model: str, distance: int) -> Pairs:
    """By how much all text raises a model's gain at the end over 20 MB, place by place."""
    both = (last_gains(model, distance, whole=whole) for whole in (True, False))
    return compare([more - less for more, less in zip(*both, strict=True)])


def loss(model: str, seed: int = 0, *, whole: bool = False) -> float:
    """Held-out loss at the end."""
    return [*losses(of(model, seed, whole=whole)).values()][-1]


def marks(run: Record) -> list[int]:
    """Updates at which both losses and gains are compared: every 5 MB."""
    every = run["config"]["validate_every"]
    return [update for update in by_novel(run) if update and update % every == 0]


def constant_marks() -> list[int]:
    """Marks of all text until which the learning rate is constant."""
    run = of("linear", whole=True)
    last = run["config"]["updates"] - run["config"]["cooldown_updates"]
    return [update for update in marks(run) if update <= last]


def far_saves(seed: int = 0, *, whole: bool = False) -> list[Pairs]:
    """What linear attention saves over near-sighted heads alone, novel by novel, at each mark."""
    own, near = (by_novel(of(model, seed, whole=whole)) for model in CONTROL)
    return [
        compare([b - a for a, b in zip(own[update], near[update], strict=True)])
        for update in marks(of("linear", whole=whole))
    ]


def lead(
    update: int, seed: int = 0, *, whole: bool = False, within: tuple[int, int] = EVERYWHERE
) -> Pairs:
    """By how much linear attention's loss is below softmax's, novel by novel."""
    own, other = (by_novel(of(model, seed, whole=whole), within)[update] for model in PAIR)
    return compare([b - a for a, b in zip(own, other, strict=True)])


def lag_grows(seed: int = 0) -> Pairs:
    """How much more of a lag linear attention has at a window's end than at its start.

    After all text, novel by novel, in the last part less the first.
    """
    update = of("linear", whole=True)["config"]["updates"]
    models = [of(model, seed, whole=True) for model in PAIR]
    first, last = (
        [own - other for own, other in zip(*losses_of_part, strict=True)]
        for part in (PARTS[0], PARTS[-1])
        for losses_of_part in [[by_novel(run, part)[update] for run in models]]
    )
    return compare([b - a for a, b in zip(first, last, strict=True)])


def last_lead(seed: int = 0, *, whole: bool, within: tuple[int, int] = EVERYWHERE) -> Pairs:
    """The same at the end."""
    return lead(of("linear", whole=whole)["config"]["updates"], seed, whole=whole, within=within)


def share_off(model: str, seed: int) -> float:
    """The share that a copy takes off a passage's loss, after all text. Raises NotMeasuredError."""
    run = of(model, seed, whole=True)
    found = rows(run, "again", update=max(losses(run)), distance=64)
    gained, cost = (fmean(one[name] for one in found) for name in ("gain", "loss"))
    return gained / (gained + cost)


def last_gains(model: str, distance: int, seed: int = 0, *, whole: bool = False) -> list[float]:
    """Gain on a repeated passage at the end, by place."""
    run = of(model, seed, whole=whole)
    return [row["gain"] for row in rows(run, "again", update=max(losses(run)), distance=distance)]
