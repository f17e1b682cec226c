"""States in every head on texts longer than those that they were fitted to."""

from __future__ import annotations

from ..lib.format import in_words
from ..lib.records import NotMeasuredError
from ..lib.tables import Missing, Table
from . import whole_model
from .measured import FAR, HERE, Mean, mean_of, signed
from .whole_model import EXPERIMENT

DISTANCES = (HERE, FAR)
SHORT, LONG = RUNS = ("softmax-0-far", "softmax-0-far-fitted")  # by the length of the fit's texts
ROTARY, UNROTATED = "state", "state-unrotated"  # arms, by what the states read
READS = {ROTARY: "rotated", UNROTATED: "unrotated"}
WINDOW = "window"  # the control, in the first run
TRAINED = ("softmax-0-2048-state", UNROTATED), ("softmax-0-2048-window", WINDOW)  # and its control


def fitted_to(run: str) -> int:
    """Tokens of a text that the features were fitted to. Raises NotMeasuredError."""
    return whole_model.stored(run)["config"]["length"]


def values(what: str, run: str, arm: str, distance: int) -> dict[int, float]:
    """A measure by text, at a run's end: loss, gain or recall. Raises NotMeasuredError.

    Loss: of all tokens that come once. Recall: the loss that a copy takes off its passage.
    """
    tokens = whole_model.stored(run)["config"]["tokens"]

    def column(name: str, kind: str = "passages") -> dict[int, float]:
        return whole_model.by_text(arm, tokens, name, kind, distance, run=run)

    if what != "recall":
        return column(what)
    alone = column("second", "unseen")
    return {text: alone[text] - copied for text, copied in column("second").items()}


def changed(what: str, case: tuple[str, str], other: tuple[str, str], distance: int) -> Mean:
    """The values of a run's arm less those of another, text by text. NotMeasuredError."""
    own, than = (values(what, *one, distance) for one in (case, other))
    return mean_of([own[text] - than[text] for text in own])


def adds(what: str, case: tuple[str, str], distance: int) -> Mean:
    """What the states of a run's arm add to the control's values. Raises NotMeasuredError."""
    return changed(what, case, (SHORT, WINDOW), distance)


def trained(what: str, distance: int) -> Mean:
    """What trained, unrotated states add to their control's values. Raises NotMeasuredError."""
    return changed(what, *TRAINED, distance)


def table() -> Table | Missing:
    """What each kind of states adds to the loss, by distance."""
    try:
        cells = [
            [
                READS[arm],
                f"{fitted_to(run):,}",
                *(str(adds("loss", (run, arm), distance)) for distance in DISTANCES),
            ]
            for run in RUNS
            for arm in READS
        ]
    except NotMeasuredError:
        return Missing(EXPERIMENT)
    after = (f"after {distance:,}" for distance in DISTANCES)
    return Table(["q and k", "texts of the fit", *after], cells)


def numbers() -> dict[str, str]:
    """Numbers for the chapter."""

    def recall(distance: int) -> str:
        found = [adds("recall", (run, arm), distance).mean for run in RUNS for arm in READS]
        return " to ".join(signed(end(found)) for end in (min, max))

    return in_words(
        fit_short=lambda: f"{fitted_to(SHORT):,}",
        fit_long=lambda: f"{fitted_to(LONG):,}",
        fit_recall=lambda: recall(HERE),
        fit_far_recall=lambda: recall(FAR),
        long_adds=lambda: trained("gain", HERE),
        long_far=lambda: trained("gain", FAR),
        long_far_loss=lambda: changed("loss", *reversed(TRAINED), FAR),
        long_recall=lambda: trained("recall", HERE),
        long_far_recall=lambda: trained("recall", FAR),
    )
