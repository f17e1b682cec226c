"""Guarded sentences of the chapter on long contexts."""

from itertools import pairwise
from math import hypot

from ..figures.index.race_numbers import far_head_costs
from ..figures.long_context import distant_recall, recall, whole_novels
from ..figures.long_context.long_context import CONTEXTS, MAIN, MODELS, gain_at, gains, runs_of
from ..figures.long_context.long_context_tables import rise
from . import every

SHORTER = CONTEXTS[:-1]  # where the novels go on past what was trained
LITTLE = 0.02  # nats a byte


def worth(name: str, context: int) -> float:
    """Gain from 16,384 bytes in place of 16, in nats a byte."""
    return gain_at(name, context, "given", 16384)["gain"]


def right(model: str, between: str, distance: int) -> float:
    """Share of the questions answered after a distance."""
    return distant_recall.of(distant_recall.shares(), model, between, distance)


def costs(attention: str, context: int) -> list[float]:
    """Costs of the far past, by doubling of the position."""
    found = whole_novels.by_doubling(whole_novels.runs_of(attention, context))
    return [one["cost"] for one in found]


def last_costs(attention: str) -> list[float]:
    """Costs of the far past at the end of the novels, by context of the training."""
    return [whole_novels.last_read(attention, context)["cost"] for context in CONTEXTS]


VERDICTS = {
    "Neither line turns upwards past the length that the models were trained on": lambda: every(
        rise(name, context) < LITTLE for name in MODELS for context in SHORTER
    ),
    "the linear model does not fall behind as the text grows": lambda: every(
        rise("linear", context, "softmax", context) < LITTLE for context in SHORTER
    ),
    "Those of 16,384 bytes gain the most": lambda: every(
        worth(name, context) <= worth(name, CONTEXTS[-1]) < LITTLE
        for name in MODELS
        for context in CONTEXTS
    ),
    "They are no further ahead of those of 4,096 than the errors allow": lambda: every(
        worth(name, CONTEXTS[-1]) - worth(name, MAIN)
        < 2 * max(gain_at(name, n, "given", 16384)["error"] for n in (MAIN, CONTEXTS[-1]))
        for name in MODELS
    ),
    "a few dozen bytes are nearly all that either model uses": lambda: every(
        worth(name, MAIN) < LITTLE for name in MODELS
    ),
    "{ref}`the far-sighted head costs <far-head>`": lambda: far_head_costs().mean > 0,
    "A state is not worn out by a million bytes": lambda: every(
        abs(cost) < 0.002 for context in CONTEXTS for cost in costs("linear", context)
    ),
    "bytes, where three novels are left": lambda: (
        whole_novels.last_read("linear", MAIN)["novels"] == 3
    ),
    "the less it costs in the mean": lambda: (
        last_costs("linear") == sorted(last_costs("linear"), reverse=True)
    ),
    "the cost is below zero at first": lambda: every(
        (found["cost"] + found["error"] < 0) == (context == max(CONTEXTS))
        for context in CONTEXTS
        for found in [whole_novels.first_read(context)]
    ),
    "the far past costs it about what it costs linear attention": lambda: every(
        abs(softmax["cost"] - linear["cost"]) < hypot(softmax["error"], linear["error"])
        for softmax, linear in map(whole_novels.both_there, CONTEXTS)
    ),
    "It, too, pays most where the texts of the training were short": lambda: (
        min(last_costs("softmax")[:2]) > max(last_costs("softmax")[2:])
    ),
    "But in every run the gain falls from each distance to the next": lambda: every(
        before > after
        for name in MODELS
        for one in runs_of(name, MAIN)
        for before, after in pairwise(one["tables"]["again"]["gain"])
    ),
    "In the mean, four times as far back leaves between a half and an eighth of it": lambda: every(
        2 < before["gain"] / after["gain"] < 8
        for name in MODELS
        for before, after in pairwise(gains(name, MAIN, "again"))
    ),
    "In a novel the gain at 1,024 bytes cannot be told from zero": lambda: every(
        gain_at(name, MAIN, "again", 1024)["gain"] < 2 * gain_at(name, MAIN, "again", 1024)["error"]
        for name in MODELS
    ),
    "are found by the sum as well after 16,384 tokens as after four": lambda: (
        abs(right("linear", "noise", 4) - right("linear", "noise", 16384)) < 0.03
    ),
    "the sum, the gate and the delta rule lose most of them within 256": lambda: every(
        right(model, "pairs", 256) < 0.5 * right(model, "pairs", 4)
        for model in ("linear", "gated", "delta")
    ),
    "far past all that it was trained on": lambda: (
        abs(right("linear", "noise", 16) - right("linear", "noise", 16384)) < 0.1
    ),
    "still answers after 256 tokens what it answers after 16, and none of it after 1,024": lambda: (
        right("fades", "noise", 256) > 0.8 * right("fades", "noise", 16)
        and right("fades", "noise", 1024) < 0.25 * right("fades", "noise", 16)
    ),
    "keeps its answers up to 1,024 tokens and loses most of them by 16,384": lambda: (
        right("delta", "noise", 1024) > 0.95 * right("delta", "noise", 16)
        and right("delta", "noise", 16384) < 0.5 * right("delta", "noise", 16)
    ),
    "The gated delta rule does so up to 1,024 tokens": lambda: (
        right("gated-delta", "noise", 1024) > 0.95 * right("gated-delta", "noise", 16)
    ),
    "At a distance of 256 tokens none of them answers a quarter": lambda: every(
        right(model, "pairs", 256) < 0.25
        for model in distant_recall.by_model()
        if model not in ("softmax", "none")
    ),
    "Softmax, which keeps everything, falls too, later": lambda: (
        right("softmax", "pairs", 4096) < right("softmax", "pairs", 16) * 2 / 3
        and right("softmax", "pairs", 256) > 2 * right("delta", "pairs", 256)
    ),
    "cost no layer anything": lambda: every(
        recall.drift(model, pairs) < 0.05 for model in recall.by_model() for pairs in recall.PAIRS
    ),
    "every state of fixed size answers fewer than with 16": lambda: every(
        recall.recalled(model, 64) < recall.recalled(model, 16)
        for model in recall.by_model()
        if model not in ("softmax", "none")
    ),
    "Seeds of one layer differ widely": lambda: (
        max(recall.by_seed("taylor-2")) - min(recall.by_seed("taylor-2")) > 0.3
    ),
}
