"""Use of a long past: loss by position, by amount of text, and for a repeated passage."""

from __future__ import annotations

from statistics import fmean

from ...explorable.figure import Axis, Explorable, Filter, Series
from ..index import race
from ..lib.axes import LOSS
from ..lib.records import NotMeasuredError, Record, learned, model_of, of_model, provenance, rows
from ..lib.seed_error import with_seeds
from ..lib.tables import Missing

CONTEXTS, MAIN = race.CONTEXTS, race.MAIN
MODELS = ("softmax", "linear")
POSITIONS = ("softmax", "linear", "no attention")


def runs_of(attention: str, context: int) -> list[Record]:
    """Runs that measured each seed of a model trained at a context. Raises NotMeasuredError."""
    return of_model("long_context", attention, context)


def gains(attention: str, context: int, kind: str) -> list[dict[str, float]]:
    """A row for every distance or length, the mean over seeds: `bytes`, `gain`, `half`, `loss`.

    kind: "again", a repeated passage, or "given", more text. half: of the gain's 95% interval. All
    seeds read the same places, so the error due to places stays when seeds are added.
    """
    column = {"again": "distance", "given": "given"}[kind]
    runs = runs_of(attention, context)
    several = zip(*(rows(one, kind) for one in runs), strict=True)
    means = []
    for seeds in several:
        gain, half = with_seeds(
            [one["gain"] for one in seeds],
            [one["error"] for one in seeds],
            runs[0]["config"]["places"],
        )
        loss = fmean(one["loss"] for one in seeds)
        means.append({"bytes": seeds[0][column], "gain": gain, "half": half, "loss": loss})
    return means


def gain_at(attention: str, context: int, kind: str, at: int) -> dict[str, float]:
    """The row of `gains` at a distance or length. Raises NotMeasuredError."""
    for one in gains(attention, context, kind):
        if one["bytes"] == at:
            return one
    raise NotMeasuredError(f"long_context: no {kind} at {at}")


def _main(contexts: set[int]) -> int:
    return race.MAIN if race.MAIN in contexts else max(contexts)


def without_lone(losses: dict[int, float]) -> dict[int, float]:
    """Losses without the last position of a window, which is alone in its row: too few to draw."""
    return {last: loss for last, loss in losses.items() if last % 2}


def by_position(id: str = "loss-by-position") -> Explorable | Missing:
    """Mean loss by position in the text, trained at each context, read in two ways."""
    series = []
    for context in CONTEXTS:
        for reading in ("own", "whole"):
            for model, losses in race.positions(context, reading).items():
                if model not in POSITIONS:
                    continue
                points = without_lone(losses)
                keys = {"attention": race.MODELS[model][0], "context": context, "reading": reading}
                source = race.by_model(context)[model][0]["path"]
                columns = {"position": [*points], "loss": [*points.values()]}
                series.append(Series(keys, columns, source=source))
    if not series:
        return Missing("race")
    contexts = {one.keys["context"] for one in series}
    return Explorable(
        id=id,
        caption=(
            "**Past its trained length neither attention's loss visibly rises.** Loss on held-out "
            "novels by position in the text; a point covers the positions from half of it up to "
            "it. *As one text* reads on past the length that a model was trained on."
        ),
        alt="Loss by position, falling at first and level after some hundred bytes.",
        series=series,
        x=Axis("position", "Position", "bytes read", log=10),
        y=LOSS,
        color="attention",
        mark="line+dot",
        controls=[
            Filter("context", "Trained at", options=CONTEXTS, default=_main(contexts)),
            Filter(
                "reading",
                "Read",
                options={"own": "in windows of that length", "whole": "as one text"},
                default="whole",
            ),
        ],
        provenance=provenance(race.curves()),
    )


def figure(id: str = "long-past") -> Explorable | Missing:
    """Gain from a repeated passage, by distance, and from more text."""
    series = []
    for attention, context in dict.fromkeys(map(model_of, learned("long_context"))):
        source = runs_of(attention, context)[0]["path"]
        for kind in ("again", "given"):
            points = gains(attention, context, kind)
            columns = {
                "bytes": [each["bytes"] for each in points],
                "gain": [each["gain"] for each in points],
                "low": [each["gain"] - each["half"] for each in points],
                "high": [each["gain"] + each["half"] for each in points],
            }
            keys = {"attention": attention, "context": context, "asked": kind}
            series.append(Series(keys, columns, source=source))
    if not series:
        return Missing("long_context")
    contexts = {one.keys["context"] for one in series}
    return Explorable(
        id=id,
        caption=(
            "**A long past is worth thousandths of a nat.** *A passage met before*: gain on 56 "
            "bytes of a held-out novel that the text has held before, by the distance. *More "
            "text*: gain on 64 bytes from the novel's text before them, by its length, against 16 "
            "bytes of it. Forty places; bars: 95% intervals."
        ),
        alt="Gain in nats a byte against distance or length, for both attentions.",
        series=series,
        x=Axis("bytes", "Bytes back", log=10),
        y=Axis("gain", "Gain", "nats per byte", digits=3, low="low", high="high"),
        color="attention",
        mark="line+dot",
        controls=[
            Filter(
                "asked",
                "Asked",
                options={"again": "a passage met before", "given": "more text"},
                default="again",
            ),
            Filter("context", "Trained at", options=CONTEXTS, default=_main(contexts)),
        ],
        provenance=provenance(learned("long_context")),
    )
