"""Tables and numbers of the runs with smaller and larger states."""

from __future__ import annotations

from ..lib.format import NOT_MEASURED, in_words, listed, size
from ..lib.pairs import Pairs
from ..lib.seeds import mean_over_seeds
from ..lib.tables import Missing, Table
from .state_size import EXPERIMENT, NEAR, Arm, arms, attention, behind, end, ends, state, updates

RATES = ("", "half the rate", "twice the rate", "four times the rate")  # changes of both


def table(recipe: str = "plain") -> Table | Missing:
    """Final loss of each arm, its state, and the effective tokens of its far-sighted heads.

    Behind: the loss minus that of elu + 1 with two heads, over seeds that both have.
    """
    usual, cells = Arm("elu + 1", recipe), []
    for arm in sorted(arms(), key=_place):
        if arm.recipe != recipe or (arm.change and arm != NEAR._replace(recipe=recipe)):
            continue
        texts = in_words(
            behind=lambda arm=arm: "" if arm == usual else behind(arm, usual).signed(),
            tokens=lambda arm=arm: f"{attention(arm).tokens:.0f}",
            sharpest=lambda arm=arm: f"{attention(arm).sharpest:.0f}",
        )
        shown = ["–" if value == NOT_MEASURED else value for value in texts.values()]
        named = f"{arm.weights}, {arm.change}" if arm.change else arm.weights
        loss = mean_over_seeds(ends(arm))
        cells.append([named, str(arm.heads), size(state(arm)), loss, *shown])
    titles = ["weights", "heads", "state", "loss", "behind", "tokens weighed", "by the sharpest"]
    return Table(titles, cells, wrap=True) if cells else Missing(EXPERIMENT)


def _place(arm: Arm) -> tuple:
    order = ["softmax", "elu + 1", "exp", "relu", "softplus", "power 2"]
    position = order.index(arm.weights) if arm.weights in order else len(order)
    return arm.weights == "none", position, arm.weights, arm.change, arm.heads


def gap(weights: str, change: str = "") -> Pairs:
    """Nats by which weights end behind elu + 1, both with the change. Raises NotMeasuredError."""
    return behind(Arm(weights, change=change), Arm("elu + 1", change=change))


def more_heads(weights: str) -> Pairs:
    """Loss of eight heads minus that of two, if half of them decay. Raises NotMeasuredError."""
    return behind(Arm(weights, "fades", 8), Arm(weights, "fades"))


def heads_of_elu(first: int, other: int) -> Pairs:
    """Loss of elu + 1 with some heads minus that with others, if none decays."""
    return behind(Arm("elu + 1", heads=first), Arm("elu + 1", heads=other))


def numbers() -> dict[str, str]:
    """Numbers for the chapter on training: states and maps."""
    taylor, linear = Arm("Taylor 2"), Arm("elu + 1")
    plain = [Arm("elu + 1", heads=heads) for heads in (1, 2, 8)]

    return in_words(
        smallest_state=lambda: size(state(Arm("elu + 1", "fades", 16))),
        linear_state=lambda: size(state(linear)),
        taylor_state=lambda: size(state(taylor)),
        taylor_4_state=lambda: size(state(Arm("Taylor 4"))),
        power_state=lambda: size(state(Arm("power 2"))),
        more_heads_softmax=lambda: more_heads("softmax").spread(),
        more_heads_linear=lambda: more_heads("elu + 1").spread(),
        plain_ends=lambda: listed(f"{end(arm):.3f}" for arm in plain),
        plain_states=lambda: f"{size(state(plain[0]))} to {size(state(plain[-1]))}",
        plain_updates=lambda: f"{updates(linear):,}",
        plain_softmax=lambda: behind(linear, Arm("softmax")).spread(),
        gap_usual=lambda: gap("Taylor 2").spread(),
    )
