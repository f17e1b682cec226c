"""Costs of each mode, by formula: arithmetic, traffic and steps of one head."""

from __future__ import annotations

from lsa.cost import mode_cost
from lsa.cost.modes import TILE

from ..lib.format import size
from ..lib.tables import Table

LENGTHS = (1024, 16384, 131072)
MODES = ("attention", "recurrent", "chunked")
WIDTH, CHUNK = 64, 64


def table() -> Table:
    """A row for each length and mode."""
    lines = []
    for length in LENGTHS:
        for mode in MODES:
            cost = mode_cost(mode, length, WIDTH, WIDTH, chunk_size=CHUNK)
            lines.append(
                [
                    f"{length:,}",
                    mode,
                    f"{cost.flops / 1e6:,.0f}",
                    size(cost.bytes),
                    f"{cost.steps:,}",
                ]
            )
    titles = ["T", "mode", "MFLOP", "traffic, 16-bit", "steps"]
    return Table(titles, lines, align="rlrrr", wrap=True)


def numbers() -> dict[str, str]:
    """Numbers for the chapter on the three modes: the formulas."""
    return {"tile_rows": str(TILE)}
