"""A deep RNN unrolled in two ways, with the turn of every box."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...explorable.drawing import Arrow, Box, Drawing, Shape, Words

LAYERS, TICKS = 2, 3
SIDE, GAP, MARGIN = 26, 21, 6
PANEL = 180
TOP = 34

Turn = Callable[[int, int], int]


def time_major(layer: int, tick: int) -> int:
    """The turn of the box of a layer at a tick; layers and ticks count from 0, turns from 1."""
    return tick * LAYERS + layer + 1


def layer_major(layer: int, tick: int) -> int:
    return layer * TICKS + tick + 1


def _place(left: float, layer: int, tick: int) -> tuple[float, float]:
    step = SIDE + GAP
    return left + 30 + tick * step, TOP + 18 + (LAYERS - 1 - layer) * step


def _boxes(left: float, turn: Turn) -> Iterator[Shape]:
    for layer in range(LAYERS):
        for tick in range(TICKS):
            x, y = _place(left, layer, tick)
            middle = x + SIDE / 2
            yield Box(x, y, SIDE, SIDE, "rnn", str(turn(layer, tick)))
            yield Arrow((middle, y + SIDE + GAP), (middle, y + SIDE))
            yield Arrow((x - GAP, y + SIDE / 2), (x, y + SIDE / 2))
            if layer == LAYERS - 1:
                yield Arrow((middle, y), (middle, y - 15))
                yield Words(middle, y - 22, f"$y_{tick + 1}$")
            if not layer:
                yield Words(middle, y + SIDE + GAP + 9, f"$x_{tick + 1}$")


def _frames(left: float, turn: Turn) -> Iterator[Shape]:
    """A dashed frame around the boxes that form one step of this order."""
    step = SIDE + GAP
    x, y = _place(left, LAYERS - 1, 0)
    x, y = x - MARGIN, y - MARGIN
    if turn is time_major:
        for tick in range(TICKS):
            height = (LAYERS - 1) * step + SIDE + 2 * MARGIN
            yield Box(x + tick * step, y, SIDE + 2 * MARGIN, height, dashed=True, filled=False)
    else:
        for layer in range(LAYERS):
            width = (TICKS - 1) * step + SIDE + 2 * MARGIN
            yield Box(x, y + layer * step, width, SIDE + 2 * MARGIN, dashed=True, filled=False)


def drawing(id: str = "unrolled") -> Drawing:
    """Both unrolled diagrams of a deep RNN, side by side."""
    ways = {"Time-major": time_major, "Layer-major": layer_major}
    shapes: list[Shape] = []
    for place, (name, turn) in enumerate(ways.items()):
        left = place * PANEL
        shapes += [Words(left + PANEL / 2, 10, name), *_boxes(left, turn), *_frames(left, turn)]
    return Drawing(
        id,
        caption=(
            "**Two orders of work, one function.** A deep RNN of two layers reads three inputs. "
            "Arrows say what a box needs: the output of the box below and the state from its "
            "left. Numbers give the turns. A dashed frame is one step: all layers at one tick, or "
            "one layer at all ticks."
        ),
        alt=(
            "Two grids of two rows and three columns with the same arrows. On the left the turns "
            "run up each column in turn; on the right they run along the lower row, then the upper."
        ),
        size=(2 * PANEL, 172),
        shapes=shapes,
    )
