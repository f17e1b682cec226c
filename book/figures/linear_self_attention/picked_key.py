"""How sharply a query picks one key of many, from values that the chapter computes."""

from __future__ import annotations

from collections.abc import Mapping

from ...explorable.figure import Axis, Explorable, Series, Toggle
from ..lib.format import listed

LEFT_OUT = "softplus"  # its line would hide another
COLORS = {"elu + 1": "linear"}  # the default map, in linear attention's colour


def bounds(features: Mapping[str, int], keys: int) -> dict[int, float]:
    """The most weight that a number of features can put on the right key, if it is below one."""
    return {K: K / keys for K in sorted(set(features.values())) if keys > K}


def figure_of(
    shares: Mapping[float, Mapping[str, float]],
    features: Mapping[str, int],
    keys: int,
    id: str = "picking",
) -> Explorable:
    """Weight on the right key against the length of queries and keys, with its bounds.

    shares: by length, then by kind of weights: softmax, or a feature map. features: how many each
    map has. keys: how many there are to choose from.
    """
    lengths = list(shares)
    names = [name for name in shares[lengths[0]] if name != LEFT_OUT]
    weights = {COLORS.get(name, name): name for name in names}
    most = bounds(features, keys)
    limits = listed(f"{100 * bound:.3g}% for {K}" for K, bound in most.items())
    return Explorable(
        id=id,
        caption=(
            "**Softmax can pick one key of many. A few features cannot.** Dashed: the most that so "
            f"many features can reach, {limits}. The maps stay below. Taylor sums level off: for "
            "long vectors they are even powers, and an opposed key weighs as much as the right "
            "one. Softplus lies beside elu + 1. Taylor, n = 2 has more features, so the lower "
            "bound does not hold for it."
        ),
        alt=(
            "Share of the weight on the right key against the length of queries and keys. Softmax "
            "approaches one hundred percent; the elementwise maps stay low, below a dashed line; "
            "Taylor maps lie between and level off."
        ),
        series=[
            Series(
                {"weights": key},
                {"length": lengths, "share": [100 * shares[length][name] for length in lengths]},
            )
            for key, name in weights.items()
        ],
        ceilings=[
            Series(
                {},
                {"length": [lengths[0], lengths[-1]], "share": [100 * bound] * 2},
                label=f"at most, {K} features",
            )
            for K, bound in most.items()
        ],
        x=Axis("length", "Length of queries and keys"),
        y=Axis("share", "Weight on the right key", "%", digits=3),
        color="weights",
        controls=[Toggle("weights", "Weights", options=weights)],
    )
