"""Taylor sums of the exponential as weights of a score, computed here without results."""

from __future__ import annotations

import math

from ...explorable.figure import Axis, Explorable, Series, Toggle

SCORES = [i / 8 for i in range(-40, 21)]
DEGREES = (1, 2, 3, 4, 8)
SHOWN = (1, 2, 4)


def figure(id: str = "taylor-sums") -> Explorable:
    """Weight against score: the exponential, in softmax's colour, and its sums."""
    sums = {"softmax": [math.exp(s) for s in SCORES]}
    sums |= {f"n = {n}": [_sum(s, n) for s in SCORES] for n in DEGREES}
    return Explorable(
        id=id,
        caption=(
            "**Close to zero the sums follow the exponential. To the left they leave it.** Odd n "
            "goes down and even n up. With more terms they part further from zero."
        ),
        alt=(
            "The exponential and its Taylor sums from minus 5 to 2.5. Near zero all agree. To the "
            "left the exponential goes to zero, odd sums fall below it and even sums rise above it."
        ),
        series=[Series({"weight": name}, {"s": SCORES, "w": w}) for name, w in sums.items()],
        x=Axis("s", "Score"),
        y=Axis("w", "Weight"),
        color="weight",
        controls=[
            Toggle(
                "weight",
                "Weight",
                options={name: "exponential" if name == "softmax" else name for name in sums},
                default=["softmax", *(f"n = {n}" for n in SHOWN)],
            )
        ],
    )


def of_computed(away: dict[str, float]) -> dict[str, str]:
    """Numbers from computed shares. away: the share of weight on keys with a negative score."""
    return {"away_two": f"{away['n = 2']:.0%}", "away_exp": f"{away['exponential']:.2%}"}


def _sum(s: float, n: int) -> float:
    return sum(s**m / math.factorial(m) for m in range(n + 1))
