"""Gain on a passage that comes again, of models that were trained on such passages."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean

from ...explorable.figure import Axis, Explorable, Series, Toggle
from ..lib.format import in_words
from ..lib.pairs import Pairs, compare
from ..lib.records import Record, learned, need, provenance, rows
from ..lib.tables import Missing
from ..lib.tasks import label

EXPERIMENT = "copying_curriculum"
# What a model of the experiment keeps, by the layer that does.
MODELS = {
    "softmax": "cache",
    "linear": "sum",
    "window": "window",
    "window-state": "window and sum",
    "gated": "gate",
    "gated-delta": "delta",
    "delta": "ungated delta",
}
OFTEN, RARE = "often", "planted"
NEAREST, FARTHEST = 64, 4096
GLUED = (
    ("softmax", FARTHEST), ("linear", NEAREST), ("delta", NEAREST), ("gated-delta", NEAREST),
    ("window", NEAREST), ("window", 256), ("window-state", NEAREST), ("window-state", 256),
)  # fmt: skip
LEARNT = 300  # updates after which softmax copies


def trained(text: str = OFTEN) -> dict[str, list[Record]]:
    """The complete runs of each model at the race's rate, one per seed.

    text: the part of a run's name between model and seed.
    """
    by_model: dict[str, list[Record]] = defaultdict(list)
    for run in learned(EXPERIMENT):
        if run["complete"] and f"-{text}-seed" in run["name"]:
            by_model[run["config"]["model"]].append(run)
    return {model: by_model[kept] for model, kept in MODELS.items() if kept in by_model}


def runs_of(model: str, text: str = OFTEN) -> list[Record]:
    """`trained` for one model. Raises NotMeasuredError."""
    return need(trained(text).get(model), f"{EXPERIMENT}: no {model}, {text}")


def gain(model: str, distance: int, text: str = OFTEN, update: int | None = None) -> Pairs:
    """Gain over places of held-out novels, each the mean over seeds. Raises NotMeasuredError.

    update: after how many; by default all.
    """
    places: dict[int, list[float]] = defaultdict(list)
    for run in runs_of(model, text):
        when = run["config"]["updates"] if update is None else update
        for row in rows(run, "again", update=when, distance=distance):
            places[row["place"]].append(row["gain"])
    return compare([fmean(gains) for gains in places.values()])


def loss(model: str, distance: int) -> float:
    """Mean loss of the second copy at the end. Raises NotMeasuredError."""
    return fmean(
        row["loss"]
        for run in runs_of(model)
        for row in rows(run, "again", update=run["config"]["updates"], distance=distance)
    )


def figure(id: str = "copying-trained") -> Explorable | Missing:
    """Gain on a passage that comes again, against its distance."""
    found = trained()
    if not found:
        return Missing(EXPERIMENT)
    config = next(iter(found.values()))[0]["config"]
    series = []
    for model, runs in found.items():
        gains = [gain(model, distance) for distance in config["last"]]
        columns = {
            "distance": config["last"],
            "gain": [one.mean for one in gains],
            "low": [one.mean - (one.half or 0) for one in gains],
            "high": [one.mean + (one.half or 0) for one in gains],
        }
        series.append(Series({"model": model}, columns, source=runs[0]["path"]))
    returns = config["returns"]
    return Explorable(
        id=id,
        caption=(
            "**Softmax learned to copy; no sum did in as many updates.** *Gain*: how much lower "
            "the loss of a passage is when it comes again. Trained where it does after "
            f"{returns['nearest']} to {returns['farthest']} bytes. "
            f"Bars: 95% intervals over {config['places']} places."
        ),
        alt=(
            "Gain on a passage that comes again against the bytes since its first copy, one line "
            "for each model."
        ),
        series=series,
        x=Axis("distance", "Passage comes again after", "bytes", log=2),
        y=Axis("gain", "Gain", "nats per byte", digits=3, low="low", high="high"),
        color="model",
        mark="line+dot",
        controls=[Toggle("model", "Model", options={model: label(model) for model in found})],
        provenance=provenance([run for runs in found.values() for run in runs]),
    )


def numbers() -> dict[str, str]:
    """Numbers for the chapter."""

    def config(text: str = OFTEN) -> dict:
        return runs_of("softmax", text)[0]["config"]

    def megabytes() -> float:
        return config()["updates"] * config()["spans"] * config()["span"] / 1e6

    gains = {
        f"copying_{model.replace('-', '_')}_{at}": lambda m=model, at=at: gain(m, at).spread(2)
        for model, at in GLUED
    }
    return in_words(
        copying_updates=lambda: f"{config()['updates']:,}",
        copying_context=lambda: f"{config()['context']:,}",
        copying_bytes=lambda: f"{megabytes():.1f}",
        copying_nearest=lambda: f"{config()['returns']['nearest']}",
        copying_farthest=lambda: f"{config()['returns']['farthest']}",
        copying_unlearnt=lambda: f"{LEARNT - 100}",
        copying_learnt=lambda: f"{LEARNT}",
        copying_before=lambda: gain("softmax", NEAREST, update=LEARNT - 100).spread(2),
        copying_after=lambda: gain("softmax", NEAREST, update=LEARNT).spread(2),
        copying_loss=lambda: f"{loss('softmax', NEAREST):.2f}",
        copying_rare_updates=lambda: f"{config(RARE)['updates']:,}",
        copying_rare_softmax=lambda: gain("softmax", NEAREST, RARE).spread(),
        **gains,
    )
