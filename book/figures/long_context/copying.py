"""Gain on a passage that comes again, of models that were trained on such passages."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from statistics import fmean
from typing import Any

from lsa.gpt import GPT, gpt_config

from ...explorable.figure import Axis, Explorable, Filter, Series, Toggle
from ..lib.format import in_words, listed
from ..lib.pairs import Pairs, compare
from ..lib.records import (
    NotMeasuredError,
    Record,
    learned,
    losses_by_update,
    need,
    provenance,
    rows,
)
from ..lib.tables import Missing, Table
from ..lib.tasks import label

EXPERIMENT = "copying_curriculum"
# Patterns of the names of runs, without their seeds, by what the figure calls their models. The
# longer runs begin as the others do.
RUNS = {
    "softmax": "cache-(often|longer)",
    "unshifted": "cache-unshifted",
    "taylor-4": "taylor-4-(often|longer)",
    "taylor-2": "taylor-2-(often|longer)",
    "exp": "exp-(often|longer)",
    "linear": "sum-(often|longer)",
    "window": "window-(often|longer)",
    "window-state": "window-and-sum-(often|longer)",
    "gated": "gate-(often|longer)",
    "gated-delta": "delta-(often|longer)",
    "delta": "ungated-delta-(often|longer)",
    "delta-adds": "delta-adds-(often|longer)",
}
LABELS = {"unshifted": "Softmax without shift", "exp": "Exponential features"}
# Runs that the figure does not show.
NOVELS, RARE = "cache-novels", "cache-planted"
STATE_TWICE = "window-and-sum-often-rate0.004"
SLOW = "delta-slow-longer"  # gates that begin slow
AT_TWICE = tuple(f"{name}-often-rate0.004" for name in ("sum", "gate", "ungated-delta", "delta"))
SHOWN = ("softmax", "taylor-2", "exp", "linear", "gated-delta", "delta")  # at first
NEAREST, BACK = 64, (64, 256, 1024, 4096)
GLUED = ("unshifted", "taylor-4", "taylor-2", "exp", "linear", "window-state")
LEARNT = 300  # updates after which softmax copies
PARTS = ("silu", "elu", "sum")  # features, with an output norm in place of the denominator
EARLY = 900  # updates after which both delta rules begin


def runs_of(name: str) -> list[Record]:
    """The complete runs of a name, of all seeds, the shortest first. Raises NotMeasuredError.

    name: a model of `RUNS`, or a run's name without its seed.
    """
    wanted = re.compile(RUNS.get(name, re.escape(name)) + r"-seed\d+")
    found = [
        run for run in learned(EXPERIMENT) if run["complete"] and wanted.fullmatch(run["name"])
    ]
    need(found, f"{EXPERIMENT}: no {name}")
    return sorted(found, key=lambda run: (run["config"]["updates"], run["config"]["seed"]))


def measured() -> dict[str, list[Record]]:
    """The runs of every model of the figure that has any."""
    found = {}
    for model in RUNS:
        try:
            found[model] = runs_of(model)
        except NotMeasuredError:
            continue
    return found


def seeds_of(name: str, update: int) -> list[Record]:
    """One run of each seed that was asked after so many updates. Raises NotMeasuredError."""
    found = {
        run["config"]["seed"]: run
        for run in reversed(runs_of(name))
        if update in run["tables"]["again"]["update"]
    }
    return need([*found.values()], f"{EXPERIMENT}: no {name} after {update} updates")


def gain(name: str, distance: int, update: int | None = None) -> Pairs:
    """Gain over places of held-out novels, each the mean over seeds. Raises NotMeasuredError.

    update: after how many; by default all of the shortest runs.
    """
    if update is None:
        update = runs_of(name)[0]["config"]["updates"]
    places: dict[int, list[float]] = defaultdict(list)
    for run in seeds_of(name, update):
        for row in rows(run, "again", update=update, distance=distance):
            places[row["place"]].append(row["gain"])
    return compare([fmean(gains) for gains in places.values()])


def by_seed(name: str, update: int | None = None, distance: int = NEAREST) -> dict[int, float]:
    """Mean gain of each seed. Raises NotMeasuredError.

    update: after how many; by default all of the shortest runs.
    """
    if update is None:
        update = runs_of(name)[0]["config"]["updates"]
    found = {
        run["config"]["seed"]: fmean(
            row["gain"] for row in rows(run, "again", update=update, distance=distance)
        )
        for run in seeds_of(name, update)
    }
    return dict(sorted(found.items()))


def each_seed(name: str, update: int | None = None, distance: int = NEAREST) -> str:
    """`by_seed`, as in "0.04 and 0.17"; of one seed, "0.04 (one seed)"."""
    gains = [f"{round(one, 2) + 0:.2f}" for one in by_seed(name, update, distance).values()]
    return listed(gains) if len(gains) > 1 else f"{gains[0]} (one seed)"


def loss(name: str, distance: int, update: int) -> float:
    """Mean loss of the second copy after so many updates. Raises NotMeasuredError."""
    return fmean(
        row["loss"]
        for run in seeds_of(name, update)
        for row in rows(run, "again", update=update, distance=distance)
    )


def on_novels(name: str, update: int) -> float:
    """Mean loss on held-out novels as they are, after so many updates. Raises NotMeasuredError."""
    return fmean(losses_by_update(run)[update] for run in seeds_of(name, update))


def kept_back(name: str, distance: int = 1024) -> float:
    """Gain from a distance, over that from 64 bytes back, after the longest runs."""
    far, near = (gain(name, back, 1800).mean for back in (distance, 64))
    return far / near


def is_seen_with_both_seeds(higher: str, lower: str, update: int, distance: int) -> bool:
    """Whether one model gains more than another, seed by seed, in two."""
    above, below = (by_seed(name, update, distance) for name in (higher, lower))
    return (
        above.keys() == below.keys()
        and len(above) == 2
        and all(above[seed] > below[seed] for seed in above)
    )


def asked(name: str) -> list[int]:
    """After how many updates the runs of a name were asked. Raises NotMeasuredError."""
    return sorted({update for run in runs_of(name) for update in run["config"]["asked"]})


def read_on() -> list[str]:
    """The models of which a run made more updates than the shortest of all."""
    most = {name: runs[-1]["config"]["updates"] for name, runs in measured().items()}
    return [name for name, updates in most.items() if updates > min(most.values())]


def learnt(name: str, least: float) -> int:
    """After how many updates the gain at the nearest is at least so much.

    Raises NotMeasuredError if it never is.
    """
    found = [update for update in asked(name) if gain(name, NEAREST, update).mean >= least]
    return need(found, f"{EXPERIMENT}: {name} gains no {least}")[0]


def figure(id: str = "copying-trained") -> Explorable | Missing:
    """Gain on a passage that comes again, by updates; the table has the control without shift."""
    found = {model: runs for model, runs in measured().items() if model != "unshifted"}
    if not found:
        return Missing(EXPERIMENT)
    config = next(iter(found.values()))[0]["config"]
    series = []
    for model, runs in found.items():
        for back in config["distances"]:
            gains = [gain(model, back, update) for update in asked(model)]
            columns = {
                "update": asked(model),
                "gain": [one.mean for one in gains],
                "low": [one.mean - (one.half or 0) for one in gains],
                "high": [one.mean + (one.half or 0) for one in gains],
            }
            keys = {"model": model, "back": back}
            series.append(Series(keys, columns, source=runs[0]["path"]))
    once = [
        named(model)
        for model in found
        if any(len(seeds_of(model, update)) < 2 for update in asked(model))
    ]
    return Explorable(
        id=id,
        caption=(
            "**Linear attention learns to copy too, later than softmax.** *Gain*: how much lower "
            "the loss of a passage is when it comes again. Bars: 95% intervals over "
            f"{config['places']} places. Two seeds"
            f"{', but one at some points of ' + listed(once) if once else ''}. Lines that end "
            "early were not read on."
        ),
        alt=(
            "Gain on a passage that comes again against the updates of the training, one line for "
            "each model: some rise steeply, others stay near zero."
        ),
        series=series,
        x=Axis("update", "Updates"),
        y=Axis("gain", "Gain", "nats per byte", digits=3, low="low", high="high"),
        color="model",
        mark="line+dot",
        controls=[
            Filter("back", "Bytes back"),
            Toggle(
                "model",
                "Model",
                options={model: named(model) for model in found},
                default=[model for model in SHOWN if model in found] or None,
            ),
        ],
        provenance=provenance([run for runs in found.values() for run in runs]),
    )


def named(model: str) -> str:
    """A model's name in the figure."""
    return LABELS.get(model) or label(model)


def table() -> Table | Missing:
    """Gain by distance after the shortest and the longest runs, and numbers kept."""
    found = measured()
    if not found:
        return Missing(EXPERIMENT)
    cells, least = [], min(runs[0]["config"]["updates"] for runs in found.values())
    for model, runs in found.items():
        for update in sorted({run["config"]["updates"] for run in runs}):
            gains = [gain(model, back, update).mean for back in BACK]
            name = named(model) if update == least else f"{named(model)}, {update:,} updates"
            numbers = (*gains, loss(model, NEAREST, update))
            cells.append([name, f"{kept(model):,}", *(f"{round(x, 2) + 0:.2f}" for x in numbers)])
    titles = ["", "numbers kept", *(f"{back:,} back" for back in BACK), "the copy costs"]
    return Table(titles, cells)


def kept(model: str) -> int:
    """Numbers that a layer keeps after a window of the training. Raises NotMeasuredError."""
    config = runs_of(model)[0]["config"]
    shape = gpt_config(
        config["scale"],
        attention=config["attention"],
        attention_options=config["attention_options"],
    )
    attention: Any = GPT(shape).blocks[0].attn
    return attention.state_numbers(config["context"])


def longest() -> int:
    """Updates of the longer runs. Raises NotMeasuredError."""
    return runs_of("linear")[-1]["config"]["updates"]


def late() -> int:
    """The last time asked before linear attention copies. Raises NotMeasuredError."""
    return asked("linear")[asked("linear").index(learnt("linear", 0.3)) - 1]


def _longer() -> dict[str, Callable[[], str]]:
    """Numbers of the longer runs, by what they are called in the chapter."""
    near = ("gated", "gated-delta", "linear", "exp", "delta", "delta-adds", "window-state")
    far = {"linear": 1024, "delta": 1024, "delta-adds": 1024, "window-state": 256}
    named = {model: f"copying_{model.replace('-', '_')}" for model in near}
    return {
        **{f"{named[m]}_longer": lambda m=m: each_seed(m, longest()) for m in near},
        **{f"{named[m]}_{d}": lambda m=m, d=d: each_seed(m, longest(), d) for m, d in far.items()},
        **{f"copying_{p}_normed": lambda p=p: each_seed(f"{p}-normed-longer") for p in PARTS},
        **{f"{named[m]}_early": lambda m=m: each_seed(m, EARLY) for m in ("delta", "delta-adds")},
        **{
            f"{named[m]}_novels": lambda m=m: f"{on_novels(m, longest()):.2f}"
            for m in ("gated-delta", "delta")
        },
    }


def numbers() -> dict[str, str]:
    """Numbers for the chapter."""

    def config(name: str = "softmax") -> dict:
        return runs_of(name)[0]["config"]

    def megabytes() -> float:
        return config()["updates"] * config()["spans"] * config()["span"] / 1e6

    functions: dict[str, Callable[[], str]] = {
        f"copying_{model.replace('-', '_')}_64": lambda model=model: each_seed(model)
        for model in GLUED
    }
    return in_words(
        copying_updates=lambda: f"{config()['updates']:,}",
        copying_longest=lambda: f"{longest():,}",
        copying_late=lambda: f"{late():,}",
        copying_linear_late=lambda: each_seed("linear", late()),
        copying_early=lambda: f"{EARLY}",
        copying_context=lambda: f"{config()['context']:,}",
        copying_bytes=lambda: f"{megabytes():.1f}",
        copying_nearest=lambda: f"{config()['returns']['nearest']}",
        copying_farthest=lambda: f"{config()['returns']['farthest']}",
        copying_unlearnt=lambda: f"{LEARNT - 100}",
        copying_learnt=lambda: f"{LEARNT}",
        copying_before=lambda: each_seed("softmax", LEARNT - 100),
        copying_after=lambda: each_seed("softmax", LEARNT),
        copying_novels=lambda: each_seed(NOVELS),
        copying_window_state_twice=lambda: each_seed(STATE_TWICE),
        copying_slow_longer=lambda: each_seed(SLOW),
        copying_slower=lambda: f"{config(SLOW)['slower']}",
        copying_rare_updates=lambda: f"{config(RARE)['updates']:,}",
        copying_rare_softmax=lambda: each_seed(RARE),
        **functions,
        **_longer(),
    )
