"""State and work of each machine at a tick, by formula; nothing here is measured."""

from __future__ import annotations

from lsa.cost import MACHINES, machine_cost

from ...explorable.figure import Axis, Choice, Explorable, Series

TICKS = [2**i for i in range(4, 18)]
WIDTH = 64
COLOURS = {"taylor": "Taylor, n = 2"}  # if it is not the layer's own


def figure(id: str = "machine-costs") -> Explorable:
    """State and work of a tick against the tokens read: tapes, a cache and fixed states."""
    return Explorable(
        id=id,
        caption=(
            "**Tapes and caches grow with the text; states of a fixed size do not.** Formulas of "
            f"`lsa.cost`, one layer, d = {WIDTH}, one head. Both tapes keep the inputs, so their "
            "lines of the state coincide."
        ),
        alt=(
            "State size against tick for seven machines. The tapes and the KV cache rise in "
            "proportion to the tick, the other four are flat; work per tick behaves likewise, the "
            "attention tape rising fastest."
        ),
        series=[_series(COLOURS.get(layer, layer), name) for name, layer in MACHINES.items()],
        x=Axis("tick", "Tokens read", log=2),
        y=Choice(
            "Show",
            [
                Axis("state", "State", "kB", log=10),
                Axis("flops", "Work of a tick", "MFLOP", log=10),
            ],
        ),
        color="layer",
        dash="machine",
    )


def _series(layer: str, name: str) -> Series:
    costs = [machine_cost(name, tick, WIDTH) for tick in TICKS]
    return Series(
        {"layer": layer, "machine": "tape" if name.endswith("tape") else "cache or state"},
        {
            "tick": TICKS,
            "state": [cost.state / 1e3 for cost in costs],
            "flops": [cost.flops / 1e6 for cost in costs],
        },
    )
