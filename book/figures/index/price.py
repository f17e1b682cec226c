"""The price of letting few heads look back: recall and loss of a trained model."""

from __future__ import annotations

from ...explorable.figure import Axis, Explorable, Series, Toggle
from ..lib.format import counted, in_words, percent
from ..lib.records import NotMeasuredError, Record, provenance
from ..lib.tables import Missing
from ..relatives.synthetic_tasks import share
from ..trained_model.measured import EXPERIMENT, HEADS, measured, sets
from ..trained_model.remove_exponential import SOME, confined, everywhere, first_alone, lost_recall

WHAT = {"gain": "Recall of a passage", "rise": "Rise of the loss"}
MOST = 40  # heads that the figure shows; more change nothing


def _runs() -> dict[int, Record]:
    """By the number of heads that look back, the most important of a ranking first."""
    found = sets("passages", "gradient").get("kept", {})
    return {heads: run for heads, run in found.items() if heads <= MOST}


def _columns(what: str) -> dict[str, list]:
    found = {heads: measured(run, what) for heads, run in _runs().items()}
    return {
        "heads": [*found],
        "nats": [one.mean for one in found.values()],
        "low": [one.mean - 2 * one.error for one in found.values()],
        "high": [one.mean + 2 * one.error for one in found.values()],
    }


def figure(id: str = "price") -> Explorable | Missing:
    """Recall and rise of the loss by the number of heads that may look back."""
    try:
        whole = measured(confined(0), "gain").mean
        series = [
            Series({"what": what}, _columns(what), source=_runs()[0]["path"]) for what in WHAT
        ]
    except (NotMeasuredError, KeyError):
        return Missing(EXPERIMENT)
    ends = {"heads": [0, MOST], "nats": [whole] * 2, "low": [whole] * 2, "high": [whole] * 2}
    return Explorable(
        id=id,
        caption=(
            f"**The price is recall.** A few of the {HEADS} heads of a trained model look back; "
            "the others see 64 tokens and the first four. *Recall*: how much easier a passage "
            "is the second time."
        ),
        alt=(
            "Recall against the number of heads that may look back: below zero with none, at its "
            "full height with 24. The rise of the loss stays near zero throughout."
        ),
        series=series,
        ceilings=[Series({}, ends, label=f"Recall with all {HEADS}")],
        x=Axis("heads", "Heads that may look back", f"of {HEADS}", range=(-0.5, MOST + 0.5)),
        y=Axis("nats", "Nats per token", digits=3, low="low", high="high"),
        color="what",
        mark="line+dot",
        controls=[Toggle("what", "Shown", options=WHAT)],
        aspect=2,
        provenance=provenance([*_runs().values(), confined(0)]),
    )


def numbers() -> dict[str, str]:
    """Numbers for the first page."""
    return in_words(
        price_rise=lambda: measured(everywhere(), "rise"),
        price_heads=lambda: counted(SOME),
        price_kept=lambda: percent(1 - lost_recall(first_alone(SOME))),
        recall_softmax=lambda: percent(share("recall", "softmax")),
        recall_linear=lambda: percent(share("recall", "linear")),
    )
