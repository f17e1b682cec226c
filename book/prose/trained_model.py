"""Guarded sentences of the chapter on a trained model."""

from ..figures.lib.records import Record
from ..figures.trained_model import look_inside
from ..figures.trained_model.head_grid import alone, alone_by_rank, most_alone, sum_alone
from ..figures.trained_model.measured import HEADS, measured, ranking
from ..figures.trained_model.remove_exponential import (
    FEW,
    KEY_HEADS,
    SOME,
    confined,
    everywhere,
    first_alone,
    key_heads,
    layer_gain,
    least_layer_gain,
    lost_recall,
    missing,
    shared_heads,
)
from ..figures.trained_model.windows import measured_windows, of_window
from . import every


def gain(run: Record) -> float:
    return measured(run, "gain").mean


def rise(run: Record) -> float:
    return measured(run, "rise").mean


def layers() -> list[int]:
    """Those of the first heads."""
    return sorted({head.layer for head in ranking()[:FEW]})


VERDICTS = {
    "# Eight heads of 270": lambda: FEW == 8 and len(ranking()) == HEADS == 270,
    "The loss on prose rises by": lambda: rise(everywhere()) < 0.2 and rise(confined(FEW)) < 0.06,
    "What breaks is recall, and it hangs on a few heads": lambda: lost_recall(confined(FEW)) > 0.8,
    "as with all 270": lambda: abs(missing(first_alone(SOME)).mean) < 0.1,
    "Other heads do not have this effect": lambda: (
        lost_recall(confined(FEW, "random-0")) < 0.1 and lost_recall(confined(FEW, "mass")) < 0.3
    ),
    "A model that cannot look back has a gain below zero": lambda: (
        gain(everywhere()) < -5 * measured(everywhere(), "gain").error
    ),
    "A window costs little if the first tokens stay in sight": lambda: (
        rise(everywhere()) < 0.2 < 1 < rise(everywhere("window-64-0"))
    ),
    "A wider window mends it only in part": lambda: every(
        of_window(n, 0, "rise").mean > 3 * of_window(n, 4, "rise").mean for n in measured_windows()
    ),
    "no window that is shorter than the distance brings any": lambda: every(
        of_window(n, 4, "gain").mean < 0 for n in measured_windows()
    ),
    "is far worse: the loss rises by": lambda: rise(everywhere("linear")) > 3,
    "The heads that bring recall lie apart": lambda: len(layers()) >= 6,
    "One head stands out. Head 18.6 alone": lambda: (
        ranking()[0].name == "18.6"
        and ranking()[0].slope.mean < 2 * ranking()[1].slope.mean
        and missing(confined(1)).mean > 0.5
    ),
    "All of layer 18 takes more": lambda: (
        gain(confined(0)) - least_layer_gain(but=18) < 0.3
        and layer_gain(18).mean < gain(confined(1))
    ),
    "Alone, most of the others are hardly missed. Head 18.7 takes": lambda: (
        ranking()[2].name == "18.7"
        and alone(2).mean > 2 * most_alone()
        and sum(one.mean < 0.05 for one in alone_by_rank().values()) > len(alone_by_rank()) / 2
    ),
    "all but 24 heads can be confined, and no gain is lost": lambda: (
        SOME == 24 and abs(missing(first_alone(SOME)).mean) < 0.1
    ),
    "So heads stand in for each other": lambda: sum_alone() < 0.8 * missing(confined(FEW)).mean,
    "Without a few such heads the guesses fall apart": lambda: (
        look_inside.right("first", FEW) < look_inside.right("none") / 2
    ),
    "about as many as the first time": lambda: (
        abs(look_inside.right("first", FEW) - look_inside.right("once")) < 5
    ),
    "Two kinds of heads show a diagonal": lambda: all(
        look_inside.looked(run, 7, 7, 0) > 0.25 and look_inside.looked(run, 18, 6, 1) > 0.5
        for run in look_inside.stored()
    ),
    "a ranking by attention mass is a poor one": lambda: every(
        gain(first_alone(n, "mass")) < gain(first_alone(n)) - 1 for n in (FEW, SOME)
    ),
    "are the same as for passages": lambda: FEW / 2 < shared_heads() < FEW,
    "For head 18.6 the gradient says": lambda: (
        abs(ranking()[0].slope.mean + missing(confined(1)).mean) < 0.15
    ),
    "Eight of 270 is 3%": lambda: round(100 * FEW / len(ranking())) == 3,
    "The first 24 heads are 9% of all": lambda: round(100 * SOME / len(ranking())) == 9,
    "Why do they need a larger share of the caches": lambda: (
        key_heads(SOME) / KEY_HEADS > SOME / HEADS
    ),
    "confine eight of 270, and most of it is gone": lambda: lost_recall(confined(FEW)) > 0.5,
    "Their attention mass does not": lambda: lost_recall(confined(FEW, "mass")) < 0.5,
    "its gain is at the floor": lambda: gain(everywhere()) < 0,
}
