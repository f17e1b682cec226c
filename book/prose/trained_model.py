"""Guarded sentences of the chapter on a trained model."""

from itertools import pairwise

from ..figures.lib.records import Record
from ..figures.trained_model import (
    converted_speed,
    distances,
    far_states,
    far_weights,
    few_states,
    look_inside,
    past_limit,
    whole_model,
)
from ..figures.trained_model.head_grid import alone, alone_by_rank, most_alone
from ..figures.trained_model.measured import (
    FAR,
    HEADS,
    HERE,
    NEAR,
    Mean,
    by_novel,
    change,
    measured,
    more_recall,
    ranking,
    recall,
    run_of,
    softmax_of,
)
from ..figures.trained_model.remove_exponential import (
    FEW,
    SHARE,
    SOME,
    confined,
    everywhere,
    first_alone,
    halves_share,
    kept_recall,
    key_heads,
    layer_gain,
    least_layer_gain,
    lost_gain,
    missing,
    on_training,
    random_orders,
    ranked_for,
    shared_heads,
)
from ..figures.trained_model.windows import measured_windows, of_window
from . import every, is_above, is_below, is_undecided


def gain(run: Record) -> float:
    return measured(run, "gain").mean


def rise(run: Record) -> float:
    return measured(run, "cut").mean


def keeps_all(run: Record) -> bool:
    """Whether the 95% interval of a loss of gain includes zero."""
    return is_undecided(missing(run))


def recalls_more(run: Record) -> bool:
    """Whether the 95% interval of what a run recalls above softmax is above zero."""
    return is_above(more_recall(run, softmax_of(run)))


def most_alone_layer() -> bool:
    """Whether the two heads that cost most alone are in layer 18."""
    falls = sorted(alone_by_rank().items(), key=lambda one: -one[1].mean)
    return every(ranking()[rank].layer == 18 for rank, _ in falls[:2])


def far_adds(column: str, distance: int) -> Mean:
    return whole_model.brings(whole_model.marks()[-1], column, "passages", distance)


def longer(arm: str) -> Mean:
    """Change of the loss after 4,096 tokens if states are fitted to longer texts."""
    return far_states.changed("loss", (far_states.LONG, arm), (far_states.SHORT, arm), FAR)


def unrotated(run: str) -> Mean:
    """The same if the states of a run read q and k without rotary positions."""
    arms = far_states.UNROTATED, far_states.ROTARY
    return far_states.changed("loss", *((run, arm) for arm in arms), FAR)


VERDICTS = {
    "With 24 nearly all of it stays, and without eight of them most is gone": lambda: (
        (FEW, SOME, len(ranking()), HEADS) == (8, 24, 270, 270)
        and keeps_all(first_alone(SOME))
        and kept_recall(first_alone(SOME)) > 1
        and -0.04 < change(first_alone(SOME), "right").mean < 0
        and kept_recall(confined(FEW)) < 0.2
    ),
    "Prose suffers too, but less": lambda: (
        0.05 < rise(everywhere()) / gain(confined(0)) < 0.15  # nats, of both
        and rise(confined(FEW)) < 0.1
    ),
    "the gain is {glue:text}`some_gain`, as with all 270": lambda: keeps_all(first_alone(SOME)),
    "Heads in random order do not do this": lambda: (
        every(lost_gain(run) < 0.1 for run in random_orders("first", FEW))
        and every(gain(run) < 0 for run in random_orders("but", SOME))
        and len(random_orders("first", FEW)) == len(random_orders("but", SOME))
    ),
    "A model that cannot look back has a gain below zero": lambda: (
        gain(everywhere()) < -5 * measured(everywhere(), "gain").error
    ),
    "so they take {glue:text}`few_lost` of the recall": lambda: (
        0 < recall(confined(FEW)).mean < 0.3 * recall(confined(0)).mean
    ),
    "That is no better copying: the copy's own loss changes by": lambda: (
        is_undecided(change(first_alone(SOME), "second"))
        and is_above(more_recall(first_alone(SOME), confined(0)))
    ),
    "nats, with the first alone by {glue:text}`one_token_rise`": lambda: (
        rise(everywhere("window-64-1")) < 0.3 < 1 < rise(everywhere("window-64-0"))
        and abs(rise(everywhere("window-64-1")) - rise(everywhere())) < 0.03
    ),
    "Without the first tokens a wider window helps only in part": lambda: every(
        of_window(n, 0, "cut").mean > 3 * of_window(n, 4, "cut").mean for n in measured_windows()
    ),
    "Layer 18 has the two heads that cost most alone": most_alone_layer,
    "takes {glue:text}`top_missing` nats of the gain, and 18.7": lambda: (
        [ranking()[n].name for n in (0, 2)] == ["18.6", "18.7"]
        and missing(confined(1)).mean > alone(2).mean > 2 * most_alone()
    ),
    "Any other layer leaves at least": lambda: (
        layer_gain(18).mean < gain(confined(1)) < least_layer_gain(but=18)
    ),
    "ranking heads by their attention beyond the window works worse than the gradient": lambda: (
        every(gain(first_alone(n, "mass")) < gain(first_alone(n)) - 1 for n in (FEW, SOME))
    ),
    "with those for passages; by chance": lambda: FEW / 2 < shared_heads() < FEW,
    "The first 24 serve both": lambda: (
        ranked_for("lists", "passages", "but", SOME).mean > 0.75 * gain(confined(0))
        and ranked_for("passages", "lists", "but", SOME).mean
        > 0.75 * gain(confined(0, text="lists"))
    ),
    "where nothing was chosen, the gain is": lambda: (
        on_training("but", f"gradient-{SOME}").mean > 0.95 * on_training("none").mean
        and 0.3 < on_training("but", f"gradient-{FEW}").mean / on_training("none").mean < 0.8
        and on_training("first", f"gradient-{FEW}").mean < 0.1 * on_training("none").mean
    ),
    "After 4,096 tokens others are needed too: without one that is idle after 256": lambda: (
        -distances.far_recall("but-far").mean > 0.5 * recall(softmax_of(distances.both())).mean
        and abs(distances.takes("but-far", HERE).mean) < 0.05
    ),
    "After 4,096 that raises the recall by {glue:text}`near_adds_4096`": lambda: (
        ranking()[0].name == "18.6"
        and distances.takes("but-here", HERE).mean > 0.5
        and is_above(distances.far_recall("but-here"))
    ),
    "and confining head 7.7 by {glue:text}`second_adds_4096`": lambda: (
        ranking()[1].name == ranking(distance=FAR)[-1].name == "7.7"
        and recalls_more(distances.last())
    ),
    "<head-grid:text=far>` stands first": lambda: (
        ranking(distance=FAR)[0].name == "18.8" and distances.place() > HEADS / 2
    ),
    "nats after 4,096 tokens and {glue:text}`far_takes_256` after 256": lambda: (
        distances.far_recall("but-far").mean < -1
        and abs(distances.takes("but-far", HERE).mean) < 0.05
    ),
    "Head 18.8 follows the distance, not the position": lambda: (
        abs(distances.takes("but-far", HERE, "late").mean) < 0.1
    ),
    "more than earlier in the text": lambda: (
        distances.takes("but-here", HERE, "late").mean
        > 1.3 * distances.takes("but-here", HERE).mean
    ),
    "Forty heads, from both rankings in turn, bring back": lambda: (
        distances.way("but", distances.MORE, HERE, distances.AT_BOTH) > 0.95
        and recalls_more(distances.both())
        and is_below(change(distances.both(), "second"))
    ),
    "The first 24 ranked at 4,096 bring back": lambda: (
        distances.way("but", SOME, FAR) < 0.3 < 0.9 < distances.way("but", SOME, 1024)
        and distances.way("but", SOME, FAR, distances.AT_FAR) > 0.5
        and distances.way("but", SOME, 2048, distances.AT_FAR) < 0.3
        and distances.way("but", SOME, HERE, distances.AT_FAR) < 0.3
    ),
    "of the gain of passages, and most of that of names": lambda: (
        gain(confined(FEW, "mass", "lists")) < 0.1 * gain(confined(0, text="lists"))
        and 0.9
        < gain(first_alone(SOME, "mass", "lists")) / distances.gain("here", HERE, "lists").mean
        < 1
    ),
    "the novel before a token costs it {glue:text}`past_softmax` nats": lambda: every(
        is_above(past_limit.cost(reader, past_limit.limit() + 1))
        for reader in ("softmax", "confined")
    ),
    "and the novel costs {glue:text}`past_adjacent`": lambda: every(
        abs(past_limit.cost("confined-adjacent", first).mean)
        < 0.05 * past_limit.cost("confined", past_limit.limit() + 1).mean
        for first in past_limit.parts("confined-adjacent")
    ),
    "and more with each doubling; if the states halve": lambda: every(
        before.mean < after.mean
        for costs in [
            [past_limit.cost("states-adjacent", n) for n in past_limit.parts("states-adjacent")]
        ]
        for before, after in pairwise(costs)
    ),
    "a token's weight every 1,024 tokens, {glue:text}`past_fading`": lambda: every(
        past_limit.cost("states-fading", first).mean
        < 0.2 * past_limit.cost("states-adjacent", first).mean
        for first in past_limit.parts("states-fading")
    ),
    "24 alone keep the gain, eight alone do not. After 4,096": lambda: (
        keeps_all(first_alone(SOME))
        and distances.way("but", SOME, FAR) < 0.3
        and distances.way("but", SOME, FAR, distances.AT_FAR) > 0.5
    ),
    "a passage that returns is guessed about as badly as the first time": lambda: every(
        abs(look_inside.right("first", FEW, page) - look_inside.right("once", 0, page)) < 5
        and look_inside.right("first", FEW, page) < 0.6 * look_inside.right("none", 0, page)
        for page in range(len(look_inside.stored()))
    ),
    "Two kinds of heads show a diagonal": lambda: all(
        look_inside.looked(run, 7, 7, 0) > 0.25 and look_inside.looked(run, 18, 6, 1) > 0.5
        for run in look_inside.stored()
    ),
    "but by the gradient confining it takes": lambda: (
        look_inside.copied(17, 4, 1) > 0.3 and look_inside.head(17, 4).brings.mean < 0.01
    ),
    "all positions past the window are the same work": lambda: every(
        converted_speed.apart(way) < 1.1 for way in ("window", "window and state")
    ),
    "The two halves of these texts share": lambda: (
        halves_share(FEW) >= FEW - 1 and halves_share(SOME) > SOME / 2
    ),
    "With states the gain is {glue:text}`taught_adds` nats higher after this": lambda: every(
        is_above(whole_model.brings(tokens, "gain")) for tokens in whole_model.marks()
    ),
    "With 4,096 tokens between, states change the gain by": lambda: (
        is_below(far_adds("gain", 4096)) and is_above(far_adds("gain", 1024))
    ),
    "There the cause is the length of the texts that they were fitted to": lambda: (
        is_above(far_states.adds("loss", (far_states.SHORT, far_states.ROTARY), FAR))
        and is_below(longer(far_states.ROTARY))
    ),
    "and to a lesser part rotary positions": lambda: (
        longer(far_states.ROTARY).mean < unrotated(far_states.SHORT).mean < 0
    ),
    "Reading q and k without rotary positions helps in both cases": lambda: every(
        is_below(unrotated(run)) for run in far_states.RUNS
    ),
    "they no longer raise the loss after 4,096": lambda: (
        far_states.adds("loss", (far_states.LONG, far_states.ROTARY), FAR).mean < 0.03
    ),
    "After 4,096 tokens only unrotated states do, trained on long texts": lambda: (
        is_above(far_states.trained("gain", FAR)) and is_below(far_adds("gain", FAR))
    ),
    "Both recall little": lambda: (
        far_states.trained("recall", HERE).mean < recall(confined(0)).mean / 20
    ),
    "There they take {glue:text}`long_far_loss` off the loss": lambda: is_below(
        far_states.trained("loss", FAR)
    ),
    "states that are only fitted add {glue:text}`fit_recall`": lambda: (
        is_above(far_states.trained("recall", HERE)) and is_above(far_states.trained("recall", FAR))
    ),
    "and other gains' intervals widen as much": lambda: every(
        by_novel(run, "gain").half > 2 * measured(run, "gain").half
        for run in (confined(0), confined(FEW), everywhere(), first_alone(SOME))
    ),
    "may not look back (eight random heads: at most": lambda: every(
        measured(run, "cut").mean < measured(confined(FEW), "cut").mean / 2
        for run in random_orders("first", FEW)
    ),
    "over a hundred times as many": lambda: whole_model.marks()[-1] < 40e6 / 100,
    "a briefly trained state brings back almost none of the gain": lambda: few_states.way() < 0.03,
    "States in the first 24 heads add more": lambda: (
        few_states.brings("gain").mean < few_states.brings("gain", heads=24).mean
        and few_states.gain(few_states.STATE, heads=24).mean < 0
    ),
    "random codes in as many numbers answer": lambda: (
        few_states.by_the_law() > 10 * few_states.way()
    ),
    "The most is {glue:text}`few_kinds_most`, by a delta rule": lambda: (
        len(few_states.kinds()) >= 4
        and max(few_states.kinds(), key=lambda arm: few_states.arm_brings(arm, "gain").mean)
        == few_states.DELTA
        and few_states.arm_brings(few_states.DELTA, "gain").mean < 0.1
    ),
    "Without erasing it adds": lambda: (
        few_states.arm_brings(few_states.ADDS, "gain").mean
        < few_states.arm_brings(few_states.DELTA, "gain").mean - 0.03
        and few_states.arm_loss(few_states.ADDS, few_states.FAR).mean
        > few_states.arm_loss(few_states.DELTA, few_states.FAR).mean + 1
    ),
    "With erasing it is {glue:text}`few_kinds_far`, as without states": lambda: (
        abs(
            few_states.arm_loss(few_states.DELTA, few_states.FAR).mean
            - few_states.arm_loss(few_states.WINDOW, few_states.FAR).mean
        )
        < 0.05
    ),
    "keep the same shares of recall to three points": lambda: every(
        abs(far_weights.recall(name).mean / recall(first_alone(SOME)).mean - far_weights.way(name))
        < 0.03
        for name in ("rank-16", "polynomial-4", "softened-2")
    ),
    "Weights of rank 32 (of 64), fitted to each text, keep most of the gain": lambda: (
        far_weights.way("rank-32") > 0.7
    ),
    "Low Taylor sums and random features keep almost none": lambda: every(
        far_weights.gain(f"{name}-passage").mean < 0
        for name in ("taylor-2", "taylor-8", "random-256", "random-4096")
    ),
    "with equal weights nothing": lambda: far_weights.way("softened-even") < 0,
    "The Taylor sum about zero has the same features": lambda: every(
        far_weights.features(f"taylor-{n}-passage") == far_weights.features(f"polynomial-{n}")
        for n in (2, 4)
    ),
    "The loss of prose rises more in longer texts": lambda: every(
        measured(run_of(*case, distance=FAR), "cut").mean > measured(run_of(*case), "cut").mean
        for case in (("all", NEAR), ("first", f"gradient-{FEW}"))
    ),
    "up to degree 16 its gain stays below zero": lambda: every(
        far_weights.gain(f"taylor-{n}-passage").mean < 0 for n in (2, 4, 8, 16)
    ),
    "The first 24 heads are 9% of all": lambda: round(100 * SOME / len(ranking())) == 9,
    "Why do they need a larger share of the caches": lambda: (
        key_heads(SOME) / (HEADS / SHARE) > SOME / HEADS
    ),
    "24 alone keep the gain, eight alone do not": lambda: (
        keeps_all(first_alone(SOME)) and not keeps_all(first_alone(FEW))
    ),
    "24 heads found so keep all of the gain": lambda: keeps_all(first_alone(SOME)),
    "24 heads found so keep less than half of the gain of passages": lambda: (
        gain(first_alone(SOME, "mass")) < gain(confined(0)) / 2
        and gain(first_alone(SOME, "mass", "lists")) > 0.8 * gain(confined(0, text="lists"))
    ),
    "In the trained model little of it is": lambda: (
        abs(recall(everywhere()).mean) < 0.05 * recall(confined(0)).mean
    ),
    "Only these caches of keys and values grow": lambda: (
        converted_speed.tick("window", 8192)["state"] == converted_speed.tick("window")["state"]
    ),
}
