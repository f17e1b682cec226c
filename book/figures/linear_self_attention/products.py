"""Two orders of one product, and the blocks of a masked matrix, drawn as rectangles."""

from __future__ import annotations

from ...explorable.drawing import Box, Drawing, Shape, Triangle, Words

LONG, SHORT = 84, 18  # tokens and features in the drawing
MIDDLE = 58


def rectangles(id: str = "rectangles") -> Drawing:
    """(QKᵀ)V above Q(KᵀV), each matrix in its shape."""
    return Drawing(
        id,
        caption=(
            "**One order of the products makes a T × T matrix, the other a K × V one.** Above, "
            "(QKᵀ)V: the large square has a number for every pair of tokens. Below, Q(KᵀV): the "
            "small square does not grow with the text."
        ),
        alt=(
            "Above, a tall matrix Q times a wide matrix K transposed gives a large square, which "
            "times a tall V gives a tall result. Below, K transposed times V gives a small square, "
            "and the tall Q times it gives the same result."
        ),
        size=(372, 222),
        shapes=[*_left_first(), *_right_first()],
    )


def _left_first() -> list[Shape]:
    top = MIDDLE - LONG / 2
    return [
        Box(8, top, SHORT, LONG, "attention", "Q"),
        Box(38, MIDDLE - SHORT / 2, LONG, SHORT, "attention", "Kᵀ"),
        Words(136, MIDDLE, "="),
        Box(150, top, LONG, LONG, "attention", "T × T"),
        Box(246, top, SHORT, LONG, "attention", "V"),
        Words(284, MIDDLE, "="),
        Box(300, top, SHORT, LONG),
        Words(344, MIDDLE, "T × V"),
    ]


def _right_first() -> list[Shape]:
    middle = MIDDLE + LONG + 24
    top = middle - LONG / 2
    return [
        Box(8, middle - SHORT / 2, LONG, SHORT, "linear", "Kᵀ"),
        Box(104, top, SHORT, LONG, "linear", "V"),
        Words(136, middle, "="),
        Box(150, middle - SHORT / 2, SHORT, SHORT, "linear"),
        Words(159, middle + 22, "K × V"),
        Box(216, top, SHORT, LONG, "linear", "Q"),
        Box(246, middle - SHORT / 2, SHORT, SHORT, "linear"),
        Words(284, middle, "="),
        Box(300, top, SHORT, LONG),
        Words(344, middle, "T × V"),
    ]


def far_blocks(id: str = "far-blocks", blocks: int = 4) -> Drawing:
    """The masked matrix in blocks, and one block below the diagonal as a product."""
    side = 38
    shapes: list[Shape] = []
    for row in range(blocks):
        for column in range(row):
            chosen = (row, column) == (blocks - 1, 1)
            place = (10 + column * side, 14 + row * side)
            shapes.append(Box(*place, side, side, "linear", "" if not chosen else "R, R′"))
        shapes.append(Triangle(10 + row * side, 14 + row * side, side, "attention"))
    shapes.append(Box(10, 14, blocks * side, blocks * side, dashed=True, filled=False))
    middle, large, thin = 90, 58, 14
    top = middle - large / 2
    shapes += [
        Box(190, top, large, large, "linear", "R, R′"),
        Words(261, middle, "="),
        Box(276, top, thin, large, "linear"),
        Words(283, top - 11, "$Q_R$"),
        Box(298, middle - thin / 2, large, thin, "linear"),
        Words(327, middle - thin / 2 - 11, "$K_{R′}^\\top$"),
        Words(283, top + large + 12, "K columns"),
    ]
    return Drawing(
        id,
        caption=(
            "**Only the blocks on the diagonal need their products.** The masked matrix, cut into "
            "blocks of tokens. Each full block below the diagonal is a thin matrix times a flat "
            "one, so its rank is at most K and a state of K × V numbers replaces it."
        ),
        alt=(
            "A lower triangular matrix in four by four blocks: triangles on the diagonal, full "
            "squares below. One square is drawn again as a product of a thin and a flat matrix."
        ),
        size=(360, 180),
        shapes=shapes,
    )
