"""States in every head, fitted but not trained, on texts longer than those of their fit."""

from __future__ import annotations

from ..lib.records import NotMeasuredError, Record, need, rows
from ..lib.tables import Missing, Table
from . import whole_model
from .measured import FAR, HERE, Mean, mean_of
from .whole_model import EXPERIMENT

DISTANCES = (HERE, 1024, FAR)
SHORT, LONG = "softmax-0-far", "softmax-0-far-fitted"  # runs, by the length of the fit's texts
ROTARY, UNROTATED = "state", "state-unrotated"  # arms, by what the states read
READS = {ROTARY: "rotated", UNROTATED: "unrotated"}
WINDOW = "window"  # the control, in the first run


def fitted_to(run: str) -> int:
    """Tokens of a text that the features were fitted to. Raises NotMeasuredError."""
    return whole_model.stored(run)["config"]["length"]


def _column(run: str, arm: str, column: str, distance: int, kind: str = "passages") -> dict:
    return whole_model.by_text(arm, 0, column, kind, distance, run=run)


def _recall(run: str, arm: str, distance: int) -> dict[int, float]:
    alone = _column(run, arm, "second", distance, "unseen")
    return {text: alone[text] - with_it for text, with_it in
            _column(run, arm, "second", distance).items()}  # fmt: skip


def adds(what: str, run: str, arm: str, distance: int) -> Mean:
    """What states add to the control's "loss" or "recall", text by text. NotMeasuredError.

    Loss: of all tokens that come once. Recall: the loss that a copy takes off its passage.
    """
    found = (
        _recall(name, who, distance) if what == "recall" else _column(name, who, what, distance)
        for name, who in ((run, arm), (SHORT, WINDOW))
    )
    state, window = found
    return mean_of([state[text] - window[text] for text in window])


def missed(run: str, arm: str) -> float:
    """Share of the heads' outputs that the states miss after the fit: mean of the last updates."""
    found = [row["missed"] for row in rows(whole_model.stored(run), "features", arm=arm)]
    last = need(found, f"{EXPERIMENT}: no features of {arm}")[-8:]
    return sum(last) / len(last)


def changed(arm: str, run: str, other_arm: str, other_run: str, distance: int) -> Mean:
    """Loss with one kind of states less that with another, text by text. NotMeasuredError."""
    own, than = (
        _column(name, who, "loss", distance) for name, who in ((run, arm), (other_run, other_arm))
    )
    return mean_of([own[text] - than[text] for text in own])


def cases() -> list[tuple[str, str]]:
    """Runs and arms with states that are stored."""
    found: list[tuple[str, str]] = []
    for run in (SHORT, LONG):
        for arm in READS:
            try:
                adds("loss", run, arm, FAR)
            except NotMeasuredError:
                continue
            found.append((run, arm))
    return found


def table() -> Table | Missing:
    """What each kind of states adds to the loss and to recall, by distance."""
    if not (known := cases()):
        return Missing(EXPERIMENT)
    cells = [
        [
            f"{READS[arm]}, {fitted_to(run):,}",
            *(str(adds(what, run, arm, distance)) for what in ("loss", "recall")
              for distance in DISTANCES),
        ]
        for run, arm in known
    ]  # fmt: skip
    titles = ["q and k, fitted to", *(f"loss, {distance:,}" for distance in DISTANCES)]
    return Table([*titles, *(f"recall, {distance:,}" for distance in DISTANCES)], cells)


def sources() -> list[Record]:
    """The runs. Raises NotMeasuredError."""
    return [whole_model.stored(run) for run in (SHORT, LONG)]
