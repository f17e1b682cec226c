"""Measurements of a trained model: the runs of `remove_exponential`, text by text."""

from __future__ import annotations

from math import sqrt
from statistics import mean, stdev
from typing import Any, NamedTuple

from ..lib.records import NotMeasuredError, Record, learned, rows
from ..lib.seed_error import t_95

EXPERIMENT = "remove_exponential"
HERE = 256  # tokens between a passage and its return
HEADS = 270
LEAD, PASSAGE = 64, 64  # tokens of a text before its passage, and of the passage
NEAR = "window-64-4"  # the window and the first tokens that a confined head sees


class Mean(NamedTuple):
    """A mean over texts, its standard error, and how many texts there are."""

    mean: float
    error: float
    texts: int

    @property
    def half(self) -> float:
        """Half of the 95% interval by Student's t; zero for a single text."""
        return t_95(self.texts) * self.error if self.texts > 1 else 0.0

    def __str__(self) -> str:
        """The mean and half of its interval, for prose: 2.75 ± 0.10."""
        return f"{signed(self.mean)} ± {self.half:.2f}"


def signed(value: float) -> str:
    """Two decimals, with a minus sign and without a negative zero."""
    found = f"{value:.2f}"
    return "0.00" if found == "-0.00" else found.replace("-", "−")


def mean_of(values: list[float]) -> Mean:
    """Mean and standard error of one value a text; the error of a single text is zero."""
    spread = stdev(values) if len(values) > 1 else 0.0
    return Mean(mean(values), spread / sqrt(len(values)), len(values))


def stored() -> dict[str, Record]:
    """The runs by their names."""
    return {run["name"]: run for run in learned(EXPERIMENT)}


def run_of(where: str, case: str = "", *, text: str = "passages", distance: int = HERE) -> Record:
    """One run, by where its heads are confined. Raises NotMeasuredError."""
    name = f"{text}-{distance}-{where}-{case}".removesuffix("-")
    if (found := stored().get(name)) is None:
        raise NotMeasuredError(f"{EXPERIMENT}: no {name}")
    return found


def softmax_of(run: Record) -> Record:
    """The untouched model on the texts of a run. Raises NotMeasuredError."""
    return run_of("none", text=run["config"]["text"], distance=run["config"]["distance"])


def measured(run: Record, column: str) -> Mean:
    """A column of the table `texts`; or `rise`: by how much the loss is above softmax's; or `cut`.

    cut: the rise of those tokens alone whose past is cut. The rise compares text by text, so that
    its error leaves out what texts differ by. Raises NotMeasuredError.
    """
    if column not in ("rise", "cut"):
        return mean_of([row[column] for row in rows(run, "texts")])
    share = share_cut(run) if column == "cut" else 1.0
    pairs = zip(rows(run, "texts"), rows(softmax_of(run), "texts"), strict=False)
    return mean_of([(one["loss"] - other["loss"]) / share for one, other in pairs])


def by_novel(run: Record, column: str) -> Mean:
    """A column of the table `texts`, in which a novel counts as one text."""
    novels: dict[str, list[float]] = {}
    for row in rows(run, "texts"):
        novels.setdefault(row["source"], []).append(row[column])
    return mean_of([mean(each) for each in novels.values()])


def share_cut(run: Record) -> float:
    """Of the tokens in `loss`, those that are predicted from more than a window and its first.

    The rest see all that softmax sees, so that their loss is softmax's. Raises NotMeasuredError for
    texts other than passages.
    """
    if run["config"]["text"] != "passages":
        raise NotMeasuredError(f"{EXPERIMENT}: tokens whose past is cut, in {run['name']}")
    attention = run["config"]["attention"]
    seen = attention["window"] + attention["first"] if "window" in attention else 0
    # Of the lead all tokens but the first are predicted, of what stands between the copies all.
    after = LEAD + PASSAGE
    places = [*range(1, LEAD), *range(after, after + run["config"]["distance"])]
    return sum(place > seen for place in places) / len(places)


def recall(run: Record) -> Mean:
    """What a copy brings, text by text: the loss of a passage at its second place, less with it.

    Without it another passage of the novel stands first, and all else is the same. Raises
    NotMeasuredError.
    """
    name = run["name"].replace("passages", "unseen", 1)
    if (control := stored().get(name)) is None:
        raise NotMeasuredError(f"{EXPERIMENT}: no {name}")
    pairs = zip(rows(control, "texts"), rows(run, "texts"), strict=False)
    return mean_of([one["second"] - other["second"] for one, other in pairs])


def sets(text: str, order: str) -> dict[str, dict[int, Record]]:
    """{"kept" or "confined": {heads that may look back: run}} of a ranking, fewest first.

    "kept": the first of the ranking look back and no others. "confined": they do not, and the
    others do. Both begin with no head and end with all of them. Empty where nothing is stored.
    """
    found: dict[str, dict[int, Record]] = {"kept": {}, "confined": {}}
    for run in learned(EXPERIMENT):
        config = run["config"]
        if (config["text"], config["distance"]) != (text, HERE) or config["where"] == "rank":
            continue
        if config.get("order") == order and config["where"] in ("but", "first"):
            number, kept = config["number"], config["where"] == "but"
            found["kept" if kept else "confined"][number if kept else HEADS - number] = run
        ends = {f"{text}-{HERE}-all-{NEAR}": 0, f"{text}-{HERE}-none": HEADS}
        if run["name"] in ends:
            for each in found.values():
                each[ends[run["name"]]] = run
    return {name: dict(sorted(each.items())) for name, each in found.items() if len(each) > 2}


class Head(NamedTuple):
    """A head of a ranking, counted from 0: what confining it does to the gain by its gradient."""

    layer: int
    head: int
    slope: Mean
    mass: float

    @property
    def name(self) -> str:
        return f"{self.layer}.{self.head}"


def ranking(text: str = "passages") -> list[Head]:
    """All heads, the most important first. Raises NotMeasuredError."""
    run = stored().get(f"rank-{text}")
    if run is None:
        raise NotMeasuredError(f"{EXPERIMENT}: no ranking of {text}")
    found: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in rows(run, "heads"):
        found.setdefault((row["layer"], row["head"]), []).append(row)
    heads = [
        Head(*place, mean_of([one["slope"] for one in each]), mean(one["mass"] for one in each))
        for place, each in found.items()
    ]
    return sorted(heads, key=lambda head: head.slope.mean)
