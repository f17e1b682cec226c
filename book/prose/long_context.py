"""Guarded sentences of the chapter on long contexts."""

from itertools import pairwise
from math import hypot

from ..figures.lib.records import Record, need, rows
from ..figures.lib.seed_error import with_seeds
from ..figures.lib.tasks import Share, at_all_rates
from ..figures.long_context import copying, distant_recall, recall, whole_novels
from ..figures.long_context.copying import is_seen_with_both_seeds, kept_back
from ..figures.long_context.copying_rates import HALF, TWICE, at_rate, gains_at_rates
from ..figures.long_context.long_context import CONTEXTS, MAIN, MODELS, gain_at, gains, runs_of
from ..figures.long_context.long_context_tables import bytes_read, rise
from ..figures.relatives import parts
from ..figures.training import long_race
from . import every, is_above, is_below, is_undecided

LITTLE = 0.02  # nats a byte
DISTANCES = (64, 256, 1024, 4096, 16384)  # bytes back
SMALL = ("linear", "gated", "delta")  # models whose state is a few kilobytes


def worth(name: str, context: int) -> float:
    """Gain from 16,384 bytes instead of 16, in nats a byte."""
    return gain_at(name, context, "given", 16384)["gain"]


def right(model: str, between: str, distance: int) -> float:
    """Share of the questions answered after a distance."""
    return distant_recall.of(distant_recall.shares(), model, between, distance)


def seeds(model: str, distance: int) -> Share:
    """The share answered after noise, with its range over seeds. Raises NotMeasuredError."""
    found = distant_recall.shares().get((model, "noise", distance))
    return need(found, f"{distant_recall.TASK}: no {model} at {distance}")


def in_noise(model: str, near: int, far: int) -> float:
    """Share answered after more noise, over that after less."""
    return right(model, "noise", far) / right(model, "noise", near)


def linear_runs() -> list[Record]:
    """Linear attention's runs of distant recall at all rates. Raises NotMeasuredError."""
    found = [
        run
        for kind, runs in at_all_rates(distant_recall.TASK).items()
        if kind.model == "linear"
        for run in runs
    ]
    return need(found, f"{distant_recall.TASK}: no linear")


def at_most_lost(attention: str) -> float:
    """Upper end of the 95% interval of the far past's cost at the last bytes read, in nats."""
    point = whole_novels.last_read(attention, MAIN)
    return point["cost"] + point["half"]


def readings() -> list[float]:
    """Linear attention's costs at the end, of each seed and novel."""
    first = whole_novels.last_read("linear", MAIN)["first"]
    return [
        one["whole"] - one["window"]
        for run in whole_novels.runs_of("linear", MAIN)
        for one in rows(run, "positions", first=first)
    ]


def is_gain(name: str, context: int, at: int) -> bool:
    """Whether the 95% interval of a repeated passage's gain is above zero at a distance."""
    point = gain_at(name, context, "again", at)
    return point["gain"] > point["half"]


def share_off(name: str) -> float:
    """The share that a copy 64 bytes back takes off a model's loss after the longest runs."""
    update = copying.asked(name)[-1]
    gained, cost = copying.gain(name, 64, update).mean, copying.loss(name, 64, update)
    return gained / (gained + cost)


VERDICTS = {
    "attention's lag behind softmax grows with the position in a window of 1,024": lambda: every(
        is_above(long_race.lag_grows(seed))
        for seed in long_race.seeds_of(*long_race.PAIR, whole=True)
    ),
    "Where one passage comes again and again, softmax learns to copy it within": lambda: (
        copying.gain("softmax", 64, copying.LEARNT).mean > 1 > 2 * copying.loss("softmax", 64, 600)
    ),
    "At 64 bytes back sums of Taylor features come near it, later": lambda: every(
        copying.learnt("softmax", 1) < copying.learnt(name, 1)
        and copying.gain(name, 64, 1800).mean > 0.9 * copying.gain("softmax", 64, 1800).mean
        for name in ("taylor-2", "taylor-4")
    ),
    "the copy takes about half off its loss": lambda: 0.4 < share_off("linear") < 0.6,
    "with or without erasing, and with it copies from further back": lambda: (
        max(copying.learnt(name, 0.3) for name in ("delta", "delta-adds"))
        < copying.learnt("linear", 0.3)
        and copying.gain("delta", 1024, 1800).mean > 2 * copying.gain("linear", 1024, 1800).mean
    ),
    "of all that read on, it has the lowest loss on unchanged novels": lambda: (
        min(copying.read_on(), key=lambda name: copying.on_novels(name, 1800), default="")
        == "gated-delta"
    ),
    "the delta rule gains almost nothing": lambda: (
        copying.gain("gated-delta", 64, 1800).mean < LITTLE
    ),
    "nearly as much from {view}`256 bytes": lambda: kept_back("delta", 256) > 0.9,
    "and two thirds of it from 1,024": lambda: 0.6 < kept_back("delta") < 0.72,
    "at half the rate later (one seed). With exponential features a sum learns it sooner": lambda: (
        copying.learnt("taylor-4", 0.3)
        < copying.learnt("taylor-2", 0.3)
        < copying.learnt("exp", 0.3)
        < copying.learnt("linear", 0.3)
    ),
    "To copy they bring nothing clear": lambda: every(  # with each seed another gains the least
        len({min(copying.PARTS, key=lambda part: gains[part][seed]) for seed in (1, 2)}) == 2
        for gains in [{p: copying.by_seed(f"{p}-normed-longer") for p in copying.PARTS}]
    ),
    "Linear attention still gains {glue:text}`copying_linear_late` after": lambda: (
        copying.gain("linear", 64, copying.learnt("linear", 0.3) - 300).mean < 0.15
    ),
    "ten read on to {glue:text}`copying_longest`": lambda: len(copying.read_on()) == 10,
    "With both seeds erasing carries the copy farther": lambda: is_seen_with_both_seeds(
        "delta", "delta-adds", 1800, 1024
    ),
    "with one seed that order turns by 1,200": lambda: (
        is_seen_with_both_seeds("delta-adds", "delta", copying.EARLY, 64)
        and sorted(
            more > copying.by_seed("delta", 1200)[seed]
            for seed, more in copying.by_seed("delta-adds", 1200).items()
        )
        == [False, True]
    ),
    "With erasing the delta rule copies from further back than without": lambda: (
        kept_back("delta-adds") < 0.4 < 0.6 < kept_back("delta")
    ),
    "Later its gain falls, because the same bytes cost less without the copy too": lambda: (
        copying.gain("softmax", 64, 600).mean > copying.gain("softmax", 64, 1800).mean
        and copying.loss("softmax", 64, 600) > copying.loss("softmax", 64, 1800)
    ),
    "and {glue:text}`copying_after` after {glue:text}`copying_learnt`": lambda: (
        copying.gain("softmax", 64, copying.LEARNT).mean
        > 5 * copying.gain("softmax", 64, copying.LEARNT - 100).mean
    ),
    "At half the rate it hardly copies by then, where exponential features do": lambda: (
        at_rate("linear", HALF).mean < 0.15 < 0.8 < at_rate("exp", HALF).mean
    ),
    "At twice the rate both gain about as much from 64 bytes": lambda: (
        abs(at_rate("exp", TWICE).mean - at_rate("linear", TWICE).mean) < 0.1
        and at_rate("exp", TWICE, 1024).mean > 1.5 * at_rate("linear", TWICE, 1024).mean
    ),
    "The delta rule without a gate copies from further back at each rate": lambda: (
        min(gains_at_rates("delta", 1024)) > 3 * max(gains_at_rates("linear", 1024))
    ),
    "Without the token shift softmax learns later": lambda: (
        copying.gain("unshifted", 64, copying.LEARNT).mean
        < 0.1 * copying.gain("softmax", 64, copying.LEARNT).mean
        and copying.gain("unshifted", 64).mean > 0.5 * copying.gain("softmax", 64).mean
    ),
    "So at this rate features decide how soon a sum learns to copy": lambda: (
        copying.kept("exp") == copying.kept("linear")
        and copying.gain("exp", 64).mean > 5 * copying.gain("linear", 64).mean
    ),
    "With exponential features in place of elu + 1, in a state as large, it gains": lambda: (
        is_seen_with_both_seeds("exp", "linear", 600, 64)
    ),
    "with one of two seeds their lead is gone": lambda: (
        sorted(
            gain > copying.by_seed("linear", 1800)[seed] + LITTLE
            for seed, gain in copying.by_seed("exp", 1800).items()
        )
        == [False, True]
    ),
    "copies within the window and not beyond": lambda: (
        copying.gain("window", 64).mean > 0.5 * copying.gain("softmax", 64).mean
        and abs(copying.gain("window", 256).mean) < 0.001
    ),
    "With a state for the bytes between it learns more slowly": lambda: (
        copying.gain("window-state", 64).mean
        < copying.gain(copying.STATE_TWICE, 64).mean
        < 0.5 * copying.gain("window", 64).mean
    ),
    "but from 256 bytes back {glue:text}`copying_window_state_256`": lambda: (
        copying.gain("window-state", 64, 1800).mean > 1
        and copying.gain("window-state", 256, 1800).mean < LITTLE
    ),
    "Softmax gains less at distances beyond its windows in training": lambda: every(
        copying.gain("softmax", near).mean > copying.gain("softmax", far).mean > 0.1
        for near, far in pairwise((256, 512, 1024, 2048, 4096))
    ),
    "features computed in float32, delta rules without a gate in bfloat16": lambda: every(
        name.startswith("delta") == run["provenance"]["device"]["name"].endswith("BF16")
        for name in ("linear", "gated", "exp", "delta", "delta-adds")
        for run in copying.seeds_of(name, copying.longest())
    ),
    "bars are over places alone, and seeds differ by more": lambda: every(
        max(found) - min(found) > 2 * (copying.gain(name, 64, update).half or 1)
        for name, update in (("softmax", copying.LEARNT), ("linear", 1800), ("exp", 600))
        for found in [copying.by_seed(name, update).values()]
    ),
    "linear attention, gates and delta rules gain at most 0.05": lambda: every(
        max(copying.by_seed(name).values()) <= 0.05
        for name in ("gate-slow", "delta-slow", *copying.AT_TWICE)
    ),
    "passages that came again once had not taught it to": lambda: (
        copying.gain(copying.RARE, 64).mean < 2 * LITTLE
    ),
    "The further back a passage stood, the less it helps when it comes again": lambda: every(
        before["gain"] > after["gain"]
        for name in MODELS
        for before, after in pairwise(gains(name, MAIN, "again"))
    ),
    "none of its models uses much of a long past, and a model": lambda: every(
        worth(name, context) < LITTLE for name in MODELS for context in CONTEXTS
    ),
    "the models of the race gain about a hundredth of a nat a byte at most": lambda: (
        0.005 < max(worth(name, context) for name in MODELS for context in CONTEXTS) < 0.015
    ),
    "loses at most a thousandth of a nat a byte at the end of the three longest novels": lambda: (
        at_most_lost("linear") < 0.001
    ),
    "All nine readings (three seeds) are costs": lambda: (
        len(readings()) == 9 and min(readings()) > 0
    ),
    "In a novel the gain at 1,024 bytes is below two thousandths of a nat": lambda: every(
        found["gain"] + found["half"] < 0.002
        for found in (gain_at(name, MAIN, "again", 1024) for name in MODELS)
    ),
    "of the figure harms linear attention little": lambda: (
        abs(right("linear", "noise", 4) - right("linear", "noise", 16384)) < 0.03
    ),
    "Past the length of its training neither attention's loss visibly rises": lambda: every(
        is_undecided(found) and found.mean + (found.half or 1) < 0.1
        for found in (rise(name, context) for name in MODELS for context in (256, MAIN))
    ),
    "models trained at 16,384 bytes lead by less than the intervals": lambda: every(
        0
        <= worth(name, CONTEXTS[-1]) - worth(name, MAIN)
        < hypot(*(gain_at(name, n, "given", 16384)["half"] for n in (MAIN, CONTEXTS[-1])))
        for name in MODELS
    ),
    "and have read twice as many bytes": lambda: (
        [bytes_read(context) // bytes_read(MAIN) for context in CONTEXTS] == [1, 1, 1, 2]
    ),
    "bytes three novels are left": lambda: whole_novels.last_read("linear", MAIN)["novels"] == 3,
    "exclude zero as costs, all of models trained at 256 or at 1,024 bytes": lambda: (
        {context for _, context, _ in whole_novels.beyond_zero(1)} == {256, 1024}
    ),
    "as gains: both models trained at 16,384 bytes, between bytes 4,096 and 8,192": lambda: (
        {(*one, point["first"]) for *one, point in whole_novels.beyond_zero(-1)}
        == {(name, 16384, 4097) for name in MODELS}
    ),
    "two exclude zero, in its favour": lambda: (
        [is_below(one) for one in whole_novels.differences() if not is_undecided(one)]
        == [True, True]
    ),
    "linear attention has three seeds, all other models one": lambda: every(
        len(whole_novels.runs_of(name, n)) == (3 if (name, n) == ("linear", MAIN) else 1)
        for name in MODELS
        for n in CONTEXTS
    ),
    "In this table the interval excludes zero up to 256 bytes": lambda: every(
        is_gain(name, MAIN, at) == (at <= 256) for name in MODELS for at in DISTANCES
    ),
    "At 1,024 it does in nine of all twelve runs, taken one by one": lambda: (
        [
            one["gain"] > with_seeds([one["gain"]], [one["error"]], run["config"]["places"])[1]
            for name in MODELS
            for context in CONTEXTS
            for run in runs_of(name, context)
            for one in rows(run, "again", distance=1024)
        ].count(True)
        == 9
    ),
    "The mean falls from each distance to the next in every run": lambda: every(
        before > after
        for name in MODELS
        for context in CONTEXTS
        for one in runs_of(name, context)
        for before, after in pairwise(one["tables"]["again"]["gain"])
    ),
    "linear attention answers nearly as many questions after 16,384 tokens of noise": lambda: (
        0.95 < in_noise("linear", 16, 16384) < 1
    ),
    "after 16,384 tokens as after 16. DeltaNet, with silu, recalls more": lambda: every(
        seeds("delta", at).low > seeds("linear", at).high for at in (16, 1024)
    ),
    "and no more than without attention at 4,096": lambda: (
        abs(1 - in_noise("fades", 16, 256)) < 0.02 and seeds("fades", 4096).high < 0.05
    ),
    "At its rate nothing separates it from the delta rule at 16,384 tokens": lambda: (
        distant_recall.at_rate_of("linear", "delta", 16384).low
        < seeds("linear", 16384).mean
        < distant_recall.at_rate_of("linear", "delta", 16384).high
    ),
    "each fixed-size state answers less than a third of what it answers at four": lambda: every(
        right(model, "pairs", 256) < right(model, "pairs", 4) / 3
        for model in distant_recall.by_model()
        if model not in ("softmax", "none")
    ),
    "Softmax falls too, further away": lambda: (
        right("softmax", "pairs", 4096)
        < right("softmax", "pairs", 16) * 2 / 3
        < right("softmax", "pairs", 256)
    ),
    "No run of linear attention, the fixed decay or the gate answered all in training": lambda: (
        every(
            run["tables"]["end"]["ending"] == ["stopped"]
            for model in ("linear", "fades", "gated")
            for run in distant_recall.by_model().get(model, ())
        )
    ),
    "and differ between layers; linear attention did best at the lowest": lambda: (
        {run["config"]["learning_rate"] for run in distant_recall.by_model().get("linear", ())}
        == {min(run["config"]["learning_rate"] for run in linear_runs())}
    ),
    "More pairs lower the recall of every state of a few kilobytes": lambda: every(
        recall.recalled(model, 64) < recall.recalled(model, 16) < recall.recalled(model, 4)
        for model in SMALL
    ),
    "Linear attention misses some even of four": lambda: max(recall.by_seed("linear", 4)) < 0.95,
    "softmax and Taylor 4 learned this task with all three seeds, and no other layer": lambda: (
        {model: n for model in recall.by_model() if (n := recall.learners(model))}
        == {"softmax": 3, "taylor-4": 3}
    ),
    "plain q and k without a decay answer more of 16 pairs too, and no more of 64": lambda: (
        parts.recalled("identity-normed", 16) > parts.recalled("linear", 16) + 0.05
        and parts.recalled("identity-normed", 64) < parts.recalled("linear", 64) + 0.03
    ),
    "decay answers more of 4 and of 16 pairs than linear attention, and fewer of 64": lambda: every(
        (gated > linear) == (pairs < 64)
        for pairs in recall.PAIRS
        for gated, linear in zip(
            *(recall.by_seed(m, pairs) for m in ("gated", "linear")), strict=True
        )
    ),
    "Taylor 2 answers less than half as many of 64 pairs as with the others": lambda: (
        2 * sorted(recall.by_seed("taylor-2"))[0] < sorted(recall.by_seed("taylor-2"))[1]
    ),
    "The delta rule answers almost all of four pairs": lambda: recall.recalled("delta", 4) > 0.995,
    "no layer's mean changes by more than five points": lambda: every(
        recall.drift(model, pairs) < 0.05 for model in recall.by_model() for pairs in recall.PAIRS
    ),
}
