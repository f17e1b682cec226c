"""Tables and numbers of the runs with smaller and larger states."""

from __future__ import annotations

from ..lib.format import NOT_MEASURED, in_words, listed, size
from ..lib.pairs import Pairs, compare, differences
from ..lib.seeds import mean_and_spread
from ..lib.tables import Missing, Table
from .state_size import EXPERIMENT, Arm, arms, attention, behind, ends, seeds, state

# The suspects: what was changed, of what weighs the past, and of what it is compared with.
UNCHANGED = "nothing changed"
SUSPECTS = {
    UNCHANGED: ("Taylor 2", "", ""),
    "no rounding: float32 throughout": ("Taylor 2", "float32", "float32"),
    "half the learning rate": ("Taylor 2", "half the rate", "half the rate"),
    "twice the learning rate": ("Taylor 2", "twice the rate", "twice the rate"),
    "four times the learning rate": ("Taylor 2", "four times the rate", "four times the rate"),
    "scores eight times as large": ("Taylor 2", "larger scores", ""),
    "no floor: power 2": ("power 2", "", ""),
    "more terms: Taylor 4": ("Taylor 4", "", ""),
    "all terms: softmax": ("softmax", "", ""),
    "one head fades, of both": ("Taylor 2", "a head fades", "a head fades"),
}


def table(recipe: str = "plain") -> Table | Missing:
    """Where each ends, its state, and how many tokens its far-sighted heads weigh."""
    cells = []
    for arm in sorted(arms(), key=lambda arm: _place(arm)):
        if arm.recipe != recipe or arm.change:
            continue
        told = in_words(
            start=lambda arm=arm: f"{attention(arm, 'start').tokens:.0f}",
            end=lambda arm=arm: f"{attention(arm, 'end').tokens:.0f}",
            sharpest=lambda arm=arm: f"{attention(arm, 'end').sharpest:.0f}",
        )
        shown = ["–" if value == NOT_MEASURED else value for value in told.values()]
        cells.append(
            [
                arm.weights,
                str(arm.heads),
                size(state(arm)),
                mean_and_spread(ends(arm)),
                *shown,
            ]
        )
    titles = [
        "weights",
        "heads",
        "state",
        "loss",
        "tokens weighed at first",
        "in the end",
        "by the sharpest head",
    ]
    return Table(titles, cells) if cells else Missing(EXPERIMENT)


def _place(arm: Arm) -> tuple:
    order = ["softmax", "elu + 1", "exp", "relu", "softplus", "power 2"]
    known = order.index(arm.weights) if arm.weights in order else len(order)
    return arm.weights == "none", known, arm.weights, arm.heads


def pair(suspect: str) -> tuple[Arm, Arm]:
    """The suspect's arm, and the elu + 1 that it is compared with."""
    weights, change, others = SUSPECTS[suspect]
    return Arm(weights, change=change), Arm("elu + 1", change=others)


def gap(suspect: str) -> Pairs:
    """How far behind elu + 1 the suspect's arm ends. Raises NotMeasuredError."""
    return behind(*pair(suspect))


def added(suspect: str) -> Pairs:
    """Change of the gap by a suspect, over the seeds of all four arms. Raises NotMeasuredError."""
    found = arms()
    seeds = [{run["config"]["seed"] for run in found.get(arm, ())}
             for arm in (*pair(UNCHANGED), *pair(suspect))]  # fmt: skip
    shared = set.intersection(*seeds)
    before, after = (
        differences(*([run for run in found[arm] if run["config"]["seed"] in shared]
                      for arm in pair(name)))
        for name in (UNCHANGED, suspect)
    ) if shared else ([], [])  # fmt: skip
    return compare([late - early for early, late in zip(before, after, strict=True)])


def causes() -> Table | Missing:
    """The suspects that have been measured, one changed at a time."""
    cells = []
    for suspect in SUSPECTS:
        arm, other = pair(suspect)
        told = in_words(
            ends=lambda arm=arm: mean_and_spread(ends(arm)),
            other=lambda other=other: mean_and_spread(ends(other)),
            gap=lambda suspect=suspect: f"{gap(suspect).signed()} ({gap(suspect).of()})",
            added=lambda suspect=suspect: added(suspect).signed(),
            tokens=lambda arm=arm: f"{attention(arm, 'end').tokens:.0f}",
        )
        if suspect == UNCHANGED:
            told["added"] = ""
        if NOT_MEASURED not in (told["ends"], told["other"]):
            cells.append([suspect, *told.values()])
    titles = ["changed", "it ends at", "elu + 1 ends at", "behind", "added", "tokens"]
    return Table(titles, cells, wrap=True) if cells else Missing(EXPERIMENT)


def numbers() -> dict[str, str]:
    """Numbers for the chapter on training: states and maps."""
    taylor, linear = Arm("Taylor 2"), Arm("elu + 1")

    def by(weights: str, recipe: str, heads: int = 2) -> str:
        return behind(Arm(weights, recipe, heads), Arm("elu + 1", recipe)).spread()

    return in_words(
        state_seeds=seeds,
        smallest_state=lambda: size(state(Arm("elu + 1", "fades", 16))),
        linear_state=lambda: size(state(linear)),
        taylor_state=lambda: size(state(taylor)),
        taylor_4_state=lambda: size(state(Arm("Taylor 4", "fades"))),
        power_state=lambda: size(state(Arm("power 2", "fades"))),
        fades_16=lambda: by("elu + 1", "fades", 16),
        fades_taylor_4=lambda: by("Taylor 4", "fades"),
        fades_power=lambda: by("power 2", "fades"),
        fades_softmax=lambda: by("softmax", "fades"),
        plain_softmax=lambda: by("softmax", "plain"),
        plain_exp=lambda: by("exp", "plain"),
        plain_taylor_4=lambda: by("Taylor 4", "plain"),
        plain_power=lambda: by("power 2", "plain"),
        gap_usual=lambda: gap(UNCHANGED).spread(),
        gap_half=lambda: gap("half the learning rate").spread(),
        ends_at_four_times=lambda: listed(
            f"{end:.2f}" for end in sorted(ends(pair("four times the learning rate")[0]))
        ),
        alike_tokens=lambda: f"{attention(taylor, 'start').alike:.0f}",
        tokens_start=lambda: f"{attention(taylor, 'start').tokens:.0f}",
        tokens_taylor=lambda: f"{attention(taylor, 'end').tokens:.0f}",
        sharpest_taylor=lambda: f"{attention(taylor, 'end').sharpest:.0f}",
        tokens_linear=lambda: f"{attention(linear, 'end').tokens:.0f}",
        sharpest_linear=lambda: f"{attention(linear, 'end').sharpest:.0f}",
    )
