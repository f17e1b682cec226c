"""How sharply a query picks one key from a crowd: drawn of what a chapter computed."""

from __future__ import annotations

from collections.abc import Mapping

from ...explorable.figure import Axis, Explorable, Series, Toggle

LEFT_OUT = "softplus"  # its line would hide the one beside it
COLORS = {"elu + 1": "linear"}  # the default map, in linear attention's colour


def figure_of(shares: Mapping[float, Mapping[str, float]], id: str = "picking") -> Explorable:
    """Weight on the right key against the length of queries and keys.

    shares: by length, then by what weighs: softmax, or a feature map.
    """
    lengths = list(shares)
    names = [name for name in shares[lengths[0]] if name != LEFT_OUT]
    keys = {COLORS.get(name, name): name for name in names}
    return Explorable(
        id=id,
        caption=(
            "**Softmax can single out one key in a crowd. Maps that act on each feature alone "
            "cannot.** Taylor sums do better than these maps, and then level off: far from zero "
            "they are powers, and opposed keys weigh as much. (Softplus runs beside elu + 1.)"
        ),
        alt=(
            "Share of the weight on the right key against the length of queries and keys. Softmax "
            "approaches one hundred percent; the elementwise maps stay low; Taylor maps lie "
            "between and level off."
        ),
        series=[
            Series(
                {"weights": key},
                {"length": lengths, "share": [100 * shares[length][name] for length in lengths]},
            )
            for key, name in keys.items()
        ],
        x=Axis("length", "Length of queries and keys"),
        y=Axis("share", "Weight on the right key", "%", digits=3),
        color="weights",
        controls=[Toggle("weights", "Weights", options=keys)],
    )
