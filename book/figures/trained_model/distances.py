"""Gain at several distances, with all heads of a trained model looking back, some, and none."""

from __future__ import annotations

from ..lib.format import in_words, percent
from ..lib.records import NotMeasuredError
from ..lib.tables import Missing, Table
from .measured import EXPERIMENT, HERE, NEAR, Mean, measured, run_of
from .remove_exponential import FEW, SOME, confined, first_alone, lost_gain

FAR = 4096
DISTANCES = (64, 256, 1024, FAR)
TEXTS = {"passages": "passage", "lists": "names"}
# Which heads look back, as the runs are named; the ranking is that of the same kind of text.
CASES = {
    "all": ("none", ""),
    "first 24": ("but", "gradient-24"),
    "all but 8": ("first", "gradient-8"),
    "none": ("all", NEAR),
}


def gain(case: str, distance: int, text: str = "passages") -> Mean:
    """Gain with the heads of a case looking back. Raises NotMeasuredError."""
    return measured(run_of(*CASES[case], text=text, distance=distance), "gain")


def way(where: str, number: int, distance: int) -> float:
    """Gain of a run, as a share of the way from no head looking back to all.

    where: "but" if the ranking's first heads alone look back, "first" if all others do. Raises
    NotMeasuredError.
    """
    return 1 - lost_gain(run_of(where, f"gradient-{number}", distance=distance))


def rise(case: str, distance: int) -> Mean:
    """Rise of the loss, for tokens whose past is cut. Raises NotMeasuredError."""
    return measured(run_of(*CASES[case], distance=distance), "cut")


def measured_distances(text: str = "passages") -> list[int]:
    """Distances at which softmax was measured."""
    found = []
    for distance in DISTANCES:
        try:
            gain("all", distance, text)
        except NotMeasuredError:
            continue
        found.append(distance)
    return found


def table() -> Table | Missing:
    """Gain by distance and by the heads that look back; a dash where nothing was measured."""
    cells = []
    for text, label in TEXTS.items():
        for distance in measured_distances(text):
            row = [f"{label}, {distance:,}"]
            for case in CASES:
                try:
                    row.append(str(gain(case, distance, text)))
                except NotMeasuredError:
                    row.append("–")
            cells.append(row)
    if not cells:
        return Missing(EXPERIMENT)
    return Table(["returns, after", *CASES], cells)


def numbers() -> dict[str, str]:
    """Numbers for the chapter."""
    return in_words(
        at_1024_some=lambda: percent(way("but", SOME, 1024)),
        at_4096_some=lambda: percent(way("but", SOME, FAR)),
        at_4096_forty=lambda: percent(way("but", 40, FAR)),
        at_256_others=lambda: percent(way("first", SOME, HERE)),
        at_4096_others=lambda: percent(way("first", SOME, FAR)),
        at_4096_rise=lambda: rise("none", FAR),
        names_gain=lambda: gain("all", HERE, "lists"),
        names_two=lambda: measured(confined(2, text="lists"), "gain"),
        names_four=lambda: measured(confined(4, text="lists"), "gain"),
        names_few=lambda: measured(first_alone(FEW, text="lists"), "gain"),
        names_mass_alone=lambda: measured(first_alone(SOME, "mass", "lists"), "gain"),
    )
