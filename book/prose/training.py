"""Of the chapter on training."""

from itertools import pairwise

from ..figures.index import loss_curves, race
from ..figures.index.race_numbers import far_head_costs, linear_behind, paired
from ..figures.lib.records import have
from ..figures.three_modes import block_speed
from ..figures.training import plateau, scaling, scaling_rates, state_size
from ..figures.training.plateau import ATTENTION, HALF_LIVES, compare, end, leaves
from ..figures.training.state_size import Arm
from ..figures.training.state_tables import added, gap
from . import every

LONG = (1024, 4096, 16384)  # contexts of the race at which an update takes linear attention less


def stays(remedy: str) -> bool:
    """Whether the plateau does, with either attention."""
    return every(leaves(remedy, attention) is None for attention in ATTENTION)


def leave(*remedies: str) -> bool:
    """Whether both attentions leave the plateau with each."""
    return every(leaves(remedy, name) is not None for remedy in remedies for name in ATTENTION)


def is_no_later(one: plateau.Key, other: plateau.Key) -> bool:
    """Whether both leave the plateau, and one of them no later than the other."""
    first, second = leaves(*one), leaves(*other)
    return first is not None and second is not None and first <= second


def sharpest(weights: str) -> float:
    """Tokens that the sharpest head weighs, as a share of the keys."""
    found = state_size.attention(Arm(weights), "end")
    return found.sharpest / found.alike


def behind(weights: str, recipe: str, heads: int = 2) -> float:
    """The mean, of what elu + 1 with two heads ends at."""
    return state_size.behind(Arm(weights, recipe, heads), Arm("elu + 1", recipe)).mean


def is_undecided(suspect: str) -> bool:
    """Whether a gap is smaller than its standard error."""
    found = gap(suspect)
    return found.error is not None and abs(found.mean) < found.error


VERDICTS = {
    "Per minute it is ahead from 1,024 bytes on": lambda: every(
        linear < softmax - 0.02 for _, softmax, linear in map(race.in_the_same_time, LONG)
    ),
    "lowers the loss of neither model": lambda: far_head_costs().mean > 0,
    "it ends slightly lower than softmax, not higher": lambda: -0.02 < linear_behind().mean < 0,
    "With near-sighted heads alone linear attention ends": lambda: (
        paired("linear, near only", "softmax, near only").mean < 0
    ),
    "Softmax led from then on": lambda: loss_curves.behind(*loss_curves.nano_pair(2048)) > 0.1,
    "is by far the largest on this page": lambda: (
        min(race.end("no attention", n) - race.end("linear", n) for n in race.CONTEXTS) > 0.5
    ),
    "Here that head costs": lambda: far_head_costs().mean > 2 * (far_head_costs().error or 1),
    "Wider models gain less at the same length": lambda: every(
        block_speed.ratio_to_softmax(scale, 16384) < race.ratio(16384) for scale in ("124M", "1.5B")
    ),
    "At 1,024 and at 16,384 neither left before its run ended": lambda: (
        min(loss_curves.last_loss(run) for n in (1024, 16384) for run in loss_curves.nano_pair(n))
        > loss_curves.below_pairs()
    ),
    "So it went in the first runs of this book": lambda: (
        have("loss_curves") == loss_curves.told_of()
    ),
    "None of these changes ends the plateau": lambda: every(
        map(stays, ("as it was", "sinusoids", "four times the bytes", "larger weights"))
    ),
    "Neither do a higher rate, a longer warm-up and no table of positions together": lambda: every(
        map(stays, ("higher rate", "no positions"))
    ),
    "A head that fades does.": lambda: leave("fades in 4"),
    "Where a weight takes 64 or 256 bytes to halve, no model leaves the plateau. "
    "Where it takes 16, both do": lambda: (
        stays("fades in 256") and stays("fades in 64") and leave("fades in 16")
    ),
    "The faster it fades, the lower both end": lambda: every(
        end(f"fades in {fast}", attention) < end(f"fades in {slow}", attention)
        for fast, slow in pairwise(HALF_LIVES)
        for attention in ATTENTION
    ),
    "The head that sees everything costs here as well": lambda: plateau.far_costs().mean > 0,
    "They end the plateau of softmax, and not that of linear attention": lambda: (
        leaves("rotation", "softmax") is not None and leaves("rotation", "linear") is None
    ),
    "It ends the plateau for both": lambda: leave("token shift"),
    "It leaves the plateau no later than a head that halves in four bytes, and ends lower than "
    "every attention here": lambda: (
        every(is_no_later(("token before", "none"), ("fades in 4", name)) for name in ATTENTION)
        and leaves("none", "none") is None
        and end("token before", "none") < plateau.best_attention()
    ),
    "The token shift alone, without attention, ends at": lambda: every(
        compare((("shift alone", "none"), ("token shift", name))).agreeing >= 3
        and end("shift alone", "none") < end("token shift", name)
        for name in ATTENTION
    ),
    "the smallest state ends lowest of those of a fixed size": lambda: every(
        state_size.end(Arm("elu + 1", "fades", 16)) < state_size.end(arm)
        and state_size.state(Arm("elu + 1", "fades", 16)) < state_size.state(arm)
        for arm in state_size.arms()
        if arm.recipe == "fades"
        and not arm.change
        and arm.weights not in ("softmax", "none")
        and arm != Arm("elu + 1", "fades", 16)
    ),
    "nats higher than elu + 1 with two heads. Power 2": lambda: (
        min(behind(name, "fades") for name in ("Taylor 4", "power 2", "softmax")) > 0
    ),
    "At 256 bytes, where no head fades, softmax ends": lambda: behind("softmax", "plain") < -0.05,
    "The map exp, with a state of the same size, ends": lambda: behind("exp", "plain") < 0,
    "Taylor 4 ends {glue:text}`plain_taylor_4` lower": lambda: behind("Taylor 4", "plain") < 0,
    "Power 2, with thirty times the state": lambda: (
        behind("power 2", "plain") > 0
        and 25 < state_size.state(Arm("power 2")) / state_size.state(Arm("elu + 1")) < 35
    ),
    "At the rate of the older run the Taylor sum is behind by": lambda: (
        gap("nothing changed").mean > 0.02
    ),
    "At half of that rate it is behind by": lambda: gap("half the learning rate").mean > 0,
    "At twice and at four times that rate the difference is smaller than its standard "
    "error": lambda: every(
        map(is_undecided, ("twice the learning rate", "four times the learning rate"))
    ),
    "The sharpest head of the Taylor sum weighs two fifths of its keys": lambda: (
        0.35 < sharpest("Taylor 2") < 0.45
    ),
    "it weighs less than half as many": lambda: sharpest("elu + 1") < 0.5 * sharpest("Taylor 2"),
    "Taylor 4 has sharper heads than Taylor 2 and ends lower": lambda: (
        sharpest("Taylor 4") < sharpest("Taylor 2") and added("more terms: Taylor 4").mean < 0
    ),
    "The square has no floor and ends higher": lambda: added("no floor: power 2").mean > 0,
    "At the two smallest sizes the pairs disagree": lambda: every(
        0 < sum(gap < 0 for gap in found) < len(found) for found in scaling.smallest(2)
    ),
    "From 0.5M parameters up linear attention ends lower": lambda: (
        scaling.behind(scaling.LARGE).mean < 0
    ),
    "The loss of linear attention falls faster with size": lambda: (
        scaling.difference().exponent > (scaling.difference().wide or 1)
    ),
    "At each of the three rates linear attention ends lower": lambda: (
        len(scaling_rates.behind()) == 3
        and every(found.mean < 0 for found in scaling_rates.behind())
    ),
    "Both attentions do best at the rate of the other sizes": lambda: every(
        scaling_rates.best_rate(name) == scaling_rates.USUAL for name in scaling.ATTENTIONS
    ),
    "The signs are opposite": lambda: every(
        linear < softmax for _, softmax, linear in map(race.in_the_same_time, LONG)
    ),
}
