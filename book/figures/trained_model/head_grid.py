"""The 270 heads of a trained model, and the places of those that matter for recall."""

from __future__ import annotations

from ...explorable.figure import Axis, Choice, Explorable, Filter, Series, Toggle
from ..lib.format import counted, in_words, percent
from ..lib.records import NotMeasuredError, need, provenance
from ..lib.tables import Missing, Table
from .look_inside import copied
from .measured import EXPERIMENT, FAR, HERE, Head, Mean, ranked, ranking, stored
from .remove_exponential import FEW, SOME, missing

# What comes again in the texts that rank, and after how many tokens.
RANKINGS = {
    "passages": ("a passage after 256", "passages", HERE),
    "far": ("a passage after 4,096", "passages", FAR),
    "lists": ("names after 256", "lists", HERE),
}

# The first heads need softmax and have its colour; the last are grey.
PLACES = {"softmax": f"the first {FEW}", "next": f"the next {SOME - FEW}", "none": "all others"}
SHOWN = 12  # heads that the table names


def _place(rank: int) -> str:
    if rank < FEW:
        return "softmax"
    return "next" if rank < SOME else "none"


def grid(id: str = "head-grid") -> Explorable | Missing:
    """Every head by its layer, coloured by its place in the ranking."""
    series, runs = [], []
    for key, (_, text, distance) in RANKINGS.items():
        try:
            heads, run = ranking(text, distance=distance), ranked(text, distance)
        except NotMeasuredError:
            continue
        runs.append(run)
        for place in PLACES:
            chosen = [head for rank, head in enumerate(heads) if _place(rank) == place]
            columns = {
                "layer": [head.layer for head in chosen],
                "head": [head.head for head in chosen],
                "brings": [head.brings.mean for head in chosen],
            }
            if chosen:
                keys = {"place": place, "text": key}
                series.append(Series(keys, columns, source=run["path"]))
    if not series:
        return Missing(EXPERIMENT)
    texts = {key: label for key, (label, *_) in RANKINGS.items()}
    return Explorable(
        id=id,
        caption=(
            "**The heads that bring recall are few.** All heads by layer, coloured by their place "
            "in the ranking. *What it brings*: how steeply the gain falls as the head is confined. "
            "It is a mean over four mixtures of softmax and window, and over the texts that rank."
        ),
        alt=(
            "A grid of thirty layers and nine heads. The first heads of the ranking are scattered "
            "over the layers of the middle; most heads of every layer are grey."
        ),
        series=series,
        x=Axis("layer", "Layer", range=(-0.6, 29.6)),
        y=Choice(
            "Height",
            [
                Axis("head", "Head", range=(-0.6, 8.6)),
                Axis("brings", "What it brings", "nats per token", digits=3),
            ],
        ),
        color="place",
        mark="dot",
        controls=[
            Filter(
                "text",
                "What comes again, after how many tokens",
                options=texts,
                default=series[0].keys["text"],
            ),
            Toggle("place", "In the ranking", options=PLACES),
        ],
        provenance=provenance(runs),
        aspect=2,
    )


def heads_table() -> Table | Missing:
    """The first heads of the ranking: gradient, and cost of confining each one alone."""
    try:
        heads = ranking()[:SHOWN]
    except NotMeasuredError:
        return Missing(EXPERIMENT)
    alone = alone_by_rank()
    cells = []
    for rank, head in enumerate(heads):
        measured = [str(alone[rank])] if rank in alone else ["–"]
        looks = [percent(head.mass), *(_copied(head, after) for after in (0, 1))]
        cells.append([head.name, str(head.brings), *(measured if alone else []), *looks])
    names = ["looks beyond", "same word", "word after"]
    titles = ["head", "by gradient", *(["alone"] if alone else []), *names]
    return Table(titles, cells)


def _copied(head: Head, after: int) -> str:
    try:
        return percent(copied(head.layer, head.head, after))
    except NotMeasuredError:
        return "–"


def alone_by_rank() -> dict[int, Mean]:
    """Fall of the gain when one head alone is confined, by its place in the ranking."""
    falls = {}
    for run in stored().values():
        config = run["config"]
        if config["where"] == "head" and config["text"] == "passages":
            falls[config["number"]] = missing(run)
    return dict(sorted(falls.items()))


def alone(rank: int) -> Mean:
    """The fall for one head. Raises NotMeasuredError."""
    return need(alone_by_rank().get(rank), f"{EXPERIMENT}: no head of rank {rank} alone")


def most_alone(but: int = 2) -> float:
    """The next largest cost after those of the heads that cost most alone. NotMeasuredError."""
    falls = sorted((one.mean for one in alone_by_rank().values()), reverse=True)
    if len(falls) <= max(but, FEW):
        raise NotMeasuredError(f"{EXPERIMENT}: too few heads alone")
    return falls[but]


def numbers() -> dict[str, str]:
    """Numbers for the chapter: heads that were confined alone."""
    return in_words(
        alone_count=lambda: counted(len(alone_by_rank())),
        alone_second=lambda: alone(2),
        alone_most=lambda: f"{most_alone():.2f}",
    )
