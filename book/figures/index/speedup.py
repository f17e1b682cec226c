"""Speedups of linear attention: for a layer, a block, an update."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from IPython.display import HTML

from ...explorable.markup import json_script
from ..lib.format import NOT_MEASURED, in_words, times, times_between
from ..lib.records import NotMeasuredError, Row
from ..lib.tables import Table
from ..three_modes import block_speed, published
from . import mode_speed, race

LENGTHS = (256, 1024, 4096, 16384, 65536, 131072)
TIMED: dict[str, Callable[[int], float]] = {
    "the layer alone": mode_speed.ratio_to_softmax,
    "block of GPT-2 124M": lambda n: block_speed.ratio_to_softmax("124M", n),
    "block of GPT-2 1.5B": lambda n: block_speed.ratio_to_softmax("1.5B", n),
    "update of the race": race.ratio,
    "update of GPT-2 124M on an H100 (published)": published.update_ratio,
}


def table() -> Table:
    """Softmax's time over linear attention's, forward and backward, by length."""
    cells = []
    for length in LENGTHS:
        ratios = in_words(
            **{name: lambda n=length, of=of: times(of(n)) for name, of in TIMED.items()}
        )
        texts = ("–" if text == NOT_MEASURED else text for text in ratios.values())
        cells.append([f"{length:,}", *texts])
    return Table(["context", *TIMED], cells, align="r" * (len(TIMED) + 1))


def data() -> HTML:
    """JSON in a script element for the stage `ratios`: name, lengths and ratios of each line.

    Ratios are those of the table, so that the stage says what the page says.
    """
    series = []
    for name, of in TIMED.items():
        ratios = {}
        for length in LENGTHS:
            with suppress(NotMeasuredError):
                ratios[length] = float(times(of(length)).removesuffix("×"))
        if ratios:
            series.append({"name": name, "lengths": [*ratios], "ratios": [*ratios.values()]})
    return HTML(json_script(series, id="ratios-data"))


def numbers() -> dict[str, str]:
    """Numbers for the pages: ratios of the table."""

    def timed(mode: str) -> Row:
        return mode_speed.point(mode_speed.narrowest(), mode, LENGTHS[-1])

    return in_words(
        layer_4096=lambda: times(mode_speed.ratio_to_softmax(4096)),
        layer_longest=lambda: times_between(timed("softmax"), timed("chunked")),
        small_4096=lambda: times(block_speed.ratio_to_softmax("124M", 4096)),
        small_16384=lambda: times(block_speed.ratio_to_softmax("124M", 16384)),
    )
