"""Tables of the race: its design, final losses, times of updates, and comparisons."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from math import floor, log10

from ..index import ngram_baseline
from ..index.race import (
    CONTEXTS,
    MAIN,
    MODELS,
    PAIR,
    WRITTEN,
    by_model,
    differences,
    end,
    ends,
    in_the_same_time,
    ratio,
    seconds,
    speed,
)
from ..index.race_numbers import CONVOLUTION, over_seeds
from ..lib.format import counted, in_words, times
from ..lib.pairs import Pairs, compare
from ..lib.records import NotMeasuredError, device_name, load, losses_by_update, need
from ..lib.seeds import mean_over_seeds
from ..lib.tables import Missing, Table
from . import scaling

NEAR = "linear, near only"
LONG_RUNS = 1024  # the context at which leads are followed over 2,048 updates
BESIDE = (NEAR, "window")  # timed beside the pair


def design() -> Table | Missing:
    """Updates, bytes an update and total bytes, by context."""
    cells = []
    for context in CONTEXTS:
        for run in by_model(context).get("linear", ())[:1]:
            config = run["config"]
            read = config["span"] * config["spans"]
            of_all = f"{config['updates'] * read / 1e6:.1f} million"
            cells.append([f"{context:,}", f"{config['updates']:,}", f"{read:,}", of_all])
    titles = ["context", "updates", "bytes an update", "bytes in all"]
    return Table(titles, cells, align="rrrr") if cells else Missing("race")


def table() -> Table | Missing:
    """Final loss of every model at every context: mean and spread over seeds."""
    contexts = [n for n in CONTEXTS if by_model(n)]
    if not contexts:
        return Missing("race")
    cells = []
    for model in MODELS:
        line = [WRITTEN[model]]
        for context in contexts:
            runs = by_model(context).get(model)
            line.append(mean_over_seeds(ends(model, context)) if runs else "")
        cells.append(line)
    return Table(["model", *(f"{n:,}" for n in contexts)], cells)


def time_table() -> Table | Missing:
    """Seconds of an update by context, with quartiles, and softmax's time over linear's."""
    cells = []
    for context in CONTEXTS:
        try:
            both = [seconds(name, context) for name in PAIR]
        except NotMeasuredError:
            continue
        timed = [_timed(name, context) for name in (*PAIR, *BESIDE)]
        cells.append([f"{context:,}", *timed[:2], times(both[0] / both[1]), *timed[2:]])
    titles = ["context", *PAIR, "ratio", *(WRITTEN[name] for name in BESIDE)]
    filled = [i for i in range(len(titles)) if any(line[i] != "–" for line in cells)]
    cells = [[line[i] for i in filled] for line in cells]
    shown = [titles[i] for i in filled]
    return Table(shown, cells, align="r" * len(shown), wrap=True) if cells else Missing("race")


def _timed(model: str, context: int) -> str:
    """Median of an update's seconds, and half of its interquartile range: "0.569 ± 0.006"."""
    try:
        point = speed(model, context)
    except NotMeasuredError:
        return "–"
    digits = max(0, 2 - floor(log10(point["seconds"])))
    return f"{point['seconds']:.{digits}f} ± {(point['high'] - point['low']) / 2:.{digits}f}"


def same_time_table() -> Table | Missing:
    """Losses when linear attention has made its updates, and softmax those of the same time."""
    cells = []
    for context in CONTEXTS:
        try:
            then = in_the_same_time(context)
        except NotMeasuredError:
            continue
        losses = f"{then.other:.3f}", f"{then.linear:.3f}", then.behind.signed()
        cells.append([f"{context:,}", f"{then.minutes:.1f}", *losses, then.behind.of()])
    titles = ["context", "minutes", "softmax", "linear", "linear less softmax", "seeds"]
    return Table(titles, cells, align="rrrrrr") if cells else Missing("race")


def config() -> dict:
    """Configuration of the race's linear attention. Raises NotMeasuredError."""
    return need(by_model(MAIN).get("linear"), f"race: no linear at {MAIN}")[0]["config"]


def updates_by_then(context: int) -> float:
    """Updates that softmax has made when linear attention has made its own. NotMeasuredError."""
    runs = need(by_model(context).get("linear"), f"race: no linear at {context}")
    return runs[0]["config"]["updates"] / ratio(context)


def trained_again(updates: int = 512) -> list[float]:
    """Losses of `scaling`'s runs of the race's size less the race's own, after so many updates.

    Runs that the race has lent are left out. Raises NotMeasuredError.
    """
    own = {
        (name, run["config"]["seed"]): losses_by_update(run)[updates]
        for name in PAIR
        for run in by_model(LONG_RUNS).get(name, ())
    }
    again = {
        (name, run["config"]["seed"]): losses_by_update(run).get(updates)
        for name, by_size in scaling.sizes().items()
        for run in by_size.get("0.8M", ())
    }
    apart = [loss - own[key] for key, loss in again.items() if loss and key in own]
    return need([one for one in apart if one], "scaling: no run of the race trained again")


def window_times() -> list[float]:
    """Seconds of the window's update over those of linear attention's, by context."""
    return [seconds("window", context) / seconds("linear", context) for context in CONTEXTS]


def far_head_table() -> Table | Missing:
    """Cost of the far-sighted head, by context and attention: mean, error, and agreeing pairs.

    Its runs minus those with a second near-sighted head instead.
    """
    cells = [[f"{context:,}", *(_far_head(name, context) for name in PAIR)] for context in CONTEXTS]
    cells = [line for line in cells if set(line[1:]) != {"–"}]
    return Table(["context", *PAIR], cells, align="rrr", wrap=True) if cells else Missing("race")


def _far_head(attention: str, context: int) -> str:
    try:
        cost = compare(differences(attention, f"{attention}, near only", context))
    except NotMeasuredError:
        return "–"
    return f"{cost.signed()} ({cost.of()})"


def lead_after(updates: int) -> Pairs:
    """Nats by which the best attention is above the convolution after `updates`, by seed.

    Raises NotMeasuredError.
    """
    one, other = (
        {
            run["config"]["seed"]: losses_by_update(run)[updates]
            for run in by_model(LONG_RUNS).get(name, ())
        }
        for name in (NEAR, CONVOLUTION)
    )
    return compare([one[seed] - other[seed] for seed in one.keys() & other.keys()])


def _by_processor() -> dict[tuple[str, int, str, int], float]:
    """{(processor, context, model, seed): last loss} of every stored run of the race."""
    losses = {}
    for run in load("race"):
        config = run["config"]
        if run["complete"] and config["model"] in MODELS:
            key = device_name(run), config["context"], config["model"], config["seed"]
            losses[key] = run["tables"]["validation"]["loss"][-1]
    return losses


def trained_twice() -> list[float]:
    """Differences of final losses between processors, for runs that several have trained."""
    same: dict[tuple, list[float]] = defaultdict(list)
    for (_, *name), loss in _by_processor().items():
        same[tuple(name)].append(loss)
    apart = [max(each) - min(each) for each in same.values() if len(each) > 1]
    return need(apart, "race: no run on two processors")


def window_shares_no_processor() -> bool:
    """Whether no processor trained both the window and softmax or linear attention."""
    trained: dict[str, set[str]] = defaultdict(set)
    for processor, _, model, _ in _by_processor():
        trained[model].add(processor)
    return bool(trained["window"]) and not trained["window"] & (
        trained["softmax"] | trained["linear"]
    )


def far_head_on_one_processor() -> dict[tuple[int, str, int], float]:
    """Costs of the far-sighted head in pairs of one processor, by context, model and seed."""
    every = _by_processor()
    costs = {
        (context, model, seed): loss - every[near]
        for (processor, context, model, seed), loss in every.items()
        if (near := (processor, context, f"{model}, near only", seed)) in every
    }
    return need(costs, "race: no pair on one processor")


def numbers() -> dict[str, str]:
    """Numbers for the chapter on training: the race."""

    def apart(values: Collection[float]) -> str:
        return f"{min(values):.3f} to {max(values):.3f}"

    return in_words(
        race_rate=lambda: f"{config()['learning_rate']:g}",
        race_warmup=lambda: config()["warmup_updates"],
        far_same=lambda: counted(len(far_head_on_one_processor())),
        far_same_costs=lambda: apart(far_head_on_one_processor().values()),
        window_times=lambda: f"{min(window_times()):.1f} to {max(window_times()):.1f}×",
        made_twice_apart=lambda: f"{max(map(abs, [*trained_again(), *trained_twice()])):.3f}",
        two_bytes=lambda: f"{end(CONVOLUTION, LONG_RUNS):.3f}",
        **{f"two_bytes_after_{n}": lambda n=n: lead_after(n).spread(2) for n in (512, 2048)},
        near_1024=lambda: f"{end(NEAR, LONG_RUNS):.3f}",
        near_4096=lambda: f"{end(NEAR, MAIN):.3f}",
        five_letters=lambda: f"{ngram_baseline.loss(5):.3f}",
        same_time_updates=lambda: f"{updates_by_then(16384):.0f}",
        **{
            f"far_costs_{name}": lambda name=name: over_seeds((name, f"{name}, near only")).spread()
            for name in PAIR
        },
    )
