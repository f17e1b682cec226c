"""What the pages say of states: tables, and verdicts no stronger than the spread over seeds."""

from __future__ import annotations

from statistics import mean

from ..lib.format import NOT_MEASURED, WrittenFor, in_words, listed, signed, size
from ..lib.records import NotMeasuredError
from ..lib.seeds import mean_and_spread
from ..lib.tables import Missing, Table
from .state_size import (
    EXPERIMENT,
    Arm,
    arms,
    attention,
    behind,
    differences,
    end,
    ends,
    noise,
    seeds,
    state,
)

WHERE = {
    "fades": "At 1,024 bytes, where half of the heads fade",
    "plain": "At 256 bytes, where no head fades",
}
# The suspects: what was changed, of what weighs the past, and of what it is compared with.
SUSPECTS = {
    "nothing changed": ("Taylor 2", "", ""),
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
                mean_and_spread([*ends(arm).values()]),
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


def gap(suspect: str) -> float:
    """How far behind elu + 1 the suspect's arm ends. Raises NotMeasuredError."""
    return behind(*pair(suspect))


def changed(suspect: str) -> float:
    """What a suspect adds to the gap, over the seeds of all four; 0 within the noise.

    Raises NotMeasuredError.
    """
    before, after = differences(*pair("nothing changed")), differences(*pair(suspect))
    if not (shared := before.keys() & after.keys()):
        raise NotMeasuredError(f"{EXPERIMENT}: no seed of {suspect} with nothing changed")
    by = mean(after[seed] - before[seed] for seed in shared)
    return by if abs(by) > noise(*pair("nothing changed"), *pair(suspect)) else 0.0


def _compared(suspect: str) -> int:
    """How many seeds both arms have."""
    return len(differences(*pair(suspect)))


def verdict(suspect: str) -> str:
    """What a change makes of the gap between Taylor 2 and elu + 1, beyond what a seed does.

    Raises NotMeasuredError.
    """
    by, least = gap(suspect), noise(*pair(suspect))
    place = "level" if abs(by) <= least else "ahead" if by < 0 else "behind"
    told = " with one seed" if _compared(suspect) == 1 else ""
    if suspect == "nothing changed":
        return place + told
    if not (more := changed(suspect)):
        return f"{place}{told}: no change beyond the noise"
    return f"{place}{told}: {'better' if more < 0 else 'worse'} than unchanged"


def causes() -> Table | Missing:
    """The suspects that have been measured, one changed at a time."""
    if not arms():
        return Missing(EXPERIMENT)
    cells = []
    for suspect in SUSPECTS:
        arm, other = pair(suspect)
        told = in_words(
            ends=lambda arm=arm: mean_and_spread([*ends(arm).values()]),
            other=lambda other=other: mean_and_spread([*ends(other).values()]),
            gap=lambda suspect=suspect: f"{gap(suspect):+.3f}".replace("-", "−"),
            tokens=lambda arm=arm: f"{attention(arm, 'end').tokens:.0f}",
            verdict=lambda suspect=suspect: verdict(suspect),
        )
        if NOT_MEASURED not in (told["ends"], told["other"]):
            cells.append([suspect, *told.values()])
    titles = [
        "changed", "it ends at", "elu + 1 ends at", "difference", "tokens weighed", "verdict"
    ]  # fmt: skip
    return Table(titles, cells, align="lrrrrl", wrap=True) if cells else Missing(EXPERIMENT)


def _not_yet() -> str:
    """A sentence that names the suspects nobody has measured; nothing when all have been."""
    left = [name for name in SUSPECTS if in_words(gap=lambda n=name: gap(n))["gap"] == NOT_MEASURED]
    return f"Not measured yet: {'; '.join(left)}." if left else ""


def _states(recipe: str) -> list[Arm]:
    """The arms of a recipe with a state of fixed size, smallest state first."""
    found = [
        arm for arm in arms()
        if arm.recipe == recipe and arm.weights not in ("none", "softmax") and not arm.change
    ]  # fmt: skip
    if len({state(arm) for arm in found}) < 2:
        raise NotMeasuredError(f"{EXPERIMENT}: fewer than two states in {recipe}")
    return sorted(found, key=state)


def of_the_states(recipe: str) -> str:
    """How far apart the ends of small and large states lie. Raises NotMeasuredError."""
    found = _states(recipe)
    best, worst = min(found, key=end), max(found, key=end)
    apart, least = abs(behind(worst, best)), noise(worst, best)
    said = (
        f"{WHERE[recipe]}, between {size(state(found[0]))} and {size(state(found[-1]))} of state, "
        f"{apart:.3f} nats lie between the best end and the worst"
    )
    if apart <= least:
        return (
            f"{said}. Another seed can move a loss by {least:.3f}, so no effect of the state can "
            f"be told{_of_softmax(recipe)}."
        )
    return (
        f"{said}: {_named(best)} and {_named(worst)}. Another seed can move a loss by "
        f"{least:.3f}{_of_softmax(recipe)}."
    )


def _named(arm: Arm) -> str:
    heads = f"{arm.heads} head{'s' if arm.heads > 1 else ''}"
    return f"{arm.weights} with {heads} ({size(state(arm))})"


def _of_softmax(recipe: str) -> str:
    """Where softmax ends, after a semicolon; nothing where it has not been run."""
    try:
        both = Arm("softmax", recipe), Arm("elu + 1", recipe)
        by = behind(*both)
    except NotMeasuredError:
        return ""
    beyond = "" if abs(by) > noise(*both) else ", which is within that"
    higher = "higher" if by > 0 else "lower"
    return f"; softmax ends {abs(by):.3f} nats {higher} than elu + 1 with two heads{beyond}"


def _of_all_states() -> str:
    """A sentence or two for each recipe that has states to compare."""
    said = []
    for recipe in WHERE:
        try:
            said.append(of_the_states(recipe))
        except NotMeasuredError:
            continue
    if not said:
        raise NotMeasuredError(f"{EXPERIMENT}: nothing to compare")
    return " ".join(said)


def _tokens_in_the_end() -> str:
    """What the heads of each kind weigh after training, in the recipe where none fades."""
    named = {"softmax": "softmax", "elu + 1": "elu + 1", "Taylor 2": "the Taylor sum",
             "power 2": "the square alone", "Taylor 4": "four terms"}  # fmt: skip
    said = []
    for weights, name in named.items():
        try:
            found = attention(Arm(weights), "end")
        except NotMeasuredError:
            continue
        sharpest = (
            f" ({found.sharpest:.0f} by the sharpest head)"
            if not said
            else (f" ({found.sharpest:.0f})")
        )
        said.append(f"{found.tokens:.0f} with {name}{sharpest}")
    if not said:
        raise NotMeasuredError(f"{EXPERIMENT}: no weights")
    return listed(said)


LARGER = ("Taylor 2", "power 2", "Taylor 4")  # than the state of elu + 1, many times


def _larger() -> dict[str, float]:
    """How far behind elu + 1 the arms of a larger state end. Raises NotMeasuredError."""
    found = {}
    for weights in LARGER:
        try:
            found[weights] = behind(Arm(weights), Arm("elu + 1"))
        except NotMeasuredError:
            continue
    if not found:
        raise NotMeasuredError(f"{EXPERIMENT}: no larger state")
    return found


def _noise_of_larger() -> float:
    return noise(Arm("elu + 1"), *map(Arm, _larger()))


def larger_in_words() -> str:
    """The claim about the size of the state, where no head fades."""
    told = ", ".join(
        f"{weights} ({size(state(Arm(weights)))}) {signed(by)}" for weights, by in _larger().items()
    )
    return (
        f"nano at 256 bytes, loss by elu + 1 ({size(state(Arm('elu + 1')))}): {told}; noise "
        f"{_noise_of_larger():.3f} ({seeds()})"
    )


def larger_helps() -> str | bool:
    """Whether states many times as large learned more, beyond the noise."""
    ahead = [by < -_noise_of_larger() for by in _larger().values()]
    if all(ahead):
        return True
    return "not by its size alone" if any(ahead) else "the size alone did not help here"


def numbers() -> dict[str, str]:
    """What the chapters say of states and maps."""
    taylor, linear = Arm("Taylor 2"), Arm("elu + 1")
    return in_words(
        state_seeds=seeds,
        state_noise=lambda: f"{noise(taylor, linear):.3f}",
        state_verdict=_of_all_states,
        taylor_state=lambda: size(state(taylor)),
        linear_state=lambda: size(state(linear)),
        alike_tokens=lambda: f"{attention(taylor, 'start').alike:.0f}",
        suspects_left=_not_yet,
        ends_at_four_times=lambda: listed(f"{end:.2f}" for end in _at_the_highest_rate()),
        tokens_start=lambda: f"{attention(taylor, 'start').tokens:.0f}",
        tokens_end=_tokens_in_the_end,
    )


RATES = ("half the learning rate", "twice the learning rate", "four times the learning rate")


def _at_the_highest_rate() -> list[float]:
    """Where the seeds of the Taylor sum end. Raises NotMeasuredError."""
    return sorted(ends(pair(RATES[-1])[0]).values())


def claims() -> WrittenFor:
    """What the words say of the Taylor sum's heads, beyond the numbers in them."""
    taylor, linear = Arm("Taylor 2"), Arm("elu + 1")

    def sharpest(arm: Arm) -> float:
        found = attention(arm, "end")
        return found.sharpest / found.alike

    return WrittenFor(
        the_Taylor_sum_is_behind_at_the_rate_of_the_older_run=lambda: (
            gap("nothing changed") > noise(*pair("nothing changed"))
        ),
        at_no_other_rate_can_the_two_be_told_apart=lambda: all(
            abs(gap(rate)) <= noise(*pair(rate)) for rate in RATES
        ),
        no_seeds_of_a_model_are_further_apart=lambda: (
            max(_at_the_highest_rate()) - min(_at_the_highest_rate()) == noise()
        ),
        the_sharpest_head_of_the_Taylor_sum_is_at_two_fifths_of_its_keys=lambda: (
            0.35 < sharpest(taylor) < 0.45
        ),
        elu_plus_one_has_a_head_well_below_that=lambda: sharpest(linear) < 0.5 * sharpest(taylor),
        the_square_did_no_better_than_the_sum=lambda: changed("no floor: power 2") >= 0,
        four_terms_weigh_fewer_tokens_and_end_ahead=lambda: (
            attention(Arm("Taylor 4"), "end").tokens < attention(taylor, "end").tokens
            and changed("more terms: Taylor 4") < 0
        ),
    )
