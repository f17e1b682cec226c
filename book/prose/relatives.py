"""Guarded sentences of the chapter on the relatives."""

from collections import defaultdict
from collections.abc import Callable
from statistics import fmean

from experiments.gate_starts import half_life
from experiments.harness.learning.task_training import task_model

from ..figures.lib import tasks
from ..figures.lib.records import Record, have, learned, need, of_config
from ..figures.lib.tasks import hardest
from ..figures.linear_self_attention.variants import normaliser_costs
from ..figures.long_context.copying import is_seen_with_both_seeds, kept_back
from ..figures.relatives import family, gate_starts, parts, play, random_codes, recall
from ..figures.relatives.layer_speed import BATCH, LONG, SHORT, ahead, step_grows, tick
from ..figures.relatives.overwriting import TASK, change, erasing, shares
from . import every, is_above, is_undecided

FIXED = ("linear", "rwkv", "s6", "gated", "delta")  # layers with a state of fixed size
# Layers whose best rates in recall the chapter names.
COMPARED = (
    "linear", "gated", "gla", "delta", "delta-adds", "gated-delta", "s6", "mamba", "taylor",
    "power", "softmax",
)  # fmt: skip


def seconds(layer: str, batch: int, position: int) -> float:
    """Seconds of a tick."""
    return tick(layer, batch, position)["seconds"]


def recalled(model: str) -> tasks.Share:
    """Share recalled of the largest number of pairs."""
    return recall.share(model)


def by_codes() -> float:
    """Share that random codes recall from as many bytes."""
    return random_codes.right_when_drawn(*recall.CASES[0])


def stuck(model: str) -> list[Record]:
    """A model's runs of recall that answer little more than a guess."""
    return [
        run
        for run in tasks.runs_of_model("recall", model)
        if hardest(run) < 1.5 * recalled("none").high
    ]


def first_half_life(run: Record) -> float:
    """Tokens after which a run's state halves, with first weights and a gate's input of zero."""
    return half_life(task_model(run["config"]))


def solved(model: str) -> list[bool]:
    """Whether each seed of a model ended recall by solving it, at its best rate."""
    runs = tasks.of_usual_size(tasks.at_best_rates("recall"))[model]
    return [run["tables"]["end"]["ending"] == ["solved"] for run in runs]


def pairs(
    task: str, right: Callable[[Record], float] = hardest, heads: int = 1
) -> dict[float, list[float]]:
    """Share right with the erase term less that without, for each rate: one for each seed."""
    erases, adds = (
        {(run["config"]["learning_rate"], run["config"]["seed"]): right(run)
         for run in tasks.runs_of_model(task, model, heads)}
        for model in ("delta", "delta-adds")
    )  # fmt: skip
    found: dict[float, list[float]] = defaultdict(list)
    for rate, seed in erases.keys() & adds.keys():
        found[rate].append(erases[rate, seed] - adds[rate, seed])
    return found


def agree(leads: dict[float, list[float]], sign: int) -> bool:
    """Whether the differences at three rates, with three seeds each, all have this sign."""
    return [len(found) for found in leads.values()] == [3, 3, 3] and all(
        sign * lead > 0 for found in leads.values() for lead in found
    )


def rate(task: str, model: str) -> float:
    """A model's best learning rate."""
    runs = tasks.of_usual_size(tasks.at_best_rates(task)).get(model)
    return need(runs, f"{tasks.EXPERIMENT}: no {model} at {task}")[0]["config"]["learning_rate"]


def state(task: str, model: str) -> int:
    """Bytes of a model's state after a text of 256 tokens."""
    return shares(task, model, "length")[256].state


def rises(model: str) -> list[float]:
    """Validation's rise in recall over the last 800 updates, by seed: means of four validations."""
    runs = tasks.of_usual_size(tasks.at_best_rates("recall")).get(model)
    curves = [run["tables"]["curve"] for run in need(runs, f"{tasks.EXPERIMENT}: no {model}")]
    before = [(1520, 1560, 1600, 1640), (2280, 2320, 2360, 2400)]
    at = [dict(zip(curve["update"], curve["accuracy"], strict=True)) for curve in curves]
    return [
        fmean(one.get(n, 0) for n in before[1]) - fmean(one.get(n, 0) for n in before[0])
        for one in at
    ]


def mistaken(model: str) -> int:
    """Number of a model's wrong answers on the first text of recall."""
    runs = learned(play.EXPERIMENT)
    first, *_ = play.texts(
        {name: of_config(runs, task="recall", model=name) for name in play.MODELS}
    )
    return sum(a != b for a, b in zip(first["said"][model], first["wanted"], strict=True))


VERDICTS = {
    "the delta rule copies from further back with erasing than without": lambda: (
        kept_back("delta-adds") < 0.4 < 0.6 < kept_back("delta")
        and is_seen_with_both_seeds("delta", "delta-adds", 1800, 1024)
    ),
    "The control comes near that, and so do linear attention and Mamba-2's decay with": lambda: (
        abs(recalled("delta-adds").mean - by_codes()) < 0.03
        and max(by_codes() - parts.share(one).mean for one in ("gated-silu", "silu-normed")) < 0.08
        and max(recalled(model).mean for model in ("delta", "gated", "linear", "gla"))
        < by_codes() - 0.08
    ),
    "That rate is an end of the range for GLA, S6, softmax, Taylor, power attention and": lambda: (
        {model for model in COMPARED if rate("recall", model) in (0.001, 0.01)}
        == {"gla", "s6", "softmax", "taylor", "power", "delta-adds"}
    ),
    "Linear answers from memory, and mixes some numbers up": lambda: (
        mistaken("softmax") == 0 < mistaken("linear")
    ),
    "All of these keep about 4 KiB": lambda: every(
        4000 < state("recall", model) < 4300
        for model in ("delta", "delta-adds", "gated", "linear", "gla")
    ),
    "Each number is the mean of three seeds": lambda: every(
        len(runs) == 9
        for task in family.TASKS
        for runs in tasks.of_usual_size(tasks.at_all_rates(task)).values()
    ),
    "At the best rates erasing helps where keys get new values": lambda: is_above(erasing(TASK)),
    "Both do best at the middle one of three rates": lambda: (
        {rate(TASK, "delta"), rate(TASK, "delta-adds")} == {3e-3}
    ),
    "All three seeds agree after eight writes": lambda: (
        erasing(TASK).agreeing == erasing(TASK).count == 3
    ),
    "At each other rate one seed disagrees; one of these two runs failed": lambda: (
        [sum(lead < 0 for lead in pairs(TASK)[rate]) for rate in (1e-3, 3e-3, 1e-2)] == [1, 0, 1]
    ),
    "the control loses more than the delta rule in all nine pairs": lambda: agree(
        pairs(TASK, change), 1
    ),
    "points may be chance": lambda: (
        is_undecided(tasks.lead(TASK, "delta", "softmax"))
        and tasks.lead(TASK, "delta", "softmax").mean > 0
    ),
    "After eight writes of a key the erase term brings": lambda: is_above(erasing(TASK)),
    "the delta rule's lead over linear attention in recall does not need its erase term": lambda: (
        min(recalled("delta").low, recalled("delta-adds").low) > recalled("linear").high + 0.2
    ),
    "the delta rule leads linear attention by": lambda: every(
        is_above(tasks.lead("recall", name, "linear")) for name in ("delta", "delta-adds")
    ),
    "At each of three rates, with each of three seeds, the control recalls more": lambda: agree(
        pairs("recall"), -1
    ),
    "Elu + 1 had stopped rising, most others had not": lambda: (
        max(rises("linear")) < 0.01 < min(map(fmean, map(rises, ("gated", "gla", "delta"))))
    ),
    "With silu and the output norm alone linear attention recalls": lambda: (
        parts.share("silu-normed").mean > parts.share("delta-adds").mean - 0.05
    ),
    "At the best rates unit keys or a write gate add nothing that we see": lambda: every(
        not is_above(parts.lead(part, "silu-normed")) for part in ("unit", "write-gate")
    ),
    "less than silu at each rate with each seed, all else equal": lambda: (
        min(parts.at_each("silu-normed", "absolute-silu-normed")) > 0
    ),
    "An offset that all features share costs recall too": lambda: (
        min(parts.at_each("silu-normed", "raised-silu-normed")) > 0
        and sum(one > 0 for one in parts.at_each("silu-normed", "lowered-silu-normed")) >= 8
        and sum(one > 0 for one in parts.at_each("lowered-silu-normed", "raised-silu-normed")) >= 8
    ),
    "unit keys alone fail with one seed at two of three rates": lambda: (
        sum(more > 30 for more in parts.at_each("silu-normed", "unit")) == 2
    ),
    "Sign is not enough": lambda: (
        parts.share("identity-normed").high < parts.share("silu-normed").low - 0.3
        and parts.share("tanh-normed").mean < parts.share("silu-normed").low - 0.1
    ),
    "with silu the first recalls {glue:text}`part_gated_lead` points more, GLA": lambda: every(
        found.agreeing == found.count == 3 and found.mean > 0
        for found in (parts.lead(f"{gate}-silu", gate) for gate in parts.GATES)
    ),
    "In selective copying the first's lead, {glue:text}`part_selective_lead`, may be": lambda: (
        is_undecided(parts.lead("gated-silu", "gated", "selective copying"))
    ),
    "With four heads and the norm alone silu leads elu + 1": lambda: is_above(
        parts.lead("silu-normed", "linear-normed", heads=4)
    ),
    "points with four heads and {glue:text}`narrowest_adds_lead` with eight": lambda: every(
        is_undecided(tasks.lead("recall", "delta-adds", "linear", heads=heads))
        for heads in (recall.NARROW, recall.NARROWEST)
    ),
    "On novels <maps-in-a-language-model>` it lowers the loss, and": lambda: (
        normaliser_costs(have("variants"))[0] > 0
    ),
    "Features decide recall: after": lambda: every(
        parts.lead(signed, never).agreeing == 3
        for signed in ("elu-normed", "silu-normed")
        for never in ("linear", "linear-normed", "relu-normed", "exp-normed", "raised-silu-normed")
    ),
    "with four heads of width 8 and with eight of width 4, in all nine pairs of each": lambda: (
        every(
            agree(pairs("recall", heads=heads), -1) for heads in (recall.NARROW, recall.NARROWEST)
        )
    ),
    "But there linear attention leads the delta rule, with all three seeds": lambda: every(
        lead.agreeing == 3 and lead.mean > 0
        for lead in (
            tasks.lead("recall", "linear", "delta", heads=heads)
            for heads in (recall.NARROW, recall.NARROWEST)
        )
    ),
    "the interval ends at zero": lambda: (
        abs((erasing("recall").half or 100) + erasing("recall").mean) < 0.5
    ),
    "answers more than the control at each of three rates, with each of three seeds": lambda: agree(
        pairs("selective copying"), 1
    ),
    "`selective_adds`; this interval includes zero": lambda: (
        is_undecided(erasing("selective copying")) and erasing("selective copying").mean > 0
    ),
    "In recall the control and unit keys do best at an end of the range": lambda: (
        {rate("recall", "delta-adds"), rate("selective copying", "delta-adds")} <= {1e-3, 1e-2}
        and parts.runs("unit")[0]["config"]["learning_rate"] in (1e-3, 1e-2)
    ),
    "with the norm a fourth, at which they recall less": lambda: every(
        len(parts.at_each(name, name)) == 12
        and parts.runs(name)[0]["config"]["learning_rate"] == best
        for name, best in (
            ("linear-normed", 1e-3),
            ("relu-normed", 1e-3),
            ("exp-normed", 1e-3),
            ("identity-normed", 1e-2),
        )
    ),
    "The control is ahead at every rate with every seed": lambda: agree(pairs("recall"), -1),
    "At its best rate only softmax reached 99.5%": lambda: every(
        solved(model) == ([True] * 3 if model == "softmax" else [False] * 3)
        for model in tasks.of_usual_size(tasks.at_best_rates("recall"))
    ),
    "never left chance with one of its seeds, at any of the three rates": lambda: (
        len(stuck("gated-delta")) == 3
        and len({run["config"]["seed"] for run in stuck("gated-delta")}) == 1
    ),
    "That seed drew the fastest first decay: its state halves in less than a token": lambda: every(
        first_half_life(failed) < min(1, first_half_life(run))
        for failed in stuck("gated-delta")
        for run in tasks.runs_of_model("recall", "gated-delta")
        if run["config"]["seed"] != failed["config"]["seed"]
    ),
    "With a half-life of one token, and all else as drawn, it recalls": lambda: (
        {gate_starts.FAILED} == {run["config"]["seed"] for run in stuck("gated-delta")}
        and gate_starts.shares("gated-delta", 1)[gate_starts.FAILED] > 0.4
    ),
    "With half a token or less every seed stays at chance, and from one token on none does": (
        lambda: every(
            (start < 1) == (share < 1.5 * recalled("none").high) and ((start < 1) or share > 0.4)
            for start in gate_starts.by_start("gated-delta")
            for share in gate_starts.shares("gated-delta", start)
        )
    ),
    "points more than from one, with each of three seeds": lambda: (
        gate_starts.slow_start().mean > 0
        and gate_starts.slow_start().agreeing == gate_starts.slow_start().count == 3
    ),
    "Mamba-2's decay alone recalls least from the shortest start, too": lambda: every(
        fmean(gate_starts.shares("gated", min(gate_starts.by_start("gated"))))
        < fmean(gate_starts.shares("gated", start))
        for start in [*gate_starts.by_start("gated")][1:]
    ),
    "tokens DeltaNet's step grows {glue:text}`step_delta_grows`": lambda: step_grows("delta") > 8,
    "Of one text, the tick of linear attention takes": lambda: all(
        0.9 < seconds(name, batch, LONG) / seconds(name, batch, 1) < 1.1
        for name in FIXED
        for batch in (1, BATCH)
    ),
    "With {view}`16 texts at a time <layer-ticks:batch=16>` the gap is larger": lambda: all(
        seconds(name, BATCH, LONG) / seconds("softmax", BATCH, LONG)
        < seconds(name, 1, LONG) / seconds("softmax", 1, LONG)
        and seconds(name, 1, LONG) < 1.5 * seconds(name, 1, 1)
        for name in FIXED
    ),
    "takes {glue:text}`step_short` the time of softmax, which is one fused call": lambda: (
        1 < ahead("linear", "softmax", SHORT) < ahead("linear", "softmax", LONG)
    ),
    "and S4D still {glue:text}`step_s4d`": lambda: (
        ahead("s4d", "softmax", LONG) < 1
        and min(ahead(name, "softmax", LONG) for name in ("delta", "mamba")) > 1
    ),
}
