"""Guarded sentences of captions, which stand in the modules that draw the figures."""

from __future__ import annotations

from itertools import pairwise
from math import inf

from ..figures.index import mode_speed, race
from ..figures.index.race_numbers import LINEAR_BEHIND, over_seeds
from ..figures.kernels import kernel_build
from ..figures.lib import tasks
from ..figures.lib.records import have, need, rows
from ..figures.linear_self_attention import variants
from ..figures.long_context import copying
from ..figures.long_context.long_context import MAIN, MODELS
from ..figures.many_devices import scaling as ranks
from ..figures.relatives import overwriting
from ..figures.relatives.layer_speed import tick
from ..figures.sequence_transformations import rnn_orders
from ..figures.state_spaces import scan_speed
from ..figures.three_modes import block_speed, cpu_speed
from ..figures.trained_model import whole_model
from ..figures.trained_model.head_grid import alone_by_rank
from ..figures.training import loss_curves, scaling, state_size
from . import (
    Holds,
    every,
    is_undecided,
    long_context,
    sampling,
    state_spaces,
    three_modes,
    trained_model,
    training,
)
from .linear_self_attention import falls, odd

BOTH = ("softmax", "linear")


def also(chapter: dict[str, Holds], *sentences: str) -> Holds:
    """A caption that holds as sentences of a chapter do."""
    return lambda: every(chapter[sentence]() for sentence in sentences)


def by_state(recipe: str) -> list[state_size.Arm]:
    """The arms of a recipe, the smallest state first."""
    found = [arm for arm in state_size.arms() if arm.recipe == recipe and arm.weights != "none"]
    return need(sorted(found, key=state_size.state), f"state_size: no {recipe}")


def of_product(implementation: str, length: int) -> float:
    """Share of a large product's speed."""
    point = cpu_speed.point(implementation, length)
    return cpu_speed.as_product(point) / point["seconds"]


VERDICTS: dict[str, Holds] = {
    "Longer texts change few answers; more pairs lower those of small states": also(
        long_context.VERDICTS,
        "no layer's mean changes by more than five points",
        "More pairs lower the recall of every state of a few kilobytes",
    ),
    "Linear attention learns to copy too, later than softmax": lambda: every(
        copying.gain("softmax", 64, copying.LEARNT).mean
        > 2 * copying.gain(name, 64, copying.LEARNT).mean
        and copying.gain(name, 64, 1800).mean > 0.3
        for name in ("linear", "exp", "taylor-2", "taylor-4", "delta", "delta-adds")
    ),
    "Past its trained length neither attention's loss visibly rises": also(
        long_context.VERDICTS,
        "Past the length of its training neither attention's loss visibly rises",
    ),
    "A long past is worth thousandths of a nat": lambda: every(
        0 < long_context.worth(name, MAIN) < 0.01 for name in MODELS
    ),
    "models trained at 4,096 lose at most a thousandth of a nat": lambda: every(
        long_context.at_most_lost(name) < 0.001 for name in MODELS
    ),
    "Time-major slows down once the weights of all layers no longer fit into the cache": lambda: (
        rnn_orders.smallest()[1] < 1.25 < rnn_orders.largest()[1] and bool(rnn_orders.step())
    ),
    "A head that fades fast ends the plateau": also(
        training.VERDICTS,
        "A head that fades by half in four bytes does:",
        "The faster it fades, the lower both are by then",
    ),
    "The largest state does not end lowest": lambda: every(
        state_size.end(by_state(recipe)[-1]) > min(map(state_size.end, by_state(recipe)))
        for recipe in state_size.RECIPES
    ),
    "With all the text softmax begins to copy; linear attention does not": also(
        training.VERDICTS,
        "it ends lower than linear attention. Linear attention does not copy",
    ),
    "Larger models end lower with either attention": lambda: every(
        max(larger) < min(smaller)
        for attention in BOTH
        for sizes in [[losses for *_, losses in scaling.points(attention)]]
        for smaller, larger in pairwise(sizes)
    ),
    "tokens, most layers fail at longer texts": also(
        state_spaces.VERDICTS, "Beyond that length most fail"
    ),
    "On two CPU threads a scan as a tree is no faster than one in order": lambda: every(
        scan_speed.ratio(run, "tree", "steps", "forward+backward") > 1
        for run in scan_speed.measured()
    ),
    "Some kernels nearly fill the registers, and none spills": lambda: every(
        max(row["registers"] for row in found) > 240 and max(row["spilled"] for row in found) == 0
        for found in [kernel_build.launches(kernel_build.newest())]
    ),
    "With the normaliser the maps that are never negative end close together. Without it": lambda: (
        min(variants.normaliser_costs(have("variants"))) > variants.map_spread()
    ),
    "With even n every two more terms bring the outputs closer to softmax": lambda: every(
        falls(0, scale) for scale in (0.5, 1, 2, 4)
    ),
    "With odd n and large scores the error stays above 100%": lambda: odd("rms", 1),
    "States in every head, briefly trained, bring back little of the gain": lambda: (
        0 < whole_model.way(whole_model.marks()[-1]) < 0.15
    ),
    "Farther back, recall needs other heads": also(
        trained_model.VERDICTS, "The first 24 ranked at 4,096 bring back"
    ),
    "After 256 tokens, a few heads carry recall": also(
        trained_model.VERDICTS,
        "With 24 nearly all of it stays, and without eight of them most is gone",
    ),
    "Recall after 256 tokens needs a few of the": also(
        trained_model.VERDICTS,
        "With 24 nearly all of it stays, and without eight of them most is gone",
    ),
    "Fitted weights recall; low Taylor sums, random and briefly trained features do not": also(
        trained_model.VERDICTS,
        "Weights of rank 32 (of 64), fitted to each text, keep most of the gain",
        "Low Taylor sums and random features keep almost none",
        "a briefly trained state brings back almost none of the gain",
    ),
    "The heads that bring recall are few": lambda: every(
        fall.mean < 0.05 for rank, fall in alone_by_rank().items() if rank >= 8
    ),
    "The more often keys are written, the fewer newest values are found": lambda: every(
        found[1].mean > found[overwriting.MOST].mean
        for model in tasks.of_usual_size(tasks.at_best_rates(overwriting.TASK))
        for found in [overwriting.shares(overwriting.TASK, model, "writes")]
        if found[1].mean > 0.2  # the others guess
    ),
    "tick takes longer as the text grows": lambda: (
        tick("softmax", 1, 16384)["low"] > tick("softmax", 1, 1)["high"]
    ),
    "With a KV cache a token takes longer the later it comes; with a state it does": also(
        sampling.VERDICTS,
        "With softmax attention the cost of a token grows with the text before it",
        "With linear attention it does not. On a CPU",
    ),
    "Update for update we see no difference; in time linear attention is done first": lambda: (
        is_undecided(over_seeds(LINEAR_BEHIND))
        and every(race.ratio(context) > 1.1 for context in race.CONTEXTS)
    ),
    "At 4,096 bytes both stay near letter pairs for thousands of updates": lambda: every(
        (loss_curves.leaves_pairs(run) or inf) > 2000 for run in loss_curves.nano_pair(4096)
    ),
    "At 256 bytes both learn, softmax more": lambda: (
        loss_curves.behind(*loss_curves.nano_pair(256)) > 0
    ),
    "Chunked mode is the fastest on long texts": also(
        three_modes.VERDICTS, "On long texts chunked mode is the fastest"
    ),
    "On long texts recurrent mode is the farthest from its roofline": also(
        three_modes.VERDICTS, "On long texts recurrent mode is the farthest from its bound"
    ),
    "leads by less than in the layer alone, and from 512": lambda: every(
        block_speed.ratio_to_softmax("1.5B", length)
        < block_speed.ratio_to_softmax("124M", length)
        < mode_speed.ratio_to_softmax(length)
        for length in (512, 1024, 2048, 4096, 8192, 16384)
    ),
    "On long texts the compiled program comes nearest to a large product of matrices": lambda: (
        of_product("compiled", 8192)
        > 2 * max(of_product(one, 8192) for one in ("torch", "softmax"))
    ),
    "Long chunks take longer": lambda: every(
        points[-1]["low"] > min(point["high"] for point in points)
        for run in have("mode_speed")
        if rows(run, "chunks")
        for length, direction in three_modes.CASES
        for points in [
            sorted(
                rows(run, "chunks", length=length, **{"pass": direction}),
                key=lambda point: point["chunk_size"],
            )
        ]
    ),
    "Two processes are faster than one that runs the same program": lambda: every(
        ranks.speedup(attention, 2, place) > 1 for attention in BOTH for place in (0, -1)
    ),
}
