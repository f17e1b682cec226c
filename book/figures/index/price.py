"""The price of letting few heads look back: recall and loss of a trained model."""

from __future__ import annotations

from ...explorable.figure import Axis, Explorable, Series, Toggle
from ..lib import tasks
from ..lib.format import counted, in_words, percent, times
from ..lib.records import NotMeasuredError, Record, need, provenance, row
from ..lib.tables import Missing
from ..relatives import parts, recall
from ..trained_model import distances
from ..trained_model.measured import EXPERIMENT, HEADS, by_novel, columns_of, measured, sets
from ..trained_model.remove_exponential import SOME, confined, everywhere, first_alone

WHAT = {"gain": "Gain of a passage", "cut": "Rise of the loss"}
MOST = 40  # heads that the figure shows; they keep all of the gain
PAIRS = 64  # keys and values of a text in the recall test


def _runs() -> dict[int, Record]:
    """The runs by number of heads that look back, the most important of a ranking first."""
    found = sets("passages", "gradient").get("kept", {})
    return {heads: run for heads, run in found.items() if heads <= MOST}


def _columns(what: str) -> dict[str, list]:
    return columns_of(((heads, measured(run, what)) for heads, run in _runs().items()), "heads")


def figure(id: str = "price") -> Explorable | Missing:
    """Recall and rise of the loss against the number of heads that may look back."""
    try:
        whole = measured(confined(0), "gain").mean
        series = [
            Series({"what": what}, _columns(what), source=_runs()[0]["path"]) for what in WHAT
        ]
        least, some = (measured(run, "cut").mean for run in (everywhere(), first_alone(SOME)))
    except (NotMeasuredError, KeyError):
        return Missing(EXPERIMENT)
    ends = {"heads": [0, MOST], "nats": [whole] * 2, "low": [whole] * 2, "high": [whole] * 2}
    return Explorable(
        id=id,
        caption=(
            f"**Recall after 256 tokens needs a few of the {HEADS} heads.** *Gain*: how much "
            "lower the loss of a passage is the second time; below zero, higher. *Rise of the "
            "loss*: on other tokens whose past is cut, against the whole model. Bars: 95%."
        ),
        alt=(
            "Gain against the number of heads that may look back: below zero with none, at its "
            f"full height with {SOME}. The rise of the loss falls from {least:.2f} nats a token "
            f"with none to {some:.2f} with {SOME}."
        ),
        series=series,
        ceilings=[Series({}, ends, label=f"Gain with all {HEADS}")],
        x=Axis("heads", "Heads that may look back", f"of {HEADS}", range=(-0.5, MOST + 0.5)),
        y=Axis("nats", "Nats per token", digits=3, low="low", high="high"),
        color="what",
        mark="line+dot",
        controls=[Toggle("what", "Shown", options=WHAT)],
        aspect=2,
        provenance=provenance([*_runs().values(), confined(0)]),
    )


def _asked(model: str) -> list[Record]:
    """The recall runs of a layer with one head, a seed each. Raises NotMeasuredError."""
    return need(recall.by_layer().get(model), f"{tasks.EXPERIMENT}: no recall by {model}")


def recalled(model: str) -> list[float]:
    """Share right of 64 keys in each of these runs. Raises NotMeasuredError."""
    return [row(run, "test", pairs=PAIRS)["accuracy"] for run in _asked(model)]


def recall_state() -> int:
    """Numbers in the state of the linear attention runs: S and z. Raises NotMeasuredError."""
    (width,) = {run["config"]["d_model"] for run in _asked("linear")}
    return width * width + width


def _span(shares: list[float]) -> str:
    """The smallest and largest share: "17–37%"; only one if they are equal in print."""
    low, high = (percent(end(shares)) for end in (min, max))
    return high if low == high else f"{low.removesuffix('%')}–{high}"


def _wider() -> float:
    """Interval of the gain over novels, over that over texts. Raises NotMeasuredError."""
    run = first_alone(SOME)
    texts = need(measured(run, "gain").half, f"{EXPERIMENT}: one text")
    return by_novel(run, "gain").half / texts


def numbers() -> dict[str, str]:
    """Numbers for the first page."""
    return in_words(
        price_all=lambda: str(HEADS),
        price_rise=lambda: measured(everywhere(), "cut"),
        price_heads=lambda: counted(SOME),
        price_some_rise=lambda: measured(first_alone(SOME), "cut"),
        price_no_gain=lambda: measured(everywhere(), "gain"),
        price_some_gain=lambda: measured(first_alone(SOME), "gain"),
        price_all_gain=lambda: measured(confined(0), "gain"),
        price_far_way=lambda: percent(distances.way("but", SOME, distances.FAR)),
        price_texts=lambda: str(measured(first_alone(SOME), "gain").texts),
        price_novels=lambda: times(_wider()),
        recall_softmax=lambda: _span(recalled("softmax")),
        recall_linear=lambda: _span(recalled("linear")),
        recall_signed=lambda: _span([tasks.hardest(run) for run in parts.runs("silu-normed")]),
        recall_state=lambda: f"{recall_state():,}",
        recall_runs=lambda: counted(len(recalled("linear"))),
    )
