"""Induction heads: layers trained at one length and asked at others."""

from __future__ import annotations

from ...explorable.figure import Axis, Explorable, Series
from ..lib.format import counted, in_words, listed, percent
from ..lib.records import Record, need, provenance, rows
from ..lib.seeds import bars
from ..lib.tables import Missing
from ..lib.tasks import (
    EXPERIMENT,
    RIGHT,
    at_best_rates,
    label,
    layers_toggle,
    of_usual_size,
    rates_in_words,
    right_columns,
    runs_of_model,
    score,
    seeds_of,
)

TASK = "induction"
TRAINED_AT, LONGER = 256, 4096  # tokens
CONTROL = "none"
FEW = 50  # texts of a length, below which the caption gives their number
SHOWN = ("softmax", "linear", "delta", "s6", "mamba")


def by_layer() -> dict[str, list[Record]]:
    """Runs of each layer at its best learning rate."""
    return of_usual_size(at_best_rates(TASK))


def figure(id: str = "induction") -> Explorable | Missing:
    """Share right by the length of the text."""
    layers = by_layer()
    series = []
    for name, runs in layers.items():
        # A run's test ends at a length with half wrong. Beyond the first that ended, a mean would
        # be of the other seeds only.
        asked = [{row["length"] for row in rows(run, "test")} for run in runs]
        if scores := {n: score(runs, length=n) for n in sorted(set.intersection(*asked))}:
            series.append(Series({"layer": name}, right_columns("length", scores.items())))
    if not series:
        return Missing(EXPERIMENT)
    return Explorable(
        id=id,
        caption=_caption(layers),
        alt=(
            "Share of right answers against the length of the text on a logarithmic scale. Most "
            "lines begin at the top and fall beyond the length of training."
        ),
        series=series,
        x=Axis("length", "Length of the text", "tokens", log=2),
        y=RIGHT,
        color="layer",
        mark="line+dot",
        controls=[layers_toggle((one.keys["layer"] for one in series), SHOWN)],
        provenance=provenance([run for runs in layers.values() for run in runs]),
    )


def _caption(layers: dict[str, list[Record]]) -> str:
    still = [label(name) for name in others() if min(map(right, layers[name])) >= 0.9]
    asked = [row for runs in layers.values() for run in runs for row in rows(run, "test")]
    few = {row["length"]: row["questions"] for row in asked if row["questions"] < FEW}
    longest = ", ".join(f"{few[length]} of {length:,} tokens" for length in sorted(few))
    named = f": {listed(still)}" if still else ""
    return (
        f"**After at most {most_updates()} updates at {TRAINED_AT} tokens, most layers fail at "
        f"longer texts.** At {LONGER:,} tokens {counted(len(still))} of {counted(len(others()))} "
        f"layers answer nine in ten with every seed{named}. Softmax is tested up to this length. "
        f"A run's test ends once most of its answers are wrong, and a line ends with its first "
        f"run. Texts asked: {longest}. "
        f"{bars(seeds_of(layers))} {rates_in_words(TASK)}"
    )


def right(run: Record, length: int = LONGER) -> float:
    """Share right at a length; 0 if the test had ended before."""
    return max((row["accuracy"] for row in rows(run, "test", length=length)), default=0.0)


def others() -> list[str]:
    """All layers but the control."""
    return [name for name in by_layer() if name != CONTROL]


def at_any_rate(model: str) -> list[float]:
    """A layer's shares right of the longer texts, at all learning rates and seeds.

    Raises NotMeasuredError if there are none.
    """
    runs = need(runs_of_model(TASK, model), f"{EXPERIMENT}: no {model} at {TASK}")
    return [right(run) for run in runs]


def least() -> float:
    """The least share right at the trained length, of a seed of a layer at its best rate.

    Raises NotMeasuredError if there are none.
    """
    runs = by_layer()
    shares = [score(runs[name], length=TRAINED_AT).low for name in others()]
    return min(need(shares, f"{EXPERIMENT}: no {TASK}"))


def drawn() -> list[Record]:
    """The runs of all layers at their best rates. Raises NotMeasuredError."""
    return need([run for name in others() for run in by_layer()[name]], f"{EXPERIMENT}: none")


def updates(run: Record) -> int:
    """After how many updates its training ended."""
    return run["tables"]["end"]["updates"][0]


def most_updates() -> int:
    """Updates of the longest run of a layer at its best rate. Raises NotMeasuredError."""
    return max(map(updates, drawn()))


def early() -> int:
    """Runs that ended before a text had only one question. Raises NotMeasuredError."""
    return sum(updates(run) <= run["config"]["join"][-1] for run in drawn())


def numbers() -> dict[str, str]:
    """Numbers for the chapter."""
    return in_words(
        induction_least=lambda: f"{100 * least():.1f}%",
        induction_updates=lambda: f"{most_updates()}",
        induction_early=lambda: f"{early()} of {len(drawn())}",
        induction_softmax=lambda: percent(min(at_any_rate("softmax"))),
        induction_delta_low=lambda: percent(min(at_any_rate("delta"))),
        induction_delta_high=lambda: percent(max(at_any_rate("delta"))),
    )
