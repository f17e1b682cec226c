"""What weights far tokens need in the heads that recall: the runs of `far_weights`."""

from __future__ import annotations

from ...explorable.figure import Axis, Explorable, Series, Toggle
from ..lib.format import in_words, percent
from ..lib.records import NotMeasuredError, Record, learned, need, provenance, rows
from ..lib.tables import Missing
from . import few_states
from .measured import HERE, Mean, columns_of, mean_of, measured
from .measured import recall as recall_of
from .remove_exponential import SOME, everywhere, first_alone

EXPERIMENT = "far_weights"
WAYS = {
    "rank": "best of low rank",
    "polynomial": "best polynomial",
    "taylor": "Taylor sum",
    "random": "random features",
}
TRAINED = "trained states"
FEATURES = 128  # of the trained ones
# Beyond this many features a state is larger than any memory.
MOST = 1e12


def stored() -> dict[str, Record]:
    """The runs by their names."""
    return {run["name"]: run for run in learned(EXPERIMENT)}


def run_of(name: str) -> Record:
    """One run. Raises NotMeasuredError."""
    return need(stored().get(name), f"{EXPERIMENT}: no {name}")


def gain(name: str) -> Mean:
    """Gain of the passage that returns. Raises NotMeasuredError."""
    return mean_of([row["gain"] for row in rows(run_of(name), "texts")])


def recall(name: str) -> Mean:
    """What the copy brings, compared with another passage first. Raises NotMeasuredError."""
    pairs = zip(rows(run_of(f"unseen-{name}"), "texts"), rows(run_of(name), "texts"), strict=True)
    return mean_of([one["second"] - other["second"] for one, other in pairs])


def way(name: str) -> float:
    """The gain as a share of the way from no head looking back to exp. Raises NotMeasuredError."""
    return (gain(name).mean - measured(everywhere(), "gain").mean) / lost()


def lost() -> float:
    """The gain that confining these heads too takes. Raises NotMeasuredError."""
    return measured(first_alone(SOME), "gain").mean - measured(everywhere(), "gain").mean


def features(name: str) -> int:
    """Features of a state that can give a run's weights. Raises NotMeasuredError."""
    return need(rows(run_of(name), "features"), f"{EXPERIMENT}: no size of {name}")[0]["numbers"]


def _lines() -> dict[str, list[tuple[float, Mean, Record]]]:
    """Features of a state, gain and run for each way, smallest first."""
    lines: dict[str, list[tuple[float, Mean, Record]]] = {way: [] for way in WAYS}
    for name, run in stored().items():
        config, found = run["config"], rows(run, "features")
        in_all_places = config["way"] == "taylor" and not config["keeps_total"]
        shown = config["text"] == "passages" and found and not in_all_places
        if shown and found[0]["numbers"] < MOST:
            lines[config["way"]].append((found[0]["numbers"], gain(name), run))
    return {name: sorted(line, key=lambda one: one[0]) for name, line in lines.items() if line}


def figure(id: str = "far-weights") -> Explorable | Missing:
    """Gain against the features of a state that can give the weights of far tokens."""
    if not (lines := _lines()):
        return Missing(EXPERIMENT)
    try:
        ends = {
            "softmax in the 24": measured(first_alone(SOME), "gain").mean,
            "no head looks back": measured(everywhere(), "gain").mean,
        }
        trained = few_states.gain(few_states.STATE, heads=SOME)
    except NotMeasuredError:
        return Missing(EXPERIMENT)
    series = []
    for name, line in lines.items():
        columns = columns_of((one[:2] for one in line), "features")
        series.append(Series({"way": name}, columns, source=line[0][2]["path"]))
    series.append(Series({"way": TRAINED}, columns_of([(FEATURES, trained)], "features")))
    span = [min(line[0][0] for line in lines.values()), max(line[-1][0] for line in lines.values())]
    return Explorable(
        id=id,
        caption=(
            "**Fitted weights recall; low Taylor sums, random and briefly trained features do "
            f"not.** Gain after {HERE} tokens when only {SOME} heads look back, against the "
            "features of a state that can give their weights on far tokens. Except in *Trained*, "
            "only the returning passage's weights change. *Best*: by the squared error in each "
            "text. Taylor, random: the sum over far tokens stays softmax's. *Trained*: the student "
            "above, one seed. Bars: 95%."
        ),
        alt=(
            "Gain against features on a logarithmic scale. The best weights of low rank rise from "
            "a few features on, the best polynomials from some thousand, Taylor sums and random "
            "features stay near the bottom."
        ),
        series=series,
        ceilings=[
            Series({}, {"features": span, **dict.fromkeys(("nats", "low", "high"), [y] * 2)}, name)
            for name, y in ends.items()
        ],
        x=Axis("features", "Features of the state", log=10, digits=3),
        y=Axis("nats", "Gain", "nats per token", digits=2, low="low", high="high"),
        color="way",
        mark="line+dot",
        controls=[
            Toggle("way", "Weights", options={**{k: WAYS[k] for k in lines}, TRAINED: TRAINED})
        ],
        provenance=provenance(run for line in lines.values() for _, _, run in line),
    )  # fmt: skip


def numbers() -> dict[str, str]:
    """Numbers for the chapter."""
    names = ("softened-2", "softened-3", "rank-16", "rank-32", "polynomial-2", "polynomial-4")
    names += ("taylor-64-passage",)
    shares = {
        f"{name.replace('-', '_')}_way": lambda name=name: percent(way(name)) for name in names
    }
    return in_words(
        far_lost=lambda: f"{lost():.2f}",
        taylor_8_recall=lambda: percent(
            recall("taylor-8-passage").mean / recall_of(first_alone(SOME)).mean
        ),
        monomials_4=lambda: f"{features('polynomial-4'):,}",
        **shares,
    )
