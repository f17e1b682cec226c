"""Windows of several widths in all heads of a trained model, with and without the first tokens."""

from __future__ import annotations

from ..lib.format import percent
from ..lib.records import NotMeasuredError
from ..lib.tables import Missing, Table
from .measured import EXPERIMENT, Mean, measured, run_of, share_cut

WINDOWS = (16, 32, 64, 128, 256)  # 512 hold a whole text
COLUMNS = (("cut", 4), ("cut", 0), ("gain", 4))


def of_window(window: int, first: int, column: str) -> Mean:
    """A column of `measured`, with all heads confined to a window. Raises NotMeasuredError."""
    return measured(run_of("all", f"window-{window}-{first}"), column)


def measured_windows() -> list[int]:
    """Widths for which both runs are stored."""
    widths = []
    for window in WINDOWS:
        try:
            for first in (4, 0):
                of_window(window, first, "cut")
        except NotMeasuredError:
            continue
        widths.append(window)
    return widths


def cut(window: int) -> float:
    """Share of the tokens whose past is cut by a window and the first four. NotMeasuredError."""
    return share_cut(run_of("all", f"window-{window}-4"))


def table() -> Table | Missing:
    """Rise of the loss with and without the first four tokens, and the gain with them."""
    if not (windows := measured_windows()):
        return Missing(EXPERIMENT)
    cells = [
        [str(window), percent(cut(window)),
         *(str(of_window(window, first, column)) for column, first in COLUMNS)]
        for window in windows
    ]  # fmt: skip
    titles = ["window", "tokens cut", "loss with first 4", "loss without", "gain with first 4"]
    return Table(titles, cells)
