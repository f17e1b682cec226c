"""Softmax of the long race with its far-sighted heads confined when it reads: table and numbers."""

from __future__ import annotations

from ..lib.format import in_words
from ..lib.pairs import Pairs, compare
from ..lib.records import Record, learned, need, rows
from ..lib.tables import Missing, Table
from .long_race import EVERYWHERE, PARTS, of_novels

EXPERIMENT = "far_heads"
LATE = PARTS[-1]
COPIES, OTHER, CONTROL = "softmax-all-seed0", "softmax-all-seed1", "softmax-seed0"


def runs(trained: str = COPIES) -> dict[tuple[int, ...], Record]:
    """The runs of a model, by the layers whose heads are confined."""
    found = (run for run in learned(EXPERIMENT) if run["config"]["trained"] == trained)
    return {tuple(run["config"]["layers"]): run for run in found}


def every_layer(trained: str = COPIES) -> tuple[int, ...]:
    """All layers of a model. Raises NotMeasuredError."""
    return max(need(runs(trained), f"{EXPERIMENT}: no {trained}"), key=len)


def of(layers: tuple[int, ...], trained: str = COPIES) -> Record:
    """The run with these layers confined. Raises NotMeasuredError."""
    return need(runs(trained).get(layers), f"{EXPERIMENT}: no {trained} with {layers}")


def gain(layers: tuple[int, ...], distance: int, trained: str = COPIES) -> Pairs:
    """Gain on a passage that comes again, over places. Raises NotMeasuredError."""
    return compare([row["gain"] for row in rows(of(layers, trained), "again", distance=distance)])


def rise(
    layers: tuple[int, ...], within: tuple[int, int] = EVERYWHERE, trained: str = COPIES
) -> Pairs:
    """By how much confining raises the loss, novel by novel. Raises NotMeasuredError."""
    confined, whole = (
        of_novels(rows(of(which, trained), "positions"), within) for which in (layers, ())
    )
    return compare([a - b for a, b in zip(confined, whole, strict=True)])


def table() -> Table | Missing:
    """Gain and rise of the loss with all layers confined, and with one."""
    found = runs()
    if () not in found:
        return Missing(EXPERIMENT)
    titles = [
        "heads confined", "gain after 64 bytes", "after 256", "after 896",
        "loss rises", f"at bytes {LATE[0]} to {LATE[1]:,}",
    ]  # fmt: skip
    cells = []
    for layers in sorted(found, key=lambda one: (len(one) == 1, one)):
        told = in_words(
            near=lambda layers=layers: signed(gain(layers, 64)),
            middle=lambda layers=layers: signed(gain(layers, 256)),
            far=lambda layers=layers: signed(gain(layers, 896)),
            rises=lambda layers=layers: rise(layers).signed() if layers else "",
            late=lambda layers=layers: rise(layers, LATE).signed() if layers else "",
        )
        cells.append([_named(layers), *told.values()])
    return Table(titles, cells, wrap=True)


def _named(layers: tuple[int, ...]) -> str:
    if len(layers) == 1:
        return f"layer {layers[0] + 1}"
    return "all layers" if layers else "none"


def signed(found: Pairs) -> str:
    """A gain, with a sign if it is negative."""
    return found.spread() if found.mean > 0 else found.signed()


def single(trained: str = COPIES) -> list[tuple[int, ...]]:
    """The layers that were confined alone, the one that takes most of the gain first.

    Raises NotMeasuredError.
    """
    found = [layers for layers in runs(trained) if len(layers) == 1]
    need(found, f"{EXPERIMENT}: no layer alone")
    return sorted(found, key=lambda layers: gain(layers, 256, trained).mean)


def numbers() -> dict[str, str]:
    """Numbers for the chapter on training: confined heads."""
    return in_words(
        far_heads_layer=lambda: str(single()[0][0] + 1),
        far_heads_gain=lambda: signed(gain(single()[0], 256)),
        far_heads_rise=lambda: rise(single()[0]).spread(),
        far_heads_other_layer=lambda: str(single(OTHER)[0][0] + 1),
        far_heads_other_gain=lambda: signed(gain(single(OTHER)[0], 256, OTHER)),
        far_heads_other_rise=lambda: rise(single(OTHER)[0], trained=OTHER).spread(),
        far_heads_control=lambda: rise(every_layer(CONTROL), trained=CONTROL).signed(),
    )
