"""Measurements of a trained model: the runs of `remove_exponential`, text by text."""

from __future__ import annotations

from collections.abc import Container, Iterable
from math import sqrt
from statistics import fmean, stdev
from typing import Any, NamedTuple

from ..lib.records import NotMeasuredError, Record, learned, need, rows
from ..lib.seed_error import t_95

EXPERIMENT = "remove_exponential"
HERE, FAR = 256, 4096  # tokens between a passage and its return
HEADS = 270
LEAD, PASSAGE = 64, 64  # tokens of a text before its passage, and of the passage
NEAR = "window-64-4"  # the window and the first tokens that a confined head sees


class Mean(NamedTuple):
    """A mean over texts, its standard error, and the number of texts."""

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


def signed(value: float, digits: int = 2) -> str:
    """A number with a minus sign and without a negative zero."""
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if not float(text) else text.replace("-", "−")


def mean_of(values: list[float]) -> Mean:
    """Mean and standard error of one value a text; the error of a single text is zero."""
    spread = stdev(values) if len(values) > 1 else 0.0
    return Mean(fmean(values), spread / sqrt(len(values)), len(values))


def columns_of(points: Iterable[tuple[float, Mean]], along: str) -> dict[str, list]:
    """Columns of a line with bars: places on the axis `along`, means and their intervals."""
    found = [*points]
    return {
        along: [place for place, _ in found],
        "nats": [one.mean for _, one in found],
        "low": [one.mean - one.half for _, one in found],
        "high": [one.mean + one.half for _, one in found],
    }


def stored() -> dict[str, Record]:
    """The runs by their names."""
    return {run["name"]: run for run in learned(EXPERIMENT)}


def run_of(where: str, case: str = "", *, text: str = "passages", distance: int = HERE) -> Record:
    """One run, named by where its heads are confined. Raises NotMeasuredError."""
    name = f"{text}-{distance}-{where}-{case}".removesuffix("-")
    return need(stored().get(name), f"{EXPERIMENT}: no {name}")


def softmax_of(run: Record) -> Record:
    """The unchanged model's run on the texts of a run. Raises NotMeasuredError."""
    return run_of("none", text=run["config"]["text"], distance=run["config"]["distance"])


def measured(run: Record, column: str) -> Mean:
    """A column of the table `texts`; or `rise`, of the loss above softmax's; or `cut`.

    cut: the rise for only those tokens whose past is cut. The rise is computed text by text, so the
    differences between texts do not enter its error. Raises NotMeasuredError.
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
    return mean_of([fmean(each) for each in novels.values()])


def share_cut(run: Record) -> float:
    """Share of the tokens in `loss` whose past is longer than a window and the first tokens.

    The other tokens see everything that softmax sees, so their loss is softmax's. Raises
    NotMeasuredError for texts other than passages.
    """
    if run["config"]["text"] != "passages":
        raise NotMeasuredError(f"{EXPERIMENT}: tokens whose past is cut, in {run['name']}")
    attention = run["config"]["attention"]
    seen = attention["window"] + attention["first"] if "window" in attention else 0
    # All tokens of the lead except the first are predicted, and all between the copies.
    after = LEAD + PASSAGE
    places = [*range(1, LEAD), *range(after, after + run["config"]["distance"])]
    return sum(place > seen for place in places) / len(places)


def recall(run: Record) -> Mean:
    """Gain from a copy: the loss of a passage without it, minus that with it.

    In the control another passage of the novel stands first, and the rest is the same. Raises
    NotMeasuredError.
    """
    return mean_of(_recalls(run))


def change(run: Record, column: str) -> Mean:
    """A column of the table `texts` above softmax's, text by text. Raises NotMeasuredError."""
    pairs = zip(rows(run, "texts"), rows(softmax_of(run), "texts"), strict=False)
    return mean_of([one[column] - than[column] for one, than in pairs])


def more_recall(run: Record, other: Record) -> Mean:
    """Recall in one run minus that in another, text by text. Raises NotMeasuredError."""
    pairs = zip(_recalls(run), _recalls(other), strict=True)
    return mean_of([one - than for one, than in pairs])


def _recalls(run: Record) -> list[float]:
    name = run["name"].replace("passages", "unseen", 1)
    control = need(stored().get(name), f"{EXPERIMENT}: no {name}")
    pairs = zip(rows(control, "texts"), rows(run, "texts"), strict=False)
    return [one["second"] - other["second"] for one, other in pairs]


def sets(text: str, order: str) -> dict[str, dict[int, Record]]:
    """{"kept" or "confined": {heads that may look back: run}} of a ranking at 256, fewest first.

    "kept": only the first of the ranking look back. "confined": they do not, and the others do.
    Both begin with no head and end with all. Empty if nothing is stored.
    """
    by_set: dict[str, dict[int, Record]] = {"kept": {}, "confined": {}}
    for run in learned(EXPERIMENT):
        config = run["config"]
        here = (config["text"], config["distance"], config.get("ranked", HERE))
        other = config["split"] != "test" or "ranked_by" in config
        if here != (text, HERE, HERE) or config["where"] == "rank" or other:
            continue
        if config.get("order") == order and config["where"] in ("but", "first"):
            number, kept = config["number"], config["where"] == "but"
            by_set["kept" if kept else "confined"][number if kept else HEADS - number] = run
        ends = {f"{text}-{HERE}-all-{NEAR}": 0, f"{text}-{HERE}-none": HEADS}
        if run["name"] in ends:
            for each in by_set.values():
                each[ends[run["name"]]] = run
    return {name: dict(sorted(each.items())) for name, each in by_set.items() if len(each) > 2}


class Head(NamedTuple):
    """A head of a ranking, counted from 0, and the slope of the gain in its confinement."""

    layer: int
    head: int
    slope: Mean
    mass: float

    @property
    def name(self) -> str:
        return f"{self.layer}.{self.head}"

    @property
    def brings(self) -> Mean:
        """The gain that confining it takes, by its gradient."""
        return self.slope._replace(mean=-self.slope.mean)


def ranked(text: str = "passages", distance: int = HERE) -> Record:
    """The run that ranks heads. Raises NotMeasuredError."""
    name = f"rank-{text}" if distance == HERE else f"rank-{text}-{distance}"
    return need(stored().get(name), f"{EXPERIMENT}: no ranking of {text} after {distance}")


def ranking(
    text: str = "passages", only: Container[int] | None = None, distance: int = HERE
) -> list[Head]:
    """All heads, the most important first. only: the texts that rank, by default all.

    distance: of what comes again in these texts, in tokens. Raises NotMeasuredError.
    """
    run = ranked(text, distance)
    scores: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in rows(run, "heads"):
        if only is not None and row["text"] not in only:
            continue
        scores.setdefault((row["layer"], row["head"]), []).append(row)
    heads = [
        Head(*place, mean_of([one["slope"] for one in each]), fmean(one["mass"] for one in each))
        for place, each in scores.items()
    ]
    return sorted(heads, key=lambda head: head.slope.mean)
