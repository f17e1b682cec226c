"""Whole novels: a model trained on a few thousand bytes that reads a million."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from ...explorable.figure import Axis, Explorable, Filter, Series
from ..index import race
from ..lib.format import counted, in_words
from ..lib.pairs import Pairs, compare
from ..lib.records import (
    NotMeasuredError,
    Record,
    learned,
    model_of,
    need,
    of_model,
    provenance,
    rows,
)
from ..lib.seed_error import with_seeds
from ..lib.tables import Missing, Table


def read() -> list[Record]:
    """The runs in which the race's models read."""
    return [run for run in learned("whole_novels") if "trained" in run["config"]]


def runs_of(attention: str, context: int) -> list[Record]:
    """Runs in which each seed of a model read the novels. Raises NotMeasuredError."""
    return of_model("whole_novels", attention, context)


def by_doubling(seeds: Sequence[Record]) -> list[dict[str, float]]:
    """Loss with all of a novel before a byte minus the loss with a window of it, by position.

    A row for each doubling of the position that at least two novels reach. It has the mean over
    these novels and the seeds, half of its 95% interval, and the number of novels.
    """
    several: dict[int, list[list[dict]]] = {}
    for one in seeds:
        by_first: dict[int, list[dict]] = {}
        for each in rows(one, "positions"):
            by_first.setdefault(each["first"], []).append(each)
        for first, novels in by_first.items():
            if len(novels) > 1:
                several.setdefault(first, []).append(novels)
    out = []
    for first, read in sorted(several.items()):
        costs = [[each["whole"] - each["window"] for each in novels] for novels in read]
        cost, half = with_seeds(
            [fmean(each) for each in costs],
            [stdev(each) / math.sqrt(len(each)) for each in costs],
            len(read[0]),
        )
        out.append({
            "first": first,
            "last": max(each["last"] for novels in read for each in novels),
            "loss": fmean(each["whole"] for novels in read for each in novels),
            "cost": cost,
            "half": half,
            "novels": len(read[0]),
        })  # fmt: skip
    return out


def figure(id: str = "whole-novels") -> Explorable | Missing:
    """Cost of the far past, to the end of the novels."""
    stored = read()
    series = []
    for attention, context in dict.fromkeys(map(model_of, stored)):
        seeds = runs_of(attention, context)
        points = by_doubling(seeds)
        columns = {
            "position": [each["last"] for each in points],
            "cost": [1000 * each["cost"] for each in points],
            "low": [1000 * (each["cost"] - each["half"]) for each in points],
            "high": [1000 * (each["cost"] + each["half"]) for each in points],
        }
        if points:
            keys = {"attention": attention, "context": context}
            series.append(Series(keys, columns, source=seeds[0]["path"]))
    if not series:
        return Missing("whole_novels")
    contexts = {one.keys["context"] for one in series}
    window = stored[0]["config"]["window"]
    return Explorable(
        id=id,
        caption=(
            "**At the last bytes read, models trained at 4,096 lose at most a thousandth of a "
            "nat.** Loss of a model that reads held-out novels from their first byte, minus its "
            f"loss on the same bytes with only the last {window // 2:,} to {window:,} before them. "
            "Above zero the far past does harm, below it helps. A point covers the positions from "
            "half of it up to it. Bars: 95% intervals (Student's t over five novels, three at the "
            "last point, and over seeds)."
        ),
        alt="Difference in loss by position, for both attentions, near zero.",
        series=series,
        ceilings=[_level(series)],
        x=Axis("position", "Position", "bytes read", log=10),
        y=Axis(
            "cost", "Cost of the far past", "thousandths of a nat",
            digits=2, low="low", high="high",
        ),
        color="attention",
        mark="line+dot",
        controls=[
            Filter(
                "context",
                "Trained at",
                options=[n for n in race.CONTEXTS if n in contexts],
                default=race.MAIN if race.MAIN in contexts else max(contexts),
            ),
        ],
        provenance=provenance(stored),
    )  # fmt: skip


def _level(series: list[Series]) -> Series:
    """The level at which the far past makes no difference."""
    ends = [position for one in series for position in one.columns["position"]]
    columns: dict[str, list] = {"position": [min(ends), max(ends)]}
    columns |= {name: [0, 0] for name in ("cost", "low", "high")}
    return Series({}, columns, label="no difference")


def last_read(attention: str, context: int) -> dict[str, float]:
    """Cost at the latest positions that at least two novels reach. Raises NotMeasuredError."""
    points = by_doubling(runs_of(attention, context))
    return need(points, f"whole_novels: no positions of {attention} of {context}")[-1]


def both_there(context: int) -> tuple[dict[str, float], dict[str, float]]:
    """Costs of softmax and of linear attention at softmax's latest positions."""
    softmax = last_read("softmax", context)
    points = by_doubling(runs_of("linear", context))
    for linear in points:
        if linear["first"] == softmax["first"]:
            return softmax, linear
    raise NotMeasuredError(f"whole_novels: linear of {context} was not read so far")


def apart(context: int, first: int | None = None) -> Pairs:
    """Linear attention's cost minus softmax's on the same bytes, a pair for each novel.

    first: the first position of a doubling; by default that of softmax's last bytes. Both models
    of a pair have one seed. Raises NotMeasuredError.
    """
    first = first or last_read("softmax", context)["first"]
    costs: dict[str, dict[tuple[int, int], float]] = {}
    for attention in ("linear", "softmax"):
        costs[attention] = {
            (run["config"]["seed"], each["novel"]): each["whole"] - each["window"]
            for run in runs_of(attention, context)
            for each in rows(run, "positions", first=first)
        }
    linear, softmax = costs["linear"], costs["softmax"]
    seeds = {seed for seed, _ in linear} & {seed for seed, _ in softmax}
    novels = sorted({novel for _, novel in softmax})
    return compare([fmean(linear[s, n] - softmax[s, n] for s in seeds) for n in novels if seeds])


def differences() -> list[Pairs]:
    """`apart` of every context at every doubling that both read. Raises NotMeasuredError."""
    return [
        apart(context, point["first"])
        for context in race.CONTEXTS
        for point in by_doubling(runs_of("softmax", context))
    ]


def at_the_end(context: int) -> tuple[dict[str, float], ...]:
    """Costs at the last bytes read: linear attention's, and both models' at softmax's end."""
    softmax, linear = both_there(context)
    return last_read("linear", context), linear, softmax


def table() -> Table | Missing:
    """`at_the_end` and `apart` by the context of the training."""
    by_context, differences = {}, {}
    for context in race.CONTEXTS:
        try:
            by_context[context], differences[context] = at_the_end(context), apart(context)
        except NotMeasuredError:
            continue
    if not by_context:
        return Missing("whole_novels")
    last = f"to byte {max(softmax['last'] for *_, softmax in by_context.values()):,}"
    titles = ["trained at", "linear, to the end", f"linear, {last}", f"softmax, {last}"]
    cells = [
        [f"{context:,}", *map(_plain, costs), _in_thousandths(differences[context])]
        for context, costs in by_context.items()
    ]
    return Table([*titles, "linear less softmax"], cells, align="rrrrr", wrap=True)


def points() -> list[tuple[str, int, dict[str, float]]]:
    """Attention, context of the training and cost of each point of the figure."""
    models = dict.fromkeys(map(model_of, read()))
    return [(*model, point) for model in models for point in by_doubling(runs_of(*model))]


def beyond_zero(sign: int) -> list[tuple[str, int, dict[str, float]]]:
    """The points of which the 95% interval is above zero (1: a cost) or below (−1: a gain)."""
    return [found for found in points() if sign * found[-1]["cost"] > found[-1]["half"]]


def _plain(point: dict[str, float]) -> str:
    """Thousandths of a nat, with half of the 95% interval: 0.24 ± 0.02."""
    cost, half = (f"{1000 * point[name]:.2f}" for name in ("cost", "half"))
    return f"{'0.00' if cost == '-0.00' else cost.replace('-', '−')} ± {half}"


def _in_thousandths(pairs: Pairs) -> str:
    """A difference in thousandths of a nat: "−0.32 ± 0.11 (5 of 5)"."""
    error = None if pairs.error is None else 1000 * pairs.error
    scaled = pairs._replace(mean=1000 * pairs.mean, error=error)
    return f"{scaled.signed(2)} ({pairs.of()})"


def _longest(attention: str) -> int:
    """Bytes of the longest novel that were read."""
    return max(one["last"] for one in rows(runs_of(attention, race.MAIN)[0], "positions"))


def cost(attention: str, context: int = race.MAIN) -> str:
    """Cost of the far past at the end, in words. Raises NotMeasuredError."""
    return _plain(last_read(attention, context))


def numbers() -> dict[str, str]:
    """Numbers for the chapter on long context."""
    return in_words(
        novels_longest=lambda: f"{_longest('linear'):,}",
        novels_times=lambda: f"{_longest('linear') / race.MAIN:.0f}",
        novels_softmax=lambda: f"{_longest('softmax'):,}",
        novels_from=lambda: f"{last_read('linear', race.MAIN)['first'] - 1:,}",
        novels_cost=lambda: cost("linear"),
        novels_loss=lambda: f"{last_read('linear', race.MAIN)['loss']:.2f}",
        novels_differences=lambda: counted(len(differences())),
        novels_intervals=lambda: counted(len(need(points(), "whole_novels"))),
        novels_costs=lambda: counted(len(beyond_zero(1))).capitalize(),
        novels_gains=lambda: counted(len(beyond_zero(-1))).capitalize(),
        novels_count=lambda: counted(len({
            one["novel"] for one in rows(runs_of("linear", race.MAIN)[0], "positions")
        })),
    )  # fmt: skip
