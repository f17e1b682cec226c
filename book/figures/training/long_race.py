"""The long race: loss and recall of a repeated passage against megabytes read."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from statistics import fmean

from ...explorable.figure import Axis, Choice, Explorable, Series, Toggle
from ..lib.axes import MINUTES
from ..lib.format import in_words, listed, times_between
from ..lib.pairs import Pairs, compare
from ..lib.records import Record, Row, learned, need, provenance, row, rows
from ..lib.tables import Missing, Table

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
DISTANCES = (64, 128, 256, 512, 896)
KEYS = {"softmax": "softmax", "linear": "linear", "window": "window", "near": "linear, near only"}
READ = (122, 610, 2440, 4880)  # updates after which texts are shown
EARLY, MIDDLE = 305, 2440  # updates after which the lead of the chapter's sentences is taken
AT_50_MB = 9  # the mark of `far_saves` at which the rate of runs on all text is still constant
LETTERS = 64  # of such a text, at most


def runs(seed: int = 0, *, whole: bool = False) -> dict[str, Record]:
    """The complete run of a seed of each model that has one, of the plan's scale.

    whole: those that read all training novels.
    """
    by_model = {
        run["config"]["model"]: run
        for run in learned(EXPERIMENT)
        if run["complete"] and "again" in run["tables"]
        if run["config"]["seed"] == seed and run["config"]["scale"] == "nano"
        if (run["config"]["updates"] > READ[-1]) == whole
    }
    return {model: by_model[model] for model in MODELS if model in by_model}


def megabytes(run: Record, updates: int) -> float:
    """Text read after a number of updates."""
    return updates * run["config"]["spans"] * run["config"]["context"] / 1e6


def by_novel(run: Record) -> dict[int, list[float]]:
    """Held-out loss by updates: the mean over all positions of each novel."""
    table = run["tables"]["positions"]
    sums: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for update, novel, first, last, loss in zip(
        *(table[name] for name in ("update", "novel", "first", "last", "loss")), strict=True
    ):
        sums[update][novel] += (last - first + 1) * loss
    positions = max(table["last"])
    return {update: [sum / positions for sum in each.values()] for update, each in sums.items()}


def losses(run: Record) -> dict[int, float]:
    """Held-out loss by updates: mean over all positions and novels."""
    return {update: fmean(each) for update, each in by_novel(run).items()}


def gains(run: Record, distance: int) -> dict[int, tuple[float, float]]:
    """By updates: the mean gain on a passage that comes again, and half of its 95% interval."""
    table = run["tables"]["again"]
    places: dict[int, list[float]] = defaultdict(list)
    for update, far, gain in zip(
        *(table[name] for name in ("update", "distance", "gain")), strict=True
    ):
        if far == distance:
            places[update].append(gain)
    pairs = {update: compare(each) for update, each in places.items()}
    return {update: (one.mean, one.half or 0) for update, one in pairs.items()}


def timed() -> list[Record]:
    """The run that times an update of each model, if it is stored."""
    return [run for run in learned(EXPERIMENT) if "speed" in run["tables"]]


def pace(model: str) -> Row:
    """Seconds of an update: median and quartiles. Raises NotMeasuredError."""
    return row(need(timed(), f"{EXPERIMENT}: no seconds of an update")[0], "speed", model=model)


def _series(name: str, run: Record) -> Series:
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
    return Series({"model": name}, columns, source=run["path"])


def _gain_axis(distance: int) -> Axis:
    return Axis(
        f"gain_{distance}", f"Gain {distance} bytes later", "nats per byte", digits=3,
        low=f"low_{distance}", high=f"high_{distance}",
    )  # fmt: skip


def figure(id: str = "long-race") -> Explorable | Missing:
    """Loss, and gain on a repeated passage at five distances, against megabytes read."""
    if not (found := runs()):
        return Missing(EXPERIMENT)
    whole = {f"{model}, all text": run for model, run in runs(whole=True).items()}
    labels = MODELS | {f"{model}, all text": f"{MODELS[model]}, all text" for model in MODELS}
    every = found | whole
    read = Axis("megabytes", "Text read", "MB", digits=3)
    return Explorable(
        id=id,
        caption=_caption(found),
        alt=(
            "Held-out loss, or the gain on a passage that comes again, against the megabytes of "
            "text read or the time, one line for each model."
        ),
        series=[_series(name, run) for name, run in every.items()],
        x=Choice("Against", [read, MINUTES], default="megabytes") if timed() else read,
        y=Choice(
            "Show",
            [Axis("loss", "Loss", "nats per byte"), *map(_gain_axis, DISTANCES)],
            default="gain_256",
        ),
        color="model",
        mark="line+dot",
        controls=[Toggle("model", "Model", options={model: labels[model] for model in every})],
        provenance=provenance([*every.values(), *timed()]),
    )


def _caption(found: dict[str, Record]) -> str:
    run = next(iter(found.values()))
    config, updates = run["config"], max(losses(run))
    more = "; *all text*: every training novel once" if runs(whole=True) else ""
    return (
        "**The gain of linear attention 256 bytes later is its far-sighted head's.** "
        f"Models of {config['size']} parameters, one seed. *Gain*: how much lower the loss of a "
        f"passage is when it comes again; bars: 95% intervals over {config['places']} places. "
        f"All read the same {megabytes(run, updates):.0f} MB, fixed beforehand{more}. "
        "Time is updates times the median seconds of one, measured on a quiet CPU."
    )


def of(model: str, seed: int = 0, *, whole: bool = False) -> Record:
    """The complete run of a model. Raises NotMeasuredError."""
    return need(runs(seed, whole=whole).get(model), f"{EXPERIMENT}: no {model} of seed {seed}")


def seeds_of(*models: str) -> list[int]:
    """The seeds that have a complete run of each of these models."""
    return [seed for seed in SEEDS if {*models} <= {*runs(seed)}]


def each_seed(told: Callable[[int], str], *models: str) -> str:
    """What is told of each seed of these models: "1.280 and 1.277". Raises NotMeasuredError."""
    found = [told(seed) for seed in seeds_of(*models)]
    return listed(need(found, f"{EXPERIMENT}: no {models}"))


def read(*, whole: bool) -> str:
    """Text that linear attention has read at the end. Raises NotMeasuredError."""
    run = of("linear", whole=whole)
    return f"{megabytes(run, run['config']['updates']):.0f} MB"


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


def far_saves(seed: int = 0, *, whole: bool = False) -> list[Pairs]:
    """What linear attention saves over near-sighted heads alone, novel by novel, at each mark."""
    own, near = (by_novel(of(model, seed, whole=whole)) for model in CONTROL)
    return [
        compare([b - a for a, b in zip(own[update], near[update], strict=True)])
        for update in marks(of("linear", whole=whole))
    ]


def lead(update: int, seed: int = 0) -> Pairs:
    """By how much linear attention's loss is below softmax's, novel by novel."""
    own, other = (by_novel(of(model, seed))[update] for model in PAIR)
    return compare([b - a for a, b in zip(own, other, strict=True)])


def window_saves() -> Pairs:
    """By how much the window ends below linear attention with near-sighted heads, by novel."""
    own, near = (by_novel(of(model)) for model in ("window", "linear, near only"))
    return compare([b - a for a, b in zip(own[max(own)], near[max(near)], strict=True)])


def window_behind() -> Pairs:
    """By how much the window's loss ends above that of softmax, novel by novel."""
    own, other = (by_novel(of(model)) for model in ("window", "softmax"))
    return compare([a - b for a, b in zip(own[max(own)], other[max(other)], strict=True)])


def last_gains(model: str, distance: int, seed: int = 0, *, whole: bool = False) -> list[float]:
    """Gain on a repeated passage at the end, by place."""
    run = of(model, seed, whole=whole)
    return [row["gain"] for row in rows(run, "again", update=max(losses(run)), distance=distance)]


def gain(model: str, distance: int) -> str:
    """Mean of `last_gains` with its 95% interval over places, of each seed: "0.017 ± 0.004"."""
    return each_seed(lambda seed: compare(last_gains(model, distance, seed)).spread(), model)


def writing() -> Table | Missing:
    """What both attentions write after the same sentence, by the text they have read."""
    found = runs()
    if not {"softmax", "linear"} <= {*found}:
        return Missing(EXPERIMENT)
    both = [found[model] for model in ("softmax", "linear")]
    cells = [
        [
            f"{megabytes(both[0], update):.1f} MB",
            *(
                textwrap.shorten(
                    row(run, "samples", update=update, kind="sampled")["text"],
                    LETTERS, placeholder=" …",
                )
                for run in both
            ),
        ]
        for update in READ
    ]  # fmt: skip
    return Table(["Read", "Softmax", "Linear"], cells, align="lll", wrap=True)


def numbers() -> dict[str, str]:
    """Numbers for the chapter on training: more text."""
    return in_words(
        long_softmax_slower=lambda: times_between(pace("softmax"), pace("linear")),
        long_window_slower=lambda: times_between(pace("window"), pace("linear")),
        long_parameters=lambda: of("linear")["config"]["size"],
        long_read=lambda: read(whole=False),
        long_far=lambda: each_seed(lambda seed: far_saves(seed)[-1].spread(), *CONTROL),
        long_far_of=lambda: each_seed(lambda seed: far_saves(seed)[-1].of(), *CONTROL),
        long_far_early=lambda: each_seed(lambda seed: far_saves(seed)[0].spread(), *CONTROL),
        long_window_saves=lambda: window_saves().spread(),
        long_window_saves_of=lambda: window_saves().of(),
        long_early_read=lambda: f"{megabytes(of('linear'), EARLY):.1f} MB",
        long_lead_early=lambda: each_seed(lambda seed: lead(EARLY, seed).signed(), *PAIR),
        long_lead_middle=lambda: each_seed(lambda seed: lead(MIDDLE, seed).signed(), *PAIR),
        long_window_behind=lambda: window_behind().spread(),
        **{
            f"long_{key}": lambda model=model: each_seed(
                lambda seed: f"{loss(model, seed):.3f}", model
            )
            for key, model in KEYS.items()
        },
        long_all_read=lambda: read(whole=True),
        long_all_far=lambda: far_saves(whole=True)[-1].spread(),
        long_all_far_of=lambda: far_saves(whole=True)[-1].of(),
        long_all_more=lambda: more_with_all("linear", 64).spread(),
        long_all_more_128=lambda: more_with_all("linear", 128).spread(),
        long_all_less_512=lambda: more_with_all("linear", 512).spread(),
        long_all_far_constant=lambda: far_saves(whole=True)[AT_50_MB].spread(),
        long_all_64=lambda: compare(last_gains("linear", 64, whole=True)).spread(),
        **{f"long_{key}_256": partial(gain, model, 256) for key, model in KEYS.items()},
    )
