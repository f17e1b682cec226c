"""Guarded sentences of the chapter on training."""

from itertools import pairwise, product

from ..figures.index import ngram_baseline, race
from ..figures.index.race_numbers import (
    CONVOLUTION,
    LINEAR_BEHIND,
    attentions,
    convolution_leads,
    counted_ratio,
    far_costs,
    over_seeds,
)
from ..figures.lib.pairs import compare
from ..figures.lib.records import have
from ..figures.training import (
    far_heads,
    long_race,
    loss_curves,
    plateau,
    race_tables,
    scaling,
    scaling_rates,
    state_size,
)
from ..figures.training.long_race_numbers import (
    at_twice,
    lead_meanwhile,
    softmax_leads,
    twice_behind,
    window_apart,
)  # fmt: skip
from ..figures.training.plateau import ATTENTION, HALF_LIVES, end, leave, leaves, stays
from ..figures.training.race_tables import NEAR
from ..figures.training.scaling_rates import rise
from ..figures.training.state_size import Arm
from ..figures.training.state_tables import RATES, gap, heads_of_elu, more_heads
from . import every, is_above, is_below, is_undecided

NEAR_FADES = state_size.NEAR._replace(recipe="fades")


VERDICTS = {
    "With a fading head we see no difference per update at this size: linear attention": lambda: (
        over_seeds(LINEAR_BEHIND).mean < 0 and is_undecided(over_seeds(LINEAR_BEHIND))
    ),
    "at 256 bytes, softmax ends {glue:text}`plain_softmax` nats lower after": lambda: is_above(
        state_size.behind(Arm("elu + 1"), Arm("softmax"))
    ),
    "Per minute linear attention is ahead of softmax at every context": lambda: every(
        is_below(race.in_the_same_time(context, "softmax").behind) for context in race.CONTEXTS
    ),
    "If both heads of a layer fade, the loss is": lambda: is_above(far_costs()),
    "all its runs come from another processor, so window and processor": lambda: (
        race_tables.window_shares_no_processor() and over_seeds(("softmax", "window")).mean > 0
    ),
    "From linear attention we see no difference ({glue:text}`window_behind_linear`)": lambda: (
        is_undecided(over_seeds(("window", "linear")))
    ),
    "nats, lower than any model of the race": lambda: (
        ngram_baseline.loss(5)
        < min(race.end(name, n) for name in race.by_model(1024) for n in race.CONTEXTS)
    ),
    "as long as those of linear attention, at every context": lambda: every(
        1.2 < found < 2.4 for found in race_tables.window_times()
    ),
    "It ends below every attention at every context": lambda: min(convolution_leads()) > 0.03,
    "in one of three seeds softmax ends lower": lambda: (
        [gap > 0 for gap in race.differences("linear", "softmax", race.MAIN)].count(True) == 1
    ),
    "ends lower than both at every context, and its updates are faster": lambda: (
        min(convolution_leads()) > 0.03
        and every(
            race.seconds(CONVOLUTION, n) < 0.8 * race.seconds("linear", n) for n in race.CONTEXTS
        )
    ),
    "The convolution's lead shrinks, from": lambda: (
        len(race.ends(CONVOLUTION, 1024)) == 3
        and every(
            race_tables.lead_after(early).mean > race_tables.lead_after(late).mean > 0
            for early, late in pairwise((512, 1024, 1536, 2048))
        )
    ),
    "and the best attention, near-sighted and linear, at": lambda: (
        race.end(CONVOLUTION, 1024) < race.end(NEAR, 1024) - 0.03
        and race.end(NEAR, 1024) == min(race.end(name, 1024) for name in attentions())
    ),
    "the far-sighted one raises the loss by": lambda: is_above(far_costs()),
    "pairs at longer contexts one processor trained both runs. There the head costs": lambda: (
        min(race_tables.far_head_on_one_processor().values()) > 0
        and not {256, 1024} & {n for n, *_ in race_tables.far_head_on_one_processor()}
    ),
    "were shorter, {glue:text}`short_runs` updates, and never were": lambda: (
        min(loss_curves.last_loss(run) for n in (1024, 16384) for run in loss_curves.nano_pair(n))
        > loss_curves.below_pairs()
    ),
    "At 2,048 bytes both left it. After {glue:text}`old_updates` updates softmax led": lambda: (
        every(loss_curves.leaves_pairs(run) is not None for run in loss_curves.nano_pair(2048))
        and loss_curves.behind(*loss_curves.nano_pair(2048)) > 0.1
    ),
    "The first runs of this book used it unchanged, with one seed": lambda: (
        have("loss_curves") == loss_curves.text_runs()
    ),
    "such a model is, in the mean over seeds, within 0.01 nats of one without": lambda: every(
        abs(end(remedy, name) - end("none", "none")) < 0.01
        for remedy in ("as it was", "no positions")
        for name in ATTENTION
    ),
    "None of these ends the plateau within {glue:text}`plateau_updates` updates": lambda: (
        every(
            map(stays, ("as it was", "sinusoids", "larger weights", "higher rate", "no positions"))
        )
        and stays("four times the bytes")
    ),
    "A head that fades by half in four bytes does:": lambda: leave("fades in 4"),
    "Softmax with rotary positions starts as evenly (exercise 2) and leaves": lambda: (
        leaves("rotation", "softmax") is not None
    ),
    "Where a weight takes 64 or 256 bytes to halve, neither model leaves within "
    "{glue:text}`plateau_updates` updates. Where it takes 16, both do": lambda: (
        stays("fades in 256") and stays("fades in 64") and leave("fades in 16")
    ),
    "The faster it fades, the lower both are by then": lambda: every(
        end(f"fades in {fast}", attention) < end(f"fades in {slow}", attention)
        for fast, slow in pairwise(HALF_LIVES)
        for attention in ATTENTION
    ),
    "The far-sighted head costs here as well": lambda: is_above(plateau.far_costs()),
    "They end softmax's plateau, but not linear attention's. By then softmax with them": lambda: (
        leaves("rotation", "softmax") is not None
        and leaves("rotation", "linear") is None
        and is_above(plateau.rotary_saves(4))
    ),
    "above one that fades by half in 1": lambda: is_below(plateau.rotary_saves(1)),
    "updates with a token shift softmax is ahead, but the shift alone": lambda: (
        is_above(plateau.apart("token shift"))
        and every(is_above(plateau.shift_costs(name)) for name in ATTENTION)
    ),
    "Both models leave, and softmax ends": lambda: (
        is_above(plateau.apart("token shift")) and plateau.apart("token shift").of() == "3 of 3"
    ),
    "But the shift alone, without attention, ends lower": lambda: (
        leave("token shift") and leaves("shift alone", "none") is not None
    ),
    "Attention raises that loss by": lambda: every(
        is_above(plateau.shift_costs(name)) for name in ATTENTION
    ),
    "*A convolution of two bytes* leaves without any attention": lambda: (
        leaves("token before", "none") is not None and leaves("none", "none") is None
    ),
    "At 1,024 bytes neither leaves the plateau within": lambda: stays("as it was"),
    "models with eight heads end lower than those with two": lambda: every(
        is_below(more_heads(weights)) for weights in ("softmax", "elu + 1")
    ),
    "Among states of a fixed size the smallest ends lowest": lambda: every(
        state_size.end(Arm("elu + 1", "fades", 16)) < state_size.end(arm)
        and state_size.state(Arm("elu + 1", "fades", 16)) < state_size.state(arm)
        for arm in state_size.arms()
        if arm.recipe == "fades"
        and not arm.change
        and arm.weights not in ("softmax", "none")
        and arm != Arm("elu + 1", "fades", 16)
    ),
    "elu + 1 ends lower in the mean than any two with a far-sighted one": lambda: every(
        state_size.end(NEAR_FADES) < state_size.end(arm)
        for arm in state_size.arms()
        if arm.recipe == "fades" and not arm.change and arm.heads == 2
        if arm != NEAR_FADES
    ),
    "make no clear difference": lambda: (
        is_undecided(heads_of_elu(1, 2)) and is_undecided(heads_of_elu(8, 2))
    ),
    "softmax and exp end lower, power 2 and Taylor 2 end higher": lambda: (
        is_above(state_size.behind(Arm("elu + 1"), Arm("softmax")))
        and is_above(state_size.behind(Arm("elu + 1"), Arm("exp")))
        and is_above(gap("power 2"))
        and is_above(gap("Taylor 2"))
    ),
    "Exp has two seeds, all others three": lambda: every(
        len(state_size.ends(arm)) == (2 if arm.weights == "exp" else 3)
        for arm in state_size.arms()
        if arm.recipe == "plain" and not arm.change
    ),
    "nats higher than elu + 1 at one of four learning rates; at the others chance could": lambda: (
        is_above(gap("Taylor 2")) and every(is_undecided(gap("Taylor 2", at)) for at in RATES[1:])
    ),
    "for each tenfold in size, so it may not grow": lambda: is_undecided(scaling.slope()),
    "At 2.7M the lead shrinks with training": lambda: (
        len(long_race.seeds_of(*long_race.PAIR)) == 2
        and every(
            is_above(long_race.lead(long_race.EARLY, seed))
            and all(is_undecided(long_race.lead(mark, seed)) for mark in marks[1:])
            for marks in [long_race.marks(long_race.of("linear"))]
            for seed in long_race.SEEDS
        )
    ),
    "it ends lower than linear attention. Linear attention does not copy": lambda: (
        len(long_race.seeds_of("softmax", whole=True)) == 2
        and len({long_race.onset(seed) for seed in long_race.SEEDS}) == 2
        and not is_below(long_race.lead(long_race.onset(0)[0], whole=True))
        and long_race.seeds_of(*long_race.PAIR, whole=True) == [*long_race.SEEDS]
        and every(is_below(long_race.last_lead(seed, whole=True)) for seed in long_race.SEEDS)
        and every(
            compare(long_race.last_gains("linear", distance, seed, whole=True)).mean < 0.1
            for distance in long_race.DISTANCES
            for seed in long_race.SEEDS
        )
    ),
    "Both seeds end alike": lambda: (
        abs(long_race.loss("softmax", whole=True) - long_race.loss("softmax", 1, whole=True)) < 0.01
        and every(
            max(found) - min(found) < 0.02
            for distance in (64, 256, 896)
            for found in [
                [
                    compare(long_race.last_gains("softmax", distance, seed, whole=True)).mean
                    for seed in long_race.SEEDS
                ]
            ]
        )
    ),
    "softmax is ahead beyond 255 bytes of the window; after 20 MB nowhere": lambda: (
        every(softmax_leads(seed) == [False, False, True, True] for seed in long_race.SEEDS)
        and not any(softmax_leads(whole=False))
    ),
    "At twice the rate linear attention does not copy either, and ends": lambda: (
        long_race.gains(at_twice(), 64)[long_race.ALL][0] < long_race.LITTLE
        and is_above(twice_behind("linear"))
    ),
    "nats, about softmax's lead. No other takes a tenth of the whole gain": lambda: every(
        far_heads.gain(one, 256).mean
        < 0.1 * whole
        < 0.9 * whole
        < far_heads.gain(rest[0], 256).mean
        and is_above(far_heads.rise(one))
        and 0.7 < far_heads.rise(one).mean / -long_race.last_lead(whole=True).mean < 1.4
        for one, *rest in [far_heads.single()]
        for whole in [far_heads.gain((), 256).mean]
    ),
    "With the other seed it is layer": lambda: every(
        far_heads.gain(one, 256, far_heads.OTHER).mean < 0.1 * whole < 0.8 * whole < least
        and is_above(far_heads.rise(one, trained=far_heads.OTHER))
        for one, *rest in [far_heads.single(far_heads.OTHER)]
        for least in [far_heads.gain(rest[0], 256, far_heads.OTHER).mean]
        for whole in [far_heads.gain((), 256, far_heads.OTHER).mean]
    ),
    "After all the text they end {glue:text}`long_all_far` higher": lambda: is_above(
        long_race.far_saves(whole=True)[-1]
    ),
    "more than after {glue:text}`long_read`": lambda: is_above(
        long_race.more_with_all("linear", 64)
    ),
    "lower from 0.5M parameters up, in": lambda: (
        is_below(scaling.behind(scaling.LARGE))
        and every(0 < sum(gap < 0 for gap in found) < len(found) for found in scaling.smallest(2))
    ),
    "At each of the three rates linear attention ends lower": lambda: every(
        found.mean < 0 for found in scaling_rates.behind()
    ),
    "two near-sighted heads end {glue:text}`long_far` nats higher": lambda: (
        len(seeds := long_race.seeds_of(*long_race.CONTROL)) == 2
        and all(is_above(long_race.far_saves(seed)[-1]) for seed in seeds)
    ),
    "after 5 MB they were, in the mean, {glue:text}`long_far_early` lower": lambda: every(
        long_race.far_saves(seed)[0].mean < 0 for seed in (0, 1)
    ),
    "neither copies. Softmax ends at {glue:text}`long_softmax`": lambda: every(
        compare(long_race.last_gains(model, 64)).mean < 0.1 * long_race.loss(model)
        for model in ("softmax", "linear")
    ),
    "so neither best rate is settled": lambda: every(
        is_undecided(rise(name, scaling_rates.TWICE)) for name in race.PAIR
    ),
    "Softmax in a window of 128 bytes does not copy either": lambda: (
        compare(long_race.last_gains("window", 64, whole=True)).mean < long_race.LITTLE
        and is_above(window_apart("softmax"))
        and is_undecided(window_apart("linear"))
    ),
    "linear attention is ahead while both have the constant rate": lambda: every(
        is_above(lead_meanwhile(update, seed))
        for update, seed in product(long_race.constant_marks(), long_race.SEEDS)
    ),
    "The mean loss of both is lowest at the rate used": lambda: every(
        rise(name, rate).mean > 0
        for name in race.PAIR
        for rate in scaling_rates.rates()
        if rate != scaling_rates.USUAL
    ),
    "In the race the signs are opposite": lambda: every(
        is_below(race.in_the_same_time(context).behind) for context in race.CONTEXTS
    ),
    "updates by then, fewer than its warm-up": lambda: (
        race_tables.updates_by_then(16384) < race_tables.config()["warmup_updates"]
    ),
    "In the race the two attentions end within about a hundredth of a nat of each other": lambda: (
        is_undecided(over_seeds(LINEAR_BEHIND))
        and abs(over_seeds(LINEAR_BEHIND).mean) + (over_seeds(LINEAR_BEHIND).half or 1) < 0.015
    ),
    "a window of 128 bytes ends as low (one seed)": lambda: is_undecided(window_apart("linear")),
    "Softmax in a window of 128 bytes ends as near": lambda: every(
        abs(over_seeds(("window", other)).mean) < 0.01 for other in race.PAIR
    ),
    "with as many operations an update; in our code it takes": lambda: every(
        abs(counted_ratio(n, "window", "linear") - 1) < 0.05 for n in race.CONTEXTS
    ),
    "In the race a far-sighted head costs": lambda: is_above(far_costs()),
    "the fastest rate tried is best, so the optimum may be faster still": lambda: every(
        end("fades in 1", "linear") < end(f"fades in {n}", "linear") for n in HALF_LIVES[1:]
    ),
}
