"""Tables and numbers of the runs with smaller and larger states."""

from __future__ import annotations

from ..lib.format import NOT_MEASURED, in_words, listed, size
from ..lib.pairs import Pairs, compare, differences
from ..lib.seeds import mean_over_seeds
from ..lib.tables import Missing, Table
from .state_size import EXPERIMENT, NEAR, Arm, arms, attention, behind, end, ends, state, updates

# The suspects: the change, for the layer in question and for the one it is compared with.
UNCHANGED = "nothing changed"
SUSPECTS = {
    UNCHANGED: ("Taylor 2", "", ""),
    "no rounding: float32 throughout": ("Taylor 2", "float32", "float32"),
    "half the learning rate": ("Taylor 2", "half the rate", "half the rate"),
    "twice the learning rate": ("Taylor 2", "twice the rate", "twice the rate"),
    "four times the learning rate": ("Taylor 2", "four times the rate", "four times the rate"),
    "scores eight times as large": ("Taylor 2", "larger scores", ""),
    "no least weight: power 2": ("power 2", "", ""),
    "more terms: Taylor 4": ("Taylor 4", "", ""),
    "all terms: softmax": ("softmax", "", ""),
    "one head fades, of both": ("Taylor 2", "a head fades", "a head fades"),
}


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
            tokens=lambda arm=arm: f"{attention(arm, 'end').tokens:.0f}",
            sharpest=lambda arm=arm: f"{attention(arm, 'end').sharpest:.0f}",
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


def pair(suspect: str) -> tuple[Arm, Arm]:
    """The suspect's arm, and the elu + 1 that it is compared with."""
    weights, change, others = SUSPECTS[suspect]
    return Arm(weights, change=change), Arm("elu + 1", change=others)


def gap(suspect: str) -> Pairs:
    """Nats by which the suspect's arm ends behind elu + 1. Raises NotMeasuredError."""
    return behind(*pair(suspect))


def added(suspect: str) -> Pairs:
    """Change of the gap by a suspect, over the seeds of all four arms. Raises NotMeasuredError."""
    by_arm = arms()
    seeds = [{run["config"]["seed"] for run in by_arm.get(arm, ())}
             for arm in (*pair(UNCHANGED), *pair(suspect))]  # fmt: skip
    shared = set.intersection(*seeds)
    before, after = (
        differences(*([run for run in by_arm[arm] if run["config"]["seed"] in shared]
                      for arm in pair(name)))
        for name in (UNCHANGED, suspect)
    ) if shared else ([], [])  # fmt: skip
    return compare([late - early for early, late in zip(before, after, strict=True)])


def causes() -> Table | Missing:
    """The suspects that have been measured, one changed at a time."""
    cells = []
    for suspect in SUSPECTS:
        arm, other = pair(suspect)
        texts = in_words(
            ends=lambda arm=arm: mean_over_seeds(ends(arm)),
            other=lambda other=other: mean_over_seeds(ends(other)),
            gap=lambda suspect=suspect: f"{gap(suspect).signed()} ({gap(suspect).of()})",
            added=lambda suspect=suspect: added(suspect).signed(),
            tokens=lambda arm=arm: f"{attention(arm, 'end').tokens:.0f}",
        )
        if suspect == UNCHANGED:
            texts["added"] = ""
        if NOT_MEASURED not in (texts["ends"], texts["other"]):
            cells.append([suspect, *texts.values()])
    titles = ["changed", "it ends at", "elu + 1 ends at", "behind", "added", "tokens"]
    return Table(titles, cells, wrap=True) if cells else Missing(EXPERIMENT)


def more_heads(weights: str) -> Pairs:
    """Loss of eight heads minus that of two, if half of them decay. Raises NotMeasuredError."""
    return behind(Arm(weights, "fades", 8), Arm(weights, "fades"))


def lower(suspect: str) -> Pairs:
    """Nats by which a suspect's arm ends below elu + 1."""
    return gap(suspect)._replace(mean=-gap(suspect).mean)


def heads_of_elu(first: int, other: int) -> Pairs:
    """Loss of elu + 1 with some heads minus that with others, if none decays."""
    return behind(Arm("elu + 1", heads=first), Arm("elu + 1", heads=other))


def numbers() -> dict[str, str]:
    """Numbers for the chapter on training: states and maps."""
    taylor, linear = Arm("Taylor 2"), Arm("elu + 1")
    larger, _ = pair("scores eight times as large")
    plain = [Arm("elu + 1", heads=heads) for heads in (1, 2, 8)]

    def range_of(*ends: float) -> str:
        return f"{min(ends):.2f} to {max(ends):.2f}"

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
        plain_softmax=lambda: gap("all terms: softmax").spread(),
        gap_usual=lambda: gap(UNCHANGED).spread(),
        gap_shrinks=lambda: added("half the learning rate").spread(),
        half_ends=lambda: range_of(
            *(loss for arm in pair("half the learning rate") for loss in ends(arm))
        ),
        gap_twice=lambda: gap("twice the learning rate").signed(),
        gap_four_times=lambda: gap("four times the learning rate").signed(),
        ends_at_four_times=lambda: listed(
            f"{loss:.2f}" for loss in sorted(ends(pair("four times the learning rate")[0]))
        ),
        alike_tokens=lambda: f"{attention(taylor, 'start').alike:.0f}",
        tokens_start=lambda: f"{attention(taylor, 'start').tokens:.0f}",
        tokens_taylor=lambda: f"{attention(taylor, 'end').tokens:.0f}",
        sharpest_taylor=lambda: f"{attention(taylor, 'end').sharpest:.0f}",
        tokens_linear=lambda: f"{attention(linear, 'end').tokens:.0f}",
        sharpest_linear=lambda: f"{attention(linear, 'end').sharpest:.0f}",
        tokens_larger=lambda: f"{attention(larger, 'end').tokens:.0f}",
        larger_behind=lambda: behind(larger, taylor).spread(),
    )
